"""Access to the store from the command line: through the running node, else by owning it briefly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storage.database import Database
from storage.migrate import migrate
from storage.sql.export import export_parquet
from storage.sql.snapshot import Snapshots
from streams.clock import SystemClock
from streams.errors import NotRunning, StoreError
from streams.positions import NOW, Freshness
from thalweg.control.dead_letters import list_letters
from thalweg.control.requests import ask
from thalweg.settings import Settings
from thalweg.status.offline import has_spooled_writes, read_positions, waiting_records


@contextmanager
def own_store(home: Path) -> Iterator[Database]:
    """The store of this directory, owned while the block runs.

    Raises StoreError when there is none, it is damaged, or another process owns it.
    """
    if not (home / "thalweg.duckdb").exists():
        raise StoreError(f"There is no store in {home}; `thalweg up` or `thalweg import` makes one.")
    database = Database(home, guest=True)
    try:
        migrate(database.cursor(), SystemClock().now())
        yield database
    finally:
        database.close()


@dataclass(frozen=True, slots=True)
class StoreSnapshot:
    """A file for analysts' SQL."""

    path: Path
    age_s: float
    waiting: int | None
    """Records on the embedded log that it lacks because no node runs; None where one does, or the log is another."""
    lacks: Mapping[str, Any] = field(default_factory=dict)
    """What it lacks, as in answers: `stale` without all that was to be applied, `behind` when the node was."""


def snapshot_of(settings: Settings, max_age_s: float, freshness: Any = None) -> StoreSnapshot:
    """A snapshot at most this many seconds old, or with `freshness` applied.

    `freshness`: a write's token, or `now` for what was accepted so far.
    """
    try:
        answer = ask(settings.home, "snapshot", max_age_s=max_age_s, freshness=freshness)
        return StoreSnapshot(Path(answer.pop("path")), float(answer.pop("age_s")), None, answer)
    except NotRunning:
        with own_store(settings.home) as database:
            snapshot = Snapshots(database).get(max_age_s if freshness is None else 0.0)
            positions = read_positions(database.cursor())
            waiting = waiting_records(settings.broker_url, positions)
            count = None if waiting is None else sum(waiting.values())
            is_behind = freshness is not None and (
                has_spooled_writes(settings.home) or _is_behind(positions, freshness, count)
            )
            return StoreSnapshot(snapshot.path, snapshot.age_s, count, {"stale": True} if is_behind else {})


def _is_behind(positions: Mapping[tuple[str, int], int], freshness: Any, waiting: int | None) -> bool:
    """Whether a store that nobody writes to lacks what was to be applied. What cannot be known counts as lacking."""
    if freshness == NOW:
        return waiting != 0
    return any(positions.get(at, 0) < offset for at, offset in Freshness.from_json(freshness))


def export_to(home: Path, directory: Path) -> dict[str, int]:
    """Every table and view as Parquet; rows by name."""
    try:
        rows: dict[str, int] = ask(home, "export", directory=str(directory), timeout_s=3600.0)["rows"]
        return rows
    except NotRunning:
        with own_store(home) as database:
            return export_parquet(database.cursor(), directory)


def copy_to(home: Path, file: Path) -> None:
    """The public tables and views as a DuckDB file."""
    try:
        ask(home, "snapshot_to", file=str(file), timeout_s=3600.0)
    except NotRunning:
        with own_store(home) as database:
            Snapshots(database).snapshot_to(file)


def letters_of(home: Path, **filters: Any) -> dict[str, Any]:
    """Dead letters, newest first: why a node stopped is asked when none runs."""
    try:
        return ask(home, "dlq_list", **filters)
    except NotRunning:
        with own_store(home) as database:
            return list_letters(database.cursor(), filters)
