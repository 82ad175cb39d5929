"""The process that runs one analyst's query: `python -m storage.sql.child`, a request on stdin, an answer on stdout, both JSON.

A process of its own, because some functions heed neither `interrupt()` nor `memory_limit`: what bounds them are the limits
that the kernel keeps (address space, CPU time, no byte written to any file) and the parent's kill.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import orjson

from storage.sql.guard import check
from streams.errors import Refused, Unavailable

PROGRAM_MB = 1024
"""Address space that the interpreter, DuckDB's code, its threads' stacks and its allocator reserve before any query."""
BATCH = 500
LARGEST_INTEGER = 2**63
PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, however that dies: nobody is left to read the answer.

    Linux only; elsewhere the limit of CPU time ends what a killed parent leaves behind.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before it could be watched
            sys.exit(1)


def limit(memory_mb: int, cpu_s: int) -> None:
    """Have the kernel bound this process: irrevocable, as the hard limits are lowered too."""
    address_space = (memory_mb + PROGRAM_MB) * 2**20
    for what, value in (
        (resource.RLIMIT_AS, address_space),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (value, value))


def connect(snapshot: str, memory_mb: int, threads: int) -> duckdb.DuckDBPyConnection:
    """The snapshot, read only; nothing outside it can be reached, and no setting changed any more."""
    connection = duckdb.connect(
        snapshot,
        read_only=True,
        config={
            "threads": threads,
            "memory_limit": f"{memory_mb}MB",
            "temp_directory": "",
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
        names = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'main'").fetchall()
        check(orjson.loads(tree), [name for (name,) in names])
        connection.execute("BEGIN TRANSACTION READ ONLY")
        result = connection.execute(request["sql"])
        columns = result.description or []
        rows, truncated = _fetch(result.fetchmany, request["max_rows"], request["max_bytes"])
    except Refused as refusal:
        return _error(refusal.error_code, refusal.message)
    except (duckdb.OutOfMemoryException, MemoryError):
        return _error("sql_memory", f"The query needs more than {request['memory_mb']} MB: select fewer columns or aggregate earlier.")
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


def _fetch(fetchmany: Callable[[int], list[tuple[Any, ...]]], max_rows: int, max_bytes: int) -> tuple[list[list[Any]], bool]:
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


def plain(value: Any) -> Any:
    """A value that JSON has. Times become RFC 3339 text, what JSON's numbers cannot hold becomes text."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return value if -LARGEST_INTEGER <= value < LARGEST_INTEGER else str(value)
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return value.isoformat() + "Z" if value.tzinfo is None else value.isoformat()
    if isinstance(value, (date, clock_time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (timedelta, UUID)):
        return str(value)
    return str(value)


def _error(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def _sentence(error: duckdb.Error) -> str:
    """DuckDB's own words without its drawing of the line."""
    return " ".join(line.strip() for line in str(error).split("\n\nLINE ")[0].splitlines() if line.strip())


def main() -> None:
    request = orjson.loads(sys.stdin.buffer.read())
    end_with(request["parent"])
    limit(request["memory_mb"], request["cpu_s"])
    sys.stdout.buffer.write(orjson.dumps(answer(request)))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
