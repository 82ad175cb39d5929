"""The kept mutants: one TOML file a domain, each entry a line of the program, what it becomes, and the tests that see
it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LISTS = Path(__file__).parent / "lists"


class StaleMutant(Exception):
    """A mutant that does not fit the program any more; the message says which and how to mend it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One line of `file` and what it becomes, both without indentation. `tests`: paths or node ids for pytest."""

    domain: str
    file: str
    line: str
    becomes: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.file}: {self.line}  →  {self.becomes}"

    def applied_to(self, text: str) -> str:
        """The file's text with the line replaced. Raises StaleMutant unless the line stands there exactly once."""
        lines = text.split("\n")
        places = [number for number, line in enumerate(lines) if line.strip() == self.line]
        if len(places) != 1 or self.line == self.becomes:
            found = f"stands {len(places)} times in {self.file}" if len(places) != 1 else "is not changed"
            raise StaleMutant(
                f"{self.domain}.toml: the line `{self.line}` {found}; write the line that guards the same today."
            )
        indent = lines[places[0]][: -len(lines[places[0]].lstrip())]
        lines[places[0]] = indent + self.becomes
        return "\n".join(lines)


def kept_mutants(lists: Path = LISTS) -> list[Mutant]:
    """Every mutant of every list, in order."""
    found = []
    for path in sorted(lists.glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            tests = entry["tests"]
            tests = (tests,) if isinstance(tests, str) else tuple(tests)
            found.append(Mutant(path.stem, entry["file"], entry["line"], entry["becomes"], tests))
    return found


def chosen_from(mutants: Sequence[Mutant], words: Sequence[str]) -> list[Mutant]:
    """Those whose domain or file holds one of the words; all without words."""
    return [
        mutant
        for mutant in mutants
        if not words or any(word in (mutant.domain, mutant.file) or word in mutant.file for word in words)
    ]
