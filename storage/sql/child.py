"""The process that runs one analyst's query: `python -m storage.sql.child`, JSON on stdin and stdout.

A process of its own, because some functions heed neither `interrupt()` nor `memory_limit`. The kernel's limits (address
space, CPU time, no byte written to any file) and the parent's kill bound them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import duckdb
import orjson

from storage.optimizers import DISABLED
from storage.sandbox import answer_one, plain
from storage.sql.guard import check
from streams.errors import Refused, Unavailable

BATCH = 500


def connect(snapshot: str, memory_mb: int, threads: int) -> duckdb.DuckDBPyConnection:
    """Open the snapshot read-only. Nothing outside it can be reached, and no setting can be changed any more."""
    connection = duckdb.connect(
        snapshot,
        read_only=True,
        config={
            "threads": threads,
            "memory_limit": f"{memory_mb}MB",
            "temp_directory": "",
            "disabled_optimizers": DISABLED,
            "python_enable_replacements": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
        },
    )
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Columns, types and rows; or an error with its code and a sentence."""
    try:
        connection = connect(request["snapshot"], request["memory_mb"], request["threads"])
    except duckdb.Error as error:
        return _error(Unavailable.code, _sentence(error))
    try:
        started = time.perf_counter()
        (tree,) = connection.execute("SELECT json_serialize_sql(?)", [request["sql"]]).fetchall()[0]
        names = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'"
        ).fetchall()
        check(orjson.loads(tree), [name for (name,) in names])
        connection.execute("BEGIN TRANSACTION READ ONLY")
        result = connection.execute(request["sql"])
        columns = result.description or []
        rows, truncated = _fetch(result.fetchmany, request["max_rows"], request["max_bytes"])
    except Refused as refusal:
        return _error(refusal.error_code, refusal.message)
    except (duckdb.OutOfMemoryException, MemoryError):
        return _error(
            "sql_memory",
            f"The query needs more than {request['memory_mb']} MB: select fewer columns or aggregate earlier.",
        )
    except RecursionError:
        return _error("sql_refused", "The statement is nested too deeply.")
    except orjson.JSONDecodeError:
        return _error("sql_refused", "The statement is nested too deeply.")
    except duckdb.PermissionException as error:
        return _error("sql_refused", _sentence(error))
    except duckdb.Error as error:
        return _error("sql_syntax", _sentence(error))
    return {
        "columns": [column[0] for column in columns],
        "types": [str(column[1]) for column in columns],
        "rows": rows,
        "truncated": truncated,
        "elapsed_ms": (time.perf_counter() - started) * 1000,
    }


def _fetch(
    fetchmany: Callable[[int], list[tuple[Any, ...]]], max_rows: int, max_bytes: int
) -> tuple[list[list[Any]], bool]:
    rows: list[list[Any]] = []
    size = 0
    while batch := fetchmany(BATCH):
        for values in batch:
            row = [plain(value) for value in values]
            size += len(orjson.dumps(row)) + 1
            if len(rows) >= max_rows or size > max_bytes:
                return rows, True
            rows.append(row)
    return rows, False


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def _sentence(error: duckdb.Error) -> str:
    """DuckDB's message without its drawing of the line."""
    return " ".join(line.strip() for line in str(error).split("\n\nLINE ")[0].splitlines() if line.strip())


if __name__ == "__main__":
    answer_one(answer)
