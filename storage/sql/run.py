"""An analyst's query runs over a snapshot in a child process.

Its time, memory, rows and bytes are limited.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.child_process import QueryChild
from streams.errors import Refused, Unavailable
from streams.files import file_age_s

MAX_SQL_BYTES = 100_000
THREADS = 2
_CHILD = QueryChild(
    "storage.sql.child",
    subject="The snapshot",
    shorten="narrow it or allow more time",
    timeout_code="sql_timeout",
    memory_code="sql_memory",
)


@dataclass(frozen=True, slots=True)
class SqlAnswer:
    """The rows (lists of JSON values, in the order of `columns`).

    `truncated`: more rows exist than were asked for or fit.
    """

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
    """Run one SELECT over the snapshot and return its rows. Blocks up to `timeout_s`, so call it off the event loop.

    Raises Refused with code 'sql_refused' (not allowed), 'sql_syntax' (DuckDB cannot run it), 'sql_timeout' or
    'sql_memory'; Unavailable when the snapshot is missing or cannot be read.
    """
    if len(sql.encode(errors="replace")) > MAX_SQL_BYTES:
        raise Refused(f"The statement is longer than {MAX_SQL_BYTES} bytes.", code="sql_refused")
    if "\0" in sql or (not sql.isascii() and any("\ud800" <= letter <= "\udfff" for letter in sql)):
        raise Refused("The statement contains a NUL or half a character.", code="sql_refused")
    try:
        age_s = max(0.0, file_age_s(snapshot))
    except FileNotFoundError:
        raise Unavailable("There is no snapshot yet: publish one first.") from None
    request = {
        "snapshot": str(snapshot.resolve()),
        "sql": sql,
        "max_rows": max_rows,
        "max_bytes": max_bytes,
        "threads": THREADS,
    }
    cpu_s = math.ceil(timeout_s) * THREADS + 1
    answer = _CHILD.ask(request, timeout_s=timeout_s, memory_mb=memory_mb, cpu_s=cpu_s)
    if "error" in answer:
        if answer["error"]["code"] == Unavailable.code:
            raise Unavailable("The snapshot cannot be opened: ask again with a maximum age of 0 for a new one.")
        raise Refused(answer["error"]["message"], code=answer["error"]["code"])
    return SqlAnswer(**answer, snapshot_age_s=age_s)
