"""Files of a sealed snapshot: hard links of those that never change, copies of those that do."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path


class SnapshotFile(ABC):
    """Writes a file of a snapshot, and recognises one that it need not write again."""

    @abstractmethod
    def __call__(self, path: Path) -> None:
        """Write it under a new name. Raises FileNotFoundError where its source has changed meanwhile."""

    @abstractmethod
    def is_at(self, path: Path) -> bool:
        """Whether a file of the snapshot before is the same."""


@dataclass(frozen=True, slots=True)
class HardLink(SnapshotFile):
    """A hard link of a source that never changes and is on disk, as what tantivy has committed is."""

    source: Path

    def __call__(self, path: Path) -> None:
        link(self.source, path)

    def is_at(self, path: Path) -> bool:
        try:
            return os.path.samefile(self.source, path)
        except FileNotFoundError:
            return False


@dataclass(frozen=True, slots=True)
class Copy(SnapshotFile):
    """Writes a body. The source must still say the same: only then all its segments have been linked."""

    source: Path
    body: bytes

    def __call__(self, path: Path) -> None:
        self._check()
        path.write_bytes(self.body)

    def is_at(self, path: Path) -> bool:
        self._check()
        try:
            return path.read_bytes() == self.body
        except FileNotFoundError:
            return False

    def _check(self) -> None:
        if self.source.name == "meta.json" and self.source.read_bytes() != self.body:
            raise FileNotFoundError(self.source)


def link(source: Path, target: Path) -> None:
    """A hard link where the file system has them, else a copy."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)
