"""Files of a sealed snapshot: hard links of those that never change, copies of those that do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path


def linker(source: Path) -> Callable[[Path], None]:
    return lambda path: link(source, path)


def copier(source: Path, body: bytes) -> Callable[[Path], None]:
    """Writes the body. The source must still say the same: only then all its segments have been linked."""

    def copy(path: Path) -> None:
        if source.name == "meta.json" and source.read_bytes() != body:
            raise FileNotFoundError(source)
        path.write_bytes(body)

    return copy


def link(source: Path, target: Path) -> None:
    """A hard link where the file system has them, else a copy."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)
