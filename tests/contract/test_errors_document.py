"""docs/errors.md lists every code that the source can answer with, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from streams.errors import Refused, ThalwegError

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "errors.md").read_text()
PACKAGES = ("streams", "storage", "processors", "mcp_ingress", "thalweg")


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, without its head."""
    section = DOCUMENT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    return rows[2:]


def codes(heading: str) -> set[str]:
    return {row[0].strip("`") for row in table(heading)}


def error_classes(base: type[ThalwegError] = ThalwegError) -> Iterator[type[ThalwegError]]:
    for error in base.__subclasses__():
        if error.__module__ == "streams.errors":
            yield error
        yield from error_classes(error)


def codes_in_source() -> set[str]:
    """Codes given to one refusal: `Refused(..., code="…")`, or `x-error-code` in a schema."""
    found: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Refused", "checked_text", "refuse"):
                    found |= {
                        keyword.value.value
                        for keyword in node.keywords
                        if keyword.arg == "code" and _is_text(keyword.value)
                    }
                if isinstance(node, ast.Dict):
                    found |= {
                        value.value
                        for key, value in zip(node.keys, node.values, strict=True)
                        if _names_code(key) and _is_text(value)
                    }
    return found


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _names_code(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and key.value == "x-error-code"


def test_every_error_of_the_tree_is_listed_with_its_remedy() -> None:
    listed = {(code.strip("`"), name.strip("`"), remedy) for code, name, remedy in table("Codes of the program")}
    assert listed == {(error.code, error.__name__, error.remedy) for error in error_classes()}


def test_every_code_that_one_refusal_has_of_its_own_is_listed() -> None:
    headings = ("Codes of the program", "Codes of tools", "Codes of `thalweg sql`")
    listed = set[str]().union(*(codes(heading) for heading in headings))
    assert codes_in_source() - listed == set()


def test_no_code_means_two_things() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", DOCUMENT, flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert Refused("x").error_code in listed
