"""The house stays in order: no imports form a circle, and a generic room names no domain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("streams", "storage", "processors", "mcp_ingress", "thalweg")


def test_no_imports_form_a_circle_those_for_types_and_in_functions_included() -> None:
    sources = {module_name(path): path.read_text() for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")}
    graph = imports_of(sources)
    assert len(graph) > 400 and "streams.log.base" in graph["thalweg.process.running"]
    assert circle_in(graph) == []


def test_a_circle_of_types_alone_is_found() -> None:
    upper = "from typing import TYPE_CHECKING\nfrom room import lower\n"
    lower = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from room.upper import Upper\n"
    assert circle_in(imports_of({"room": "", "room.upper": upper, "room.lower": lower})) != []
    assert circle_in(imports_of({"room": "", "room.upper": upper, "room.lower": ""})) == []


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Module -> the modules among the sources that it imports, wherever in it the import stands."""
    return {
        name: {module for module in imported(ast.parse(text), sources) if module != name}
        for name, text in sources.items()
    }


def imported(tree: ast.Module, known: Iterable[str]) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in full.values()}
    return found & set(known)


def circle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """The modules of one circle; empty when there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


DOMAINS = re.compile("talos|valence|vkb_|cognitive|inner_?voice|context_?graph", re.IGNORECASE)
GENERIC = {
    "mcp_ingress": ("mcp_ingress/toolsets",),
    "storage": ("storage/valence",),
    "processors/embedding": (),
    "processors/frame": (),
    "processors/memory": (),
    "thalweg": (
        "thalweg/bench",
        "thalweg/commands/memory",
        "thalweg/demo.py",
        "thalweg/dreams",
        "thalweg/terminal/show_demo.py",
        "thalweg/settings.py",
        "thalweg/views",
    ),
}
"""Rooms whose modules name no domain, and what in them is a domain's own, an example's, or a setting."""


def naming(room: str, own: tuple[str, ...]) -> list[str]:
    """The lines of a room that name a domain."""
    paths = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / room).rglob("*.py"))]
    return [
        f"{path}:{number}: {line.strip()}"
        for path in paths
        if path not in own and not path.startswith(tuple(f"{folder}/" for folder in own))
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1)
        if DOMAINS.search(line)
    ]


def test_no_generic_room_names_a_domain() -> None:
    assert [line for room, own in GENERIC.items() for line in naming(room, own)] == []
    assert naming("storage/valence", ()), "the words are those that a domain's own room is full of"


def test_the_frame_imports_no_domain_but_finds_what_each_declares() -> None:
    frame = {module_name(path): path.read_text() for path in (ROOT / "processors/frame").rglob("*.py")}
    known = {module_name(path): "" for path in (ROOT / "processors").rglob("*.py")}
    imports = {module for name in frame for module in imported(ast.parse(frame[name]), known)}
    assert {".".join(module.split(".")[:2]) for module in imports} <= {
        "processors",
        "processors.frame",
        "processors.embedding",
    }
