"""The single writer: one batch of the log is one DuckDB transaction, rows and positions together.

Runs on one thread (the materialiser's); owns the only cursor that writes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import duckdb
import orjson

from storage.buffers import cached_bytes, release_buffers
from storage.database import Database, fold_log
from storage.key_filter import KeyFilter
from storage.statements import StatementCache, dicts
from storage.tables import Table, read_tables
from streams.failpoints import hit
from streams.ids import document_label
from streams.positions import Freshness, Partition
from streams.progress import MATERIALISE

Row = dict[str, Any]
Key = tuple[Any, ...]
CACHED_ROWS = 5_000
UPDATE_MAX_ROWS = 2
"""Up to this many changed rows are written by UPDATEs."""
PREPARED_MAX_ROWS = 100
"""Up to this many rows are written by a prepared statement, more by an appender."""

LARGE_LOG_BYTES, LARGE_LOG_SHARE = 8 * 1024 * 1024, 1 / 8
"""A write-ahead log of this size, and this share of the file, is worth a checkpoint while there is more to write.

What no checkpoint has folded in lies in memory as it came: 8.8 MB of it were 45 MB, and took 0.1 s. But a checkpoint
writes whole groups of rows again, of a large file most of it.
"""

LARGE_CACHE_BYTES = 32 * 1024 * 1024
"""What DuckDB keeps of its file beyond this is let go: a checkpoint reads all that it writes, a query what it looks at.

An intake of 100,000 memories leaves 640 MB, a minute of mixed calls 40 MB; little of it is read soon, and then from the
system's cache of the file.
"""


@dataclass
class Changes:
    """What one batch changes. `state[table][key]` is a whole row; `fresh` names the keys that did not exist before."""

    appended: dict[str, list[Row]] = field(default_factory=dict)
    state: dict[str, dict[Key, Row]] = field(default_factory=dict)
    fresh: set[tuple[str, Key]] = field(default_factory=set)
    removed: list[tuple[str, str, Any]] = field(default_factory=list)
    """(table, column, value): every row with this value goes, those of this batch too."""
    positions: dict[Partition, int] = field(default_factory=dict)
    stages: dict[tuple[str, Partition], int] = field(default_factory=dict)


@runtime_checkable
class RowCopy(Protocol):
    """Rows of a state table that are kept beside it for searches. None of that table is ever removed."""

    table: str

    def load(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Take in every row that the table has."""
        ...

    def written(self, fresh: Sequence[Row], changed: Sequence[Row]) -> None:
        """Take in what a commit wrote, before anybody is told that it is applied. Called by the writer's thread."""
        ...


class Writer:
    """Reads rows by key for the reducers and commits what they decided."""

    def __init__(
        self,
        database: Database,
        tables: Mapping[str, Table] | None = None,
        statements: StatementCache | None = None,
    ) -> None:
        """`tables`: what `read_tables` says of a store of this schema, for a caller that has it already.

        `statements`: a cursor of this database, which is then this writer's alone.
        """
        self.database = database
        self._statements = StatementCache(database.cursor()) if statements is None else statements
        self._cursor = self._statements.cursor
        self.tables = read_tables(self._cursor) if tables is None else tables
        self._known = KeyFilter(self._cursor, self.tables.values())
        self._progress = self._read_progress()
        self._recent: OrderedDict[tuple[str, Key], Row] = OrderedDict()
        self._copies: dict[str, RowCopy] = {}

    def follow(self, copy: RowCopy) -> None:
        """Tell a copy of each commit from now on, and have it loaded."""
        self._copies[copy.table] = copy
        cursor = self.database.cursor()
        copy.load(cursor)
        cursor.close()

    def key_of(self, table: str, row: Mapping[str, Any]) -> Key:
        return self.tables[table].key_of(row)

    def find(self, table: str, keys: Iterable[Key]) -> dict[Key, Row]:
        """The stored rows with these primary keys; one query at most."""
        spec = self.tables[table]
        found: dict[Key, Row] = {}
        unknown: list[Key] = []
        for key in keys:
            row = self._recent.get((table, key))
            if row is None:
                unknown.append(key)
            else:
                found[key] = row
        if unknown and (missing := self._known.candidates(table, unknown)):
            for row in dicts(self._query(spec, missing)):
                for name in spec.json_columns:
                    row[name] = None if row[name] is None else orjson.loads(row[name])
                for name in spec.uuid_columns:
                    row[name] = str(row[name])
                key = self.key_of(table, row)
                found[key] = self._recent[table, key] = row
        return found

    def may_hold(self, table: str, key: Key) -> bool:
        """False: no row with this primary key is committed. For any thread, without asking DuckDB."""
        return self._known.may_contain(table, key)

    def recent(self, table: str, key: Key) -> Row | None:
        """The committed row with this primary key, if it is cached; None says nothing.

        For any thread, without DuckDB.
        """
        return self._recent.get((table, key))

    def _query(self, spec: Table, keys: Sequence[Key]) -> duckdb.DuckDBPyConnection:
        if spec.is_labelled and len(keys) <= PREPARED_MAX_ROWS:
            labels = [document_label(namespace, identity) for namespace, identity in keys]
            return self._statements.execute(spec.find_labelled(labels), labels)
        if len(keys) == 1:
            return self._statements.execute(spec.find_one, list(keys[0]))
        named = [dict(zip(spec.key, key, strict=True)) for key in keys]
        return self._statements.execute(spec.find, [orjson.dumps(named, default=str).decode()])

    def commit(self, changes: Changes) -> None:
        """Everything in one transaction. A storage error is not handled: it ends the process, a restart recovers."""
        cursor = self._cursor
        cursor.execute("BEGIN")
        try:
            hit("txn_open")
            for name, rows in changes.appended.items():
                self._insert(self.tables[name], rows)
            hit("txn_half")
            for name, keyed in changes.state.items():
                fresh: list[Row] = []
                changed: list[Row] = []
                for key, row in keyed.items():
                    (fresh if (name, key) in changes.fresh else changed).append(row)
                self._insert(self.tables[name], fresh)
                self._insert(self.tables[name], changed, replace=True)
            for name, column, value in changes.removed:
                cursor.execute(f'DELETE FROM {name} WHERE "{column}" = ?', [value])
            self._put_progress(changes)
            hit("before_commit")
            cursor.execute("COMMIT")
        except BaseException:
            _rollback(cursor)
            self._recent.clear()
            self._progress = self._read_progress()
            raise
        hit("after_commit")
        self._remember(changes)

    def _insert(self, table: Table, rows: Sequence[Row], *, replace: bool = False) -> None:
        """Write one or two changed rows by UPDATEs, more as one JSON array, most by an appender.

        docs/adr/0006 has the measurements.
        """
        if replace and len(rows) <= UPDATE_MAX_ROWS and table.update is not None:
            for row in rows:
                self._statements.execute(table.update, table.changed(row))
        elif 0 < len(rows) <= PREPARED_MAX_ROWS:
            name = f"{'replace' if replace else 'insert'}_{table.name}"
            self._statements.insert(name, lambda: table.insert(replace=replace), table.as_json(rows))
        elif rows:
            with self._cursor.appender(
                table.name, action="upsert" if replace else "insert"
            ) as appender:  # by the primary key
                appender.append_rows(map(table.parameters, rows))

    def _put_progress(self, changes: Changes) -> None:
        """Store how far each partition is. All of it is one value, which a commit writes whole (docs/adr/0006)."""
        moved = {(MATERIALISE, at): offset for at, offset in changes.positions.items()} | changes.stages
        if not moved:
            return
        statement = (
            "UPDATE progress_tokens SET tokens = ?" if self._progress else "INSERT INTO progress_tokens VALUES (?)"
        )
        for (stage, at), offset in moved.items():
            self._progress.setdefault(stage, {}).setdefault(at.topic, {})[str(at.partition)] = offset
        self._statements.execute(statement, [orjson.dumps(self._progress).decode()])

    def _remember(self, changes: Changes) -> None:
        for name, rows in changes.appended.items():
            if self.tables[name].key:
                self._known.add(name, list(map(self.tables[name].key_of, rows)))
        for name, keyed in changes.state.items():
            self._known.add(name, [key for key in keyed if (name, key) in changes.fresh])
            if not self.tables[name].has_vectors:  # 6 KB each, and no reducer asks for them soon
                for key, row in keyed.items():
                    self._recent[name, key] = row
                    self._recent.move_to_end((name, key))
            if (copy := self._copies.get(name)) is not None:
                fresh = {key for key in keyed if (name, key) in changes.fresh}
                changed = [row for key, row in keyed.items() if key not in fresh]
                copy.written([keyed[key] for key in fresh], changed)
        for removed, _, _ in changes.removed:
            for key in [key for key in self._recent if key[0] == removed]:
                del self._recent[key]
        while len(self._recent) > CACHED_ROWS:
            self._recent.popitem(last=False)

    def _read_progress(self) -> dict[str, dict[str, dict[str, int]]]:
        """Stage -> freshness token, as of the last commit."""
        row = self._cursor.execute("SELECT tokens FROM progress_tokens").fetchone()
        return {} if row is None else orjson.loads(row[0])

    def positions(self) -> dict[Partition, int]:
        """How far each partition is applied, as of the last commit."""
        return dict(Freshness.from_json(self._read_progress().get(MATERIALISE, {})))

    def stages(self) -> dict[tuple[str, Partition], int]:
        """How far each stage has processed each of its sources, as of the last commit."""
        return {
            (stage, at): offset
            for stage, token in self._read_progress().items()
            if stage != MATERIALISE
            for at, offset in Freshness.from_json(token)
        }

    @property
    def has_large_log(self) -> bool:
        """Whether a checkpoint pays off although the writer is not idle."""
        return self.database.log_bytes >= max(LARGE_LOG_BYTES, LARGE_LOG_SHARE * self.database.file_bytes)

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the file, when idle or when `has_large_log`.

        Nothing is done while somebody else folds it in, as a snapshot does.
        """
        fold_log(self._cursor)

    @property
    def has_large_cache(self) -> bool:
        """Whether DuckDB keeps much of its file in memory."""
        return cached_bytes(self._cursor) > LARGE_CACHE_BYTES

    def release_cache(self) -> None:
        """Free what DuckDB keeps of its file. For a moment a query beside it may find no room, and fail."""
        release_buffers(self._cursor)

    def close(self) -> None:
        self._cursor.close()


def _rollback(cursor: duckdb.DuckDBPyConnection) -> None:
    try:
        cursor.execute("ROLLBACK")
    except duckdb.Error:
        pass  # the transaction is gone already: what matters is the error that brought us here
