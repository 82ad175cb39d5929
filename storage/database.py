"""The DuckDB file of a data directory: owned by one process, and moved aside when damaged.

The file is a view of the log, so a damaged one is never repaired: it is kept under another name and rebuilt.
DuckDB's own file lock is not enough (any open and close of the file in this process drops it), hence `store.lock`.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from storage.directory_lock import lock_directory, release_directory
from storage.disk import is_full
from storage.optimizers import DISABLED
from streams.clock import Clock, SystemClock
from streams.errors import StoreError
from streams.files import make_directory

FILE_NAME = "thalweg.duckdb"
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "dynamic_or_filter_threshold": 5000,
    "disabled_optimizers": DISABLED,
    "checkpoint_threshold": "256MB",
    "allocator_background_threads": True,  # else its allocator keeps what a heavy query took: 644 MB where 67 are used
    "memory_limit": "25%",  # of the machine; by itself it would take four fifths
    "default_block_size": 65536,  # of a new file; with DuckDB's 256 KB the keys of 70 tables take 37 MB, mostly empty
    "threads": 1,  # the queries are many and small, and run on our own threads: more of DuckDB's only cost
}
DAMAGE = ("not a valid DuckDB database", "Could not read enough bytes", "orrupt", "checksum", "WAL file", "deserialize")


class Database:
    """An open store. `recovered` is the path that a damaged file was moved to on opening, else None.

    `home=None` is a database in memory. Use one `cursor()` per thread: a connection shared by threads gives wrong rows.
    A `guest` is a process other than the node: it keeps the note on how the last node ended, and leaves a damaged file
    to the next node. Raises StoreError when another process owns the directory, or the file cannot be opened for a
    reason outside it.
    """

    def __init__(self, home: Path | None, *, clock: Clock | None = None, guest: bool = False) -> None:
        self.path = None if home is None else home / FILE_NAME
        self.recovered: Path | None = None
        self._clock = clock or SystemClock()
        self._lock: int | None = None
        if self.path is None:
            self._connection = duckdb.connect(":memory:", config=SETTINGS)
            return
        make_directory(self.path.parent, 0o700)
        self._lock, former = lock_directory(self.path.parent)
        self._leave_behind = former if guest else b""
        try:
            self._connection = self._open(self.path, verify=bool(former), guest=guest)
        except BaseException:
            release_directory(self._lock, former)
            raise

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A new connection to the same database, for one thread."""
        return self._connection.cursor()

    @property
    def file_bytes(self) -> int:
        """The size of the file; 0 in memory."""
        return 0 if self.path is None else self.path.stat().st_size

    @property
    def log_bytes(self) -> int:
        """The size of DuckDB's write-ahead log: what no checkpoint has folded into the file."""
        if self.path is None:
            return 0
        try:
            return self.path.with_name(f"{self.path.name}.wal").stat().st_size
        except FileNotFoundError:
            return 0

    def condemn(self) -> None:
        """Have the next start move the file aside: call it when a query finds damage (`is_damage`), then exit."""
        if self.path is not None:
            _condemned(self.path).touch()

    @property
    def is_given_up(self) -> bool:
        """Whether the last writer stopped because it could apply nothing that it read."""
        return self.path is not None and _given_up(self.path).exists()

    def mark_given_up(self, given_up: bool) -> None:
        """Store, or remove, the mark that `is_given_up` reads at the next start."""
        if self.path is not None and given_up:
            _given_up(self.path).touch()
        elif self.path is not None:
            _given_up(self.path).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file and release the directory."""
        self._connection.close()
        if self._lock is not None:
            release_directory(self._lock, self._leave_behind)
            self._lock = None

    def _open(self, path: Path, *, verify: bool, guest: bool) -> duckdb.DuckDBPyConnection:
        if not _condemned(path).exists():
            try:
                return _connect(path, verify=verify)
            except duckdb.Error as error:
                if not is_damage(error):
                    raise StoreError(f"The store {path.name} cannot be opened: {_first_line(error)}") from error
        if guest:
            raise StoreError(
                f"The store {path.name} is damaged: `thalweg up` moves it aside and builds it again from the log."
            )
        self.recovered = self._move_aside(path)
        return _connect(path, verify=False)

    def _move_aside(self, path: Path) -> Path:
        """Rename the damaged file and its write-ahead log; the new name has the time."""
        stamp = f"{self._clock.now():%Y%m%dT%H%M%S.%fZ}"
        aside = path.with_name(f"{path.name}.damaged-{stamp}")
        for suffix in ("", ".wal"):
            source = path.with_name(path.name + suffix)
            if source.exists():
                source.rename(aside.with_name(aside.name + suffix))
        _condemned(path).unlink(missing_ok=True)
        return aside


def fold_log(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Fold the write-ahead log into the file; False while somebody else writes, or folds it in."""
    try:
        cursor.execute("CHECKPOINT")
    except duckdb.TransactionException:
        return False
    return True


def is_damage(error: duckdb.Error) -> bool:
    """Whether the file itself is damaged, rather than that the disk is full or access is refused."""
    if is_full(error):
        return False
    if isinstance(error, (duckdb.InternalException, duckdb.SerializationException)):
        return True
    return any(sign in str(error) for sign in DAMAGE)


def _condemned(path: Path) -> Path:
    return path.with_name(path.name + ".condemned")


def _given_up(path: Path) -> Path:
    return path.with_name(path.name + ".given-up")


def _connect(path: Path, *, verify: bool) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(path, config=SETTINGS)
    try:
        if verify:
            _read_everything(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _read_everything(connection: duckdb.DuckDBPyConnection) -> None:
    """Read every column once after an unclean end: DuckDB verifies a block only when it reads it."""
    tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall()
    for (name,) in tables:
        connection.execute(f'SELECT bit_xor(hash(t)) FROM "{name}" t').fetchall()


def _first_line(error: duckdb.Error) -> str:
    return str(error).splitlines()[0]
