"""Reads what judged results have taught: calibrations, thresholds, and the judgements themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from processors.context_graph.rules.calibration import JudgedResult
from processors.context_graph.rules.recalibration import Learned
from processors.memory.rules.relevance import UNCHANGED, Calibration
from storage.statements import dicts, execute

if TYPE_CHECKING:
    import duckdb


CALIBRATIONS = "context_calibrations"
"""By namespace: without a row its relevance is UNCHANGED."""


def known_calibration(
    cursor: duckdb.DuckDBPyConnection, namespace: str, may_hold: Callable[[str, tuple[str, ...]], bool]
) -> Calibration:
    """As `read_calibration`; the store is not asked where it surely has none (`Services.may_hold`)."""
    return read_calibration(cursor, namespace) if may_hold(CALIBRATIONS, (namespace,)) else UNCHANGED


def read_calibration(cursor: duckdb.DuckDBPyConnection, namespace: str) -> Calibration:
    """How the relevance of this namespace's results is corrected."""
    row = execute(
        cursor,
        "SELECT relevance_temperature, relevance_offset FROM context_calibrations WHERE namespace = ?",
        [namespace],
    ).fetchone()
    return UNCHANGED if row is None else Calibration(*row)


def read_learned(cursor: duckdb.DuckDBPyConnection, namespace: str) -> Learned:
    """All that was learned."""
    rows = dicts(execute(cursor, "SELECT * FROM context_calibrations WHERE namespace = ?", [namespace]))
    return Learned.of(rows[0] if rows else None)


def read_thresholds(cursor: duckdb.DuckDBPyConnection, namespace: str, domain: str) -> dict[str, tuple[float, int]]:
    """The thresholds of a domain that were learned, by name: (value, level that set it)."""
    rows = execute(
        cursor,
        "SELECT name, value, level FROM context_thresholds WHERE namespace = ? AND domain = ?",
        [namespace, domain],
    ).fetchall()
    return {name: (value, level) for name, value, level in rows}


def read_judgements(
    cursor: duckdb.DuckDBPyConnection, namespace: str, since: datetime | None = None
) -> list[tuple[datetime, JudgedResult]]:
    """The kept judgements with their times, oldest first; `since`: no earlier ones (UTC, without a zone)."""
    rows = dicts(
        execute(
            cursor,
            "SELECT judged_at, is_relevant, similarity, prior, alignments FROM context_judgements "
            "WHERE namespace = $1 AND ($2 IS NULL OR judged_at >= $2) ORDER BY number",
            [namespace, since],
        )
    )
    return [(row["judged_at"], JudgedResult.of(row)) for row in rows]
