"""The house stays in order: a generic room knows no domain, so that a domain comes and goes without a change in it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOMAINS = re.compile("talos|valence|vkb_|cognitive|inner_?voice|context_?graph", re.IGNORECASE)
GENERIC = {
    "storage": ("storage/valence",),
    "processors/embedding": (),
    "processors/memory": (),
}
"""Rooms whose modules name no domain, and the folders in them that are a domain's own."""


def naming(room: str, own: tuple[str, ...]) -> list[str]:
    """The lines of a room that name a domain."""
    paths = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / room).rglob("*.py"))]
    return [
        f"{path}:{number}: {line.strip()}"
        for path in paths
        if not path.startswith(tuple(f"{folder}/" for folder in own))
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1)
        if DOMAINS.search(line)
    ]


def test_no_generic_room_names_a_domain() -> None:
    assert [line for room, own in GENERIC.items() for line in naming(room, own)] == []
    assert naming("storage/valence", ()), "the words are those that a domain's own room is full of"
