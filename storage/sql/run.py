"""Running an analyst's query in a child process over a published snapshot, within limits of time, memory, rows and bytes."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

import storage
from streams.errors import Refused, Unavailable

MAX_SQL_BYTES = 100_000
THREADS = 2


@dataclass(frozen=True, slots=True)
class SqlAnswer:
    """The rows (lists of JSON values, in the order of `columns`). `truncated`: more rows exist than were asked for or fit."""

    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    truncated: bool
    elapsed_ms: float
    snapshot_age_s: float

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def run_sql(
    snapshot: Path,
    sql: str,
    *,
    timeout_s: float = 30,
    max_rows: int = 10_000,
    max_bytes: int = 8_000_000,
    memory_mb: int = 1024,
) -> SqlAnswer:
    """Run one SELECT over the snapshot and return its rows; blocks up to `timeout_s`, so call it off the event loop.

    Raises Refused with code 'sql_refused' (not allowed), 'sql_syntax' (DuckDB cannot run it), 'sql_timeout' or 'sql_memory';
    Unavailable when the snapshot is missing or cannot be read.
    """
    if len(sql.encode(errors="replace")) > MAX_SQL_BYTES:
        raise Refused(f"The statement is longer than {MAX_SQL_BYTES} bytes.", code="sql_refused")
    if "\0" in sql or (not sql.isascii() and any("\ud800" <= letter <= "\udfff" for letter in sql)):
        raise Refused("The statement contains a NUL or half a character.", code="sql_refused")
    try:
        age_s = max(0.0, time.time() - snapshot.stat().st_mtime)
    except FileNotFoundError:
        raise Unavailable("There is no snapshot yet: publish one first.") from None
    request = {
        "snapshot": str(snapshot.resolve()),
        "sql": sql,
        "max_rows": max_rows,
        "max_bytes": max_bytes,
        "memory_mb": memory_mb,
        "threads": THREADS,
        "parent": os.getpid(),
        "cpu_s": math.ceil(timeout_s) * THREADS + 1,
    }
    answer = _ask_child(orjson.dumps(request), timeout_s, memory_mb)
    if "error" in answer:
        if answer["error"]["code"] == Unavailable.code:
            raise Unavailable("The snapshot cannot be opened: ask again with a maximum age of 0 for a new one.")
        raise Refused(answer["error"]["message"], code=answer["error"]["code"])
    return SqlAnswer(**answer, snapshot_age_s=age_s)


def child_command(module: str) -> tuple[list[str], dict[str, str]]:
    """How to start one of this package's child programs, and its whole environment: no secret of the parent's is in it.

    The path of this installation is given, and `-P` keeps the working directory out, so that nothing there is imported.
    """
    root = Path(storage.__file__).resolve().parents[1]
    return [sys.executable, "-P", "-m", module], {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}


def _ask_child(request: bytes, timeout_s: float, memory_mb: int) -> dict[str, Any]:
    command, environment = child_command("storage.sql.child")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd="/"
    ) as child:
        try:
            output, complaint = child.communicate(request, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            child.kill()
            raise Refused(
                f"The query took longer than {timeout_s:g} s and was ended: narrow it or allow more time.",
                code="sql_timeout",
            ) from None
        except BaseException:
            child.kill()
            raise
    if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise Refused("The query used up its share of processor time and was ended: narrow it.", code="sql_timeout")
    if child.returncode < 0 or b"MemoryError" in complaint:
        raise Refused(
            f"The query broke its limit of {memory_mb} MB and was ended: aggregate earlier.", code="sql_memory"
        )
    if child.returncode != 0:
        raise RuntimeError(complaint.decode(errors="replace"))
    answer: dict[str, Any] = orjson.loads(output)
    return answer
