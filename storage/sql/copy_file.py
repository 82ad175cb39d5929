"""Copying a database file whole: `python -m storage.sql.copy_file SOURCE TARGET`, always in a process of its own.

DuckDB's lock is a POSIX lock: if the process that owns the database opened and closed the file once more, the lock would be gone.
DuckDB never overwrites a block that the current header reaches, so a copy is whole when the header stood still meanwhile.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from storage.atomic_file import atomic_file

HEADER_BYTES = 3 * 4096
CHANGED = 3
"""Exit code: the owner wrote a new header while the file was copied; nothing was published, try again."""


def copy(source: Path, target: Path) -> bool:
    """Publish a copy under `target`, complete or not at all. False when the source changed meanwhile."""
    try:
        with source.open("rb") as reader, atomic_file(target) as writer:
            before = reader.read(HEADER_BYTES)
            reader.seek(0)
            shutil.copyfileobj(reader, writer, 1 << 20)
            reader.seek(0)
            if reader.read(HEADER_BYTES) != before:
                raise _Changed
    except _Changed:
        return False
    return True


class _Changed(Exception):
    """The source did not stand still."""


if __name__ == "__main__":
    sys.exit(0 if copy(Path(sys.argv[1]), Path(sys.argv[2])) else CHANGED)
