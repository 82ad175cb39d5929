"""Rows of what follows from stored texts and their tokens, by label, in a file for each space.

What a row holds is its maker's. As every index it is never truth: what is missing is made when it is read, and a file
is served once its rows were compared with the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from storage.search.vectors.vector_file import VectorFile

_ENDING = ".rows"


class FeatureRows:
    """The rows of one space, nothing at first. One thread opens, serves and adds; any number read."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._opened: list[VectorFile] = []
        self._serving: tuple[str, VectorFile] | None = None
        """Replaced, never changed."""
        self.lacking: int | None = None
        """How many texts had no row at the last look; None before the first one."""

    def open(self, space: str) -> VectorFile:
        """The file of a space with what is whole of it; another space's is as it was."""
        digest = hashlib.blake2b(space.encode(), digest_size=8).hexdigest()
        file = VectorFile(self._directory / f"{digest}{_ENDING}", space)
        self._opened.append(file)
        return file

    def serve(self, space: str, file: VectorFile) -> None:
        """From now on this file is read for this space; those of all others are deleted."""
        self._serving = space, file
        for path in self._directory.glob(f"*{_ENDING}"):
            if path != file.path:
                path.unlink(missing_ok=True)

    def read(self, space: str, labels: Sequence[int]) -> dict[int, bytes]:
        """The rows of those labels that have one; none of a space that is not served."""
        serving = self._serving
        return serving[1].read(labels) if serving is not None and serving[0] == space else {}

    def state(self) -> dict[str, Any]:
        """For `status`: how many rows there are, their bytes on the disk, and how many are to be made."""
        if self._serving is None:
            return {"rows": 0, "bytes": 0, "lacking": self.lacking}
        file = self._serving[1]
        return {"rows": len(file), "bytes": file.size, "lacking": self.lacking}

    def close(self) -> None:
        """Close the files; what is added later is not kept."""
        self._serving = None
        for file in self._opened:
            file.close()
