"""`thalweg memory`: what operators put into Cognitive Memory by hand.

Bad rows are refused with their line numbers, all at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from processors.cognitive.rules.golden import query_type, set_problem
from processors.cognitive.rules.identifiers import number_of
from streams.errors import Refused
from streams.event_types.cognitive import GOLDEN_SET_IMPORTED, GROUND_TRUTH_IMPORTED, WM_ARCHIVED
from thalweg.client.node_process import ensure_node
from thalweg.control.requests import ask, decide
from thalweg.settings import Settings

MAX_SHOWN = 20
MAX_ID = 2**53 - 1


def import_ground_truth(settings: Settings, path: Path) -> dict[str, Any]:
    """Import a JSON Lines file, each row a query; importing again changes nothing. Raises Refused."""
    rows = read_rows(path)
    ensure_node(settings.home)
    new = 0
    for number, row in rows:
        identity = row.get("id") or number_of(settings.namespace, "ground_truth", row["session_id"], row["query"])
        result = _request(settings, GROUND_TRUTH_IMPORTED, {**row, "id": identity}, f"line {number}: ")
        new += bool(result.get("is_new"))
    return {"read": len(rows), "imported": new}


def import_golden_set(settings: Settings, path: Path) -> dict[str, Any]:
    """Import a JSON Lines file as the golden set, all of it or nothing; it is final. Raises Refused."""
    rows = [row for _, row in read_rows(path)]
    problem = set_problem([row["query"] for row in rows])
    if problem is not None:
        raise Refused(problem)
    ensure_node(settings.home)
    _request(settings, GOLDEN_SET_IMPORTED, {"queries": rows, "file": path.name}, "")
    classes = Counter(query_type(row["query"]) for row in rows)
    return {"imported": len(rows), **{name: classes[name] for name in ("short", "medium", "long")}}


def archive(settings: Settings, item_id: int) -> dict[str, Any]:
    """Archive an item of working memory. Raises Refused when there is none of that id."""
    ensure_node(settings.home)
    return _request(settings, WM_ARCHIVED, {"item_id": item_id}, "")


def report(settings: Settings) -> dict[str, Any]:
    """Whether the ground truth is accepted, and which documents the judges see differently."""
    ensure_node(settings.home)
    return dict(ask(settings.home, "agreement", namespace=settings.namespace)["report"])


def _request(settings: Settings, kind: str, data: dict[str, Any], where: str) -> dict[str, Any]:
    """Publish through the node and give what was decided. Raises Refused when it was refused."""
    try:
        return decide(settings, kind, data)
    except Refused as error:
        raise Refused(f"{where}{error.message}") from None


def read_rows(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """(line number, row) of a JSON Lines file. Raises Refused naming each line that is wrong."""
    rows: list[tuple[int, dict[str, Any]]] = []
    problems: list[str] = []
    seen: dict[Any, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        row, problem = _read_row(line)
        key = (row.get("session_id"), row.get("query"))
        if problem is None and key in seen:
            problem = f"the same query as line {seen[key]}"
        if problem is not None:
            problems.append(f"line {number}: {problem}")
        else:
            seen[key] = number
            rows.append((number, row))
    if problems:
        raise Refused(_sentence(path, problems))
    if not rows:
        raise Refused(f"{path.name} has no rows: write one JSON object a line.")
    return rows


def _sentence(path: Path, problems: Sequence[str]) -> str:
    more = f"; and {len(problems) - MAX_SHOWN} more" if len(problems) > MAX_SHOWN else ""
    return f"{path.name} was not imported: {'; '.join(problems[:MAX_SHOWN])}{more}."


def _read_row(line: bytes) -> tuple[dict[str, Any], str | None]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}, "not JSON"
    if not isinstance(row, dict):
        return {}, "not a JSON object"
    for name in ("query", "session_id"):
        if not isinstance(row.get(name), str) or not row[name].strip():
            return {}, f"`{name}` must be a string"
    docs = row.get("expected_docs")
    if not isinstance(docs, list) or not docs or not all(_is_id(number) for number in docs):
        return {}, "`expected_docs` must be a list of ids"
    if "id" in row and not _is_id(row["id"]):
        return {}, "`id` must be an integer from 1 to 2^53-1"
    if not isinstance(row.get("metadata", {}), dict):
        return {}, "`metadata` must be an object"
    unknown = sorted(row.keys() - {"id", "query", "expected_docs", "session_id", "metadata"})
    return (row, None) if not unknown else ({}, f"there is no field `{unknown[0]}`")


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_ID
