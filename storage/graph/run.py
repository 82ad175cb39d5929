"""A Cypher query runs over a projection in a child process.

Its time, memory, rows and bytes are limited.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from storage.child_process import QueryChild
from storage.graph.cypher import check_cypher, check_parameters, original_offset, position_of, to_ladybug, tokens_of
from streams.errors import Refused

MAX_ROWS = 1000
MEMORY_MB = 512
MAX_PARAMETER_BYTES = 1_000_000
_CHILD = QueryChild("storage.graph.child", subject="The graph", shorten="match less, or bound the paths")
_NAMED = re.compile(r"(?:Table|Variable|variable|property|function|column) ['\"]?(\w+)")
_WRONG_QUERY = ("Parser exception", "Binder exception", "Catalog exception")


@dataclass(frozen=True, slots=True)
class CypherAnswer:
    """Rows as lists of JSON values in the order of `columns`; with `plan` nothing was executed."""

    columns: list[str]
    rows: list[list[Any]]
    truncated: bool = False
    elapsed_ms: int = 0
    plan: str | None = None


def checked_parameters(cypher: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Check the query before anything is built or started; returns the parameters that it names.

    Raises Refused with `syntax_error`, `read_only_violation` or `missing_parameter`.
    """
    names = check_cypher(cypher)
    given = dict(parameters)
    check_parameters(names, given)
    used = {name: given[name] for name in names}
    if len(orjson.dumps(used)) > MAX_PARAMETER_BYTES:
        raise Refused(f"The parameters are longer than {MAX_PARAMETER_BYTES} bytes.")
    return used


def run_cypher(
    file: Path, cypher: str, parameters: Mapping[str, Any], *, explain: bool = False, timeout_s: float = 30.0
) -> CypherAnswer:
    """Run one checked query; blocks up to `timeout_s`, so call it off the event loop.

    Raises Refused with `syntax_error` (and `position`), `timeout`, or `invalid_argument` for what fails on its values;
    Unavailable when the projection or the library cannot be opened.
    """
    spoken, changes = to_ladybug(cypher)
    request = {
        "file": str(file),
        "cypher": spoken,
        "parameters": dict(parameters),
        "explain": explain,
        "max_rows": MAX_ROWS,
    }
    answer = _CHILD.ask(request, timeout_s=timeout_s, memory_mb=MEMORY_MB, cpu_s=math.ceil(timeout_s) + 1)
    if "error" in answer:
        place = answer["place"]
        raise _refusal(cypher, answer["error"], original_offset(_offset(spoken, *place), changes) if place else None)
    return CypherAnswer(**answer)


def _refusal(cypher: str, message: str, offset: int | None) -> Refused:
    """What ladybug says, with the place that it names, else that of the name it complains about."""
    if not message.startswith(_WRONG_QUERY):
        return Refused(f"The query failed: {message[:500]}")
    place = position_of(cypher, _mentioned(cypher, message) if offset is None else offset)
    return Refused(message[:500], code="syntax_error", position=place)


def _offset(cypher: str, line: int, column: int) -> int:
    lines = cypher.split("\n")
    return min(len(cypher), sum(len(text) + 1 for text in lines[: line - 1]) + column)


def _mentioned(cypher: str, message: str) -> int:
    """Where the last name that the message holds stands in the query; 0 when none does."""
    words = {token.text.lower(): token.offset for token in tokens_of(cypher) if token.kind in ("word", "quoted")}
    named = _NAMED.search(message)
    candidates = ([named[1]] if named else []) + re.findall(r"\w+", message)[2:]
    return next((words[name.lower()] for name in candidates if name.lower() in words), 0)
