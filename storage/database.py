"""The one DuckDB file of a data directory: owned by one process, opened with known settings, moved aside when damaged.

The file is a view of the log, so a damaged one is never repaired: it is kept under another name and rebuilt.
DuckDB's own file lock is not enough (any open and close of the file in this process drops it), hence `store.lock`.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import duckdb

from storage.disk import is_full
from streams.clock import Clock, SystemClock
from streams.errors import StoreError
from streams.files import make_directory, sync

FILE_NAME = "thalweg.duckdb"
LOCK_NAME = "store.lock"
SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "dynamic_or_filter_threshold": 5000,
    "checkpoint_threshold": "256MB",
    "threads": 1,  # many small queries on a few threads of our own: more of DuckDB's only pass work around
}
DAMAGE = ("not a valid DuckDB database", "Could not read enough bytes", "orrupt", "checksum", "WAL file", "deserialize")


class Database:
    """An open store. `recovered` is where a damaged file was moved to on opening, else None.

    `home=None` is a database in memory. Use one `cursor()` per thread: a connection shared by threads gives wrong rows.
    A `guest` is no node: how the last node ended stays written, and a damaged file is left for the next node.
    Raises StoreError when another process owns the directory or the file cannot be opened for a reason outside it.
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
        """A connection of its own to the same database, for one thread."""
        return self._connection.cursor()

    def condemn(self) -> None:
        """Have the file moved aside at the next start: call it when a query met damage (`is_damage`), then exit."""
        if self.path is not None:
            _condemned(self.path).touch()

    @property
    def is_given_up(self) -> bool:
        """Whether the last who wrote here stopped because nothing that it read could be applied."""
        return self.path is not None and _given_up(self.path).exists()

    def mark_given_up(self, given_up: bool) -> None:
        """Remember it for the next start, or forget it."""
        if self.path is not None and given_up:
            _given_up(self.path).touch()
        elif self.path is not None:
            _given_up(self.path).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file and give the directory up."""
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
        """Keep the damaged file and its write-ahead log under a name that says when."""
        stamp = f"{self._clock.now():%Y%m%dT%H%M%S.%fZ}"
        aside = path.with_name(f"{path.name}.damaged-{stamp}")
        for suffix in ("", ".wal"):
            source = path.with_name(path.name + suffix)
            if source.exists():
                source.rename(aside.with_name(aside.name + suffix))
        _condemned(path).unlink(missing_ok=True)
        return aside


def is_damage(error: duckdb.Error) -> bool:
    """Whether DuckDB says that the file itself is bad, rather than its surroundings (disk full, rights, another owner)."""
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
    """DuckDB checks a block only when it reads it: after an unclean end every column is read once, before anyone relies on it."""
    tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall()
    for (name,) in tables:
        connection.execute(f'SELECT bit_xor(hash(t)) FROM "{name}" t').fetchall()


def lock_directory(home: Path) -> tuple[int, bytes]:
    """The held lock, and what the previous owner left in it: nothing when it ended cleanly, else its process id.

    Raises StoreError naming the owner when there is one.
    """
    handle = os.open(home / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(handle)
        raise StoreError(
            f"The data directory is in use by the process with pid {owner}: stop that one (`thalweg stop`) or choose another "
            "directory with THALWEG_HOME.",
            owner_pid=owner,
        ) from error
    former = os.pread(handle, 32, 0)
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    os.fsync(handle)  # after a power cut too the next owner must know that this one did not end cleanly
    sync(home)
    return handle, former


def lock_holder(lock: Path) -> str | None:
    """The process id in a lock file that is held; None when nobody holds it."""
    try:
        handle = os.open(lock, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(handle)


def release_directory(lock: int, left_behind: bytes = b"") -> None:
    """Release the directory. The lock file stays, empty: the next owner knows that all is well. Unless something is left behind in it."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, left_behind, 0)
    os.close(lock)


def _first_line(error: duckdb.Error) -> str:
    return str(error).splitlines()[0]
