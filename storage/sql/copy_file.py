"""Copying a database file whole: `python -m storage.sql.copy_file SOURCE TARGET`, always in a process of its own.

DuckDB's lock is a POSIX lock: if the process that owns the database opened and closed the file once more, the lock would be gone.
DuckDB never overwrites a block that the current header reaches, so a copy is whole when the header stood still meanwhile.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

HEADER_BYTES = 3 * 4096
CHANGED = 3
"""Exit code: the owner wrote a new header while the file was copied; nothing was published, try again."""


def copy(source: Path, target: Path) -> bool:
    """Publish a copy under `target`, complete or not at all. False when the source changed meanwhile."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with source.open("rb") as reader, partial.open("wb") as writer:
            before = reader.read(HEADER_BYTES)
            reader.seek(0)
            shutil.copyfileobj(reader, writer, 1 << 20)
            reader.seek(0)
            if reader.read(HEADER_BYTES) != before:
                return False
            writer.flush()
            os.fsync(writer.fileno())
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    folder = os.open(target.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
    return True


if __name__ == "__main__":
    sys.exit(0 if copy(Path(sys.argv[1]), Path(sys.argv[2])) else CHANGED)
