"""docs/errors.md lists every code that the source can answer with, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from streams import errors
from streams.errors import Refused, ThalwegError
from tests.docs.source import last_name, program

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


CONTROL_FLOW = {
    "storage.sql.copy_file._Changed": "caught in its function",
    "streams.failpoints.FailpointReached": "raised by a test's failpoint only, as a defect would be",
    "processors.frame.materialiser.TooManyFailures": "ends the process as a defect does: the code is wrong",
    "processors.valence.rules.confidence.ConfidenceError": "a rule's: the draft that has it says which argument",
    "processors.valence.rules.entities.EntityError": "a rule's: the draft that has it says which argument",
    "processors.valence.rules.beliefs.DraftError": "a rule's: the tool refuses, the reducer rejects",
    "processors.cognitive.rules.ranking.WeightsError": "a rule's: the tool refuses",
    "processors.context_graph.rules.profiles.ProfileError": "a rule's: the tool refuses, the reducer rejects",
    "mcp_ingress.inventory.ToolDefect": "a mistake in a tool's module, found when it is imported",
    "thalweg.client.launch.NodeError": "the pump answers it as an error of JSON-RPC, a command raises NodeDown",
    "thalweg.demo.Unmet": "a step of the demo catches it",
    "thalweg.dreams.cycle.Woken": "the Dreamer ends the dream",
    "thalweg.spaces.filling.TextFailed": "the filling of a space records it as a failure of that text",
    "thalweg.doctor.checks.Unsound": "the doctor prints it beside its check",
}
"""Exceptions outside the tree, none of which reaches a caller as it is, and why."""


def error_classes(base: type[ThalwegError] = ThalwegError) -> Iterator[type[ThalwegError]]:
    for error in base.__subclasses__():
        yield error
        yield from error_classes(error)


def exceptions_outside_the_tree() -> set[str]:
    """Every class of the program whose base is an exception, by its dotted name, but for those of `streams.errors`."""
    classes = [(module, each.node) for module in program() for each in module.classes()]
    raised, known = {"Exception"}, 0
    while len(raised) > known:
        known = len(raised)
        raised |= {
            node.name
            for _, node in classes
            if isinstance(node, ast.ClassDef)
            and any(
                last_name(base) in raised or last_name(base).endswith(("Error", "Exception")) for base in node.bases
            )
        }
    return {
        f"{module.dotted}.{node.name}"
        for module, node in classes
        if isinstance(node, ast.ClassDef) and node.name in raised and module.dotted != "streams.errors"
    }


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


def test_every_exception_that_reaches_a_caller_stands_in_the_one_tree() -> None:
    assert exceptions_outside_the_tree() == set(CONTROL_FLOW)


def test_the_diagram_of_the_tree_has_every_error_under_its_base() -> None:
    drawn = re.findall(r"^    ([│ ]*)[├└]── (\w+)", errors.__doc__ or "", flags=re.MULTILINE)
    path, found = ["ThalwegError"], set()
    for indent, name in drawn:
        path = [*path[: 1 + len(indent) // 4], name]
        found.add((path[-2], name))
    assert found == {(error.__bases__[0].__name__, error.__name__) for error in error_classes()}


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
