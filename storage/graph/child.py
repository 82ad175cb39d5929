"""The process that runs one Cypher query: `python -m storage.graph.child`, JSON on stdin and stdout.

The file is opened read-only. The kernel limits address space and processor time and forbids writing to files, and the
parent kills the process in time.
"""

from __future__ import annotations

import re
import time
from decimal import Decimal
from typing import Any

import ladybug
import orjson

from storage.sandbox import answer_one, plain

BATCH_BYTES = 8_000_000
MAX_DB_BYTES = 2**33
ADDRESS_SPACE_MB = MAX_DB_BYTES // 2**20
_PLACE = re.compile(r"\(line: (\d+), offset: (\d+)\)")
_DRAWING = re.compile(r'\n".*', re.S)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Columns and rows, or the plan; or an error with its kind and a sentence."""
    database = ladybug.Database(
        request["file"],
        read_only=True,
        max_num_threads=1,
        max_db_size=MAX_DB_BYTES,
        buffer_pool_size=request["memory_mb"] * 2**20,
    )
    connection = ladybug.Connection(database)
    started = time.perf_counter()
    try:
        if request["explain"]:
            plan = connection.execute(f"EXPLAIN {request['cypher']}", request["parameters"] or None)
            return {"columns": [], "rows": [], "plan": str(plan.get_all()[0][0])}
        result = connection.execute(request["cypher"], request["parameters"] or None)
        rows: list[list[Any]] = []
        size = 0
        truncated = False
        while result.has_next():
            row = [simple(value) for value in result.get_next()]
            size += len(orjson.dumps(row))
            if len(rows) >= request["max_rows"] or size > BATCH_BYTES:
                truncated = True
                break
            rows.append(row)
    except (
        RuntimeError,
        ValueError,
        TypeError,
        OverflowError,
    ) as error:  # the others: parameters that ladybug has no type for
        return _error(str(error))
    elapsed_ms = int((time.perf_counter() - started) * 1000)
    return {"columns": result.get_column_names(), "rows": rows, "truncated": truncated, "elapsed_ms": elapsed_ms}


def simple(value: Any) -> Any:
    """Convert a value to JSON: a node or an edge becomes an object, a path an object of two lists."""
    if isinstance(value, dict):
        if "_NODES" in value:
            return {"nodes": simple(value["_NODES"]), "relationships": simple(value["_RELS"])}
        if "_LABEL" in value:
            name = "type" if "_SRC" in value else "label"
            properties = {
                key: simple(item) for key, item in value.items() if not key.startswith("_") and item is not None
            }
            return {f"_{name}": value["_LABEL"], **properties}
        return {str(key): simple(item) for key, item in value.items()}
    if isinstance(value, list):
        return [simple(item) for item in value]
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return plain(int(value))
    return plain(value)


def _error(message: str) -> dict[str, Any]:
    if message.startswith("Assertion failed"):
        message = "Runtime exception: the graph library cannot run this query."
    place = _PLACE.search(message)
    position = [int(place[1]), int(place[2])] if place else None
    text = _DRAWING.sub("", _PLACE.sub("", message)).strip()
    return {"error": " ".join(text.split()), "place": position}


if __name__ == "__main__":
    answer_one(answer, spare_mb=ADDRESS_SPACE_MB)
