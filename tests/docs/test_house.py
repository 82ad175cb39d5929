"""The house stays in order: no module imports one that imports it, imports for types alone included."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("streams", "storage", "processors", "mcp_ingress", "thalweg")
UNDER_WORK = {"storage.search.ranking.candidates": {"storage.search.engine"}}
"""Imports that close a circle today and are not counted until they are gone."""


def test_no_imports_form_a_circle_those_for_types_and_in_functions_included() -> None:
    sources = {module_name(path): path.read_text() for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")}
    graph = imports_of(sources)
    counted = {name: imported - UNDER_WORK.get(name, set()) for name, imported in graph.items()}
    assert len(graph) > 400 and "streams.log.base" in graph["thalweg.process.running"]
    assert circle_in(counted) == []


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
