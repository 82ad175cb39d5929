"""The process that copies a whole database file.

`python -m storage.sql.copy_file SOURCE TARGET`. DuckDB's lock is a POSIX lock: the owner of the database would lose it
by opening and closing the file once more. DuckDB never overwrites a block that the current header reaches, so a copy is
whole when the header has not changed.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from storage.atomic_file import atomic_file

HEADER_BYTES = 3 * 4096
FILE_CHANGED = 3
"""Exit code: the owner wrote a new header during the copy; nothing was published, so try again."""


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
    """The source changed during the copy."""


if __name__ == "__main__":
    sys.exit(0 if copy(Path(sys.argv[1]), Path(sys.argv[2])) else FILE_CHANGED)
