"""The snapshot that analysts query: a copy of the database file, reused while it is young.

A CHECKPOINT and a file copy in a child make it (docs/adr/0004). That is about forty times faster than
`COPY FROM DATABASE`, and the copy has everything: tables, keys, views.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from storage.atomic_file import remove_left_overs
from storage.child_process import last_line, run_child
from storage.database import Database, fold_log
from storage.sql.copy_file import FILE_CHANGED
from streams.errors import Refused, Unavailable
from streams.files import file_age_s

FILE_NAME = "analysts.duckdb"
ATTEMPTS = 250
PAUSE_S = 0.02
COPY_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A published file and the age of its contents."""

    path: Path
    age_s: float


class Snapshots:
    """Publishes snapshots of one open database into `<home>/snapshots`. Safe to call from several threads."""

    def __init__(self, database: Database) -> None:
        if database.path is None:
            raise Refused("A database in memory has no snapshots.")
        self._database = database
        self._source = database.path
        self._target = snapshot_path(database.path.parent)
        self._one_at_a_time = threading.Lock()

    def get(self, max_age_s: float = 60.0) -> Snapshot:
        """The published snapshot if it is at most `max_age_s` old, else a new one; blocks while it makes one."""
        with self._one_at_a_time:
            found = find_snapshot(self._target.parent.parent)
            if found is not None and found.age_s <= max_age_s:
                return found
            self._target.parent.mkdir(mode=0o700, exist_ok=True)
            remove_left_overs(self._target.parent)
            self._publish(self._target)
            return Snapshot(self._target, 0.0)

    def snapshot_to(self, file: Path, *, overwrite: bool = False) -> int:
        """Write a copy that plain `duckdb FILE` opens, with every table and view. Returns its size in bytes.

        Raises Refused when the file exists (unless `overwrite`) or its folder does not.
        """
        if file.is_dir():
            raise Refused(f"{file} is a folder: name a file in it.")
        if file.exists() and not overwrite:
            raise Refused(f"The file {file.name} exists already: choose another name or allow it to be replaced.")
        if not file.parent.is_dir():
            raise Refused(f"The folder for {file.name} does not exist.")
        with self._one_at_a_time:
            self._publish(file.parent.resolve() / file.name)  # not through a link at that name
        return file.stat().st_size

    def discard(self) -> None:
        """Remove the published snapshot, so that its data is gone; a query that reads it now still ends."""
        with self._one_at_a_time:
            self._target.unlink(missing_ok=True)

    def _publish(self, target: Path) -> None:
        cursor = self._database.cursor()
        try:
            for _ in range(ATTEMPTS):
                if fold_log(cursor) and _copy(self._source, target):
                    return
                time.sleep(PAUSE_S)
            # FORCE CHECKPOINT would wait without end
            raise Unavailable("The store changes too quickly to be copied now.")
        finally:
            cursor.close()


def snapshot_path(home: Path) -> Path:
    """The path of a data directory's published snapshot."""
    return home / "snapshots" / FILE_NAME


def find_snapshot(home: Path) -> Snapshot | None:
    """The published snapshot of any age. None when there is none, or the clock has been set back before it."""
    path = snapshot_path(home)
    try:
        age = file_age_s(path)
    except FileNotFoundError:
        return None
    return Snapshot(path, age) if age >= 0 else None


def _copy(source: Path, target: Path) -> bool:
    done = run_child("storage.sql.copy_file", str(source.resolve()), str(target), timeout_s=COPY_TIMEOUT_S)
    if done.returncode not in (0, FILE_CHANGED):
        raise Unavailable(f"The store could not be copied: {last_line(done.stderr)}")
    return done.returncode == 0
