"""The spaces of views that have a model of their own: each with its model and a file of vectors.

A space is built beside what serves its view until then, and serves once it lacks nothing; then a text that is new
lacks its vector for a moment. Beside the file each has an index in memory, which finds what is nearest in its view. A
view that the settings no longer name loses its file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from storage.search.records.matches import Matches
from storage.search.vectors.model_vector import ModelVector, pack_vector, unpack_vector
from storage.search.vectors.row_lists import RowLists, TokenLists
from storage.search.vectors.term_lists import TermLists
from storage.search.vectors.vector_file import VectorFile
from storage.search.vectors.vector_model import VectorModel

LOADED = 256
"""Vectors that are read of a file at once when its index is made."""
_ENDING = ".vectors"


class ViewModelInfo(VectorModel, Protocol):
    """Which model it is."""

    @property
    def provider(self) -> str: ...


class ViewModel(Protocol):
    """The model of a view, as far as a search must know it. Thread-safe."""

    @property
    def info(self) -> ViewModelInfo: ...
    @property
    def kind(self) -> str:
        """`dense`, `clip`, `sparse` or `multi-vector`."""
        ...

    def encode_query(self, text: str) -> ModelVector:
        """What is asked, as vectors. Raises EmbedderUnavailable."""
        ...


class ViewImages:
    """The images of a view: which it has by their pixels, and how many by their words only.

    By words are those whose file is unreadable or may not be read; each start tries them again.
    """

    def __init__(self) -> None:
        self.by_words = 0
        self._labels = np.empty(0, np.int64)

    def add(self, labels: Sequence[int]) -> None:
        """These are there by their pixels."""
        self._labels = np.union1d(self._labels, np.array(labels, np.int64))

    def of(self, allowed: np.ndarray) -> np.ndarray:
        """Those of the allowed (sorted) labels that are there by their pixels, sorted."""
        return np.intersect1d(self._labels, allowed, assume_unique=True)

    def to_json(self) -> dict[str, int]:
        return {"pixels": len(self._labels), "words": self.by_words}


class ViewSpace:
    """The vectors of one view by label. One thread adds; any number read and search."""

    def __init__(self, model: ViewModel, path: Path) -> None:
        self.model = model
        self.images: ViewImages | None = ViewImages() if model.kind == "clip" else None
        """None where the model sees none."""
        self.file = VectorFile(path, file_space(model.info.space))
        self._lists: TermLists | RowLists | TokenLists
        if model.kind == "sparse":
            self._lists = TermLists()
        else:
            rows = RowLists(model.info, path.parent)
            self._lists = TokenLists(rows, self.vectors) if model.kind == "multi-vector" else rows

    def index(self, pause: Callable[[], None]) -> None:
        """Make what the file has findable, once, before anything is added. `pause` is called every few milliseconds."""
        labels = self.file.labels().tolist()
        for start in range(0, len(labels), LOADED):
            self._lists.add(list(self.vectors(labels[start : start + LOADED]).items()))
            pause()

    def add(self, vectors: Sequence[tuple[int, bytes, ModelVector]]) -> None:
        """Keep (label, digest of its text, vector) and make it findable. An OSError (disk full) passes through."""
        self.file.add([(label, digest, pack_vector(vector)) for label, digest, vector in vectors])
        self._lists.add([(label, vector) for label, _, vector in vectors])

    def vectors(self, labels: Sequence[int]) -> dict[int, ModelVector]:
        """Those of these labels that have a vector."""
        return {label: unpack_vector(body) for label, body in self.file.read(labels).items()}

    def nearest(self, query: ModelVector, k: int, allowed: np.ndarray) -> Matches:
        """The k nearest of the allowed (sorted) labels, best first; none of an empty query.

        Half of them are images, where there are any: to a text each text is nearer than each image in most models.
        """
        if not len(query.rows) or not len(allowed) or k < 1:
            return []
        images = None if self.images is None else self.images.of(allowed)
        if images is None or not len(images):
            return self._lists.nearest(query, k, allowed)
        found = self._lists.nearest(query, (k + 1) // 2, images)
        others = np.setdiff1d(allowed, images, assume_unique=True)
        found += self._lists.nearest(query, k - len(found), others) if k > len(found) and len(others) else []
        return sorted(found, key=lambda match: -match[1])


@dataclass
class ViewBuild:
    """How far the space of a view is. `model`: as the setting names it; `problem`: why it does not load."""

    model: str
    done: int = 0
    total: int | None = None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"model": self.model, "done": self.done, "total": self.total, "problem": self.problem}


class ViewSpaces:
    """The spaces of views by their numbers. One thread opens and serves; any number read. Nothing is there at first."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._opened: list[ViewSpace] = []
        self.serving: Mapping[int, ViewSpace] = {}
        """Those that lack nothing. Replaced, never changed."""
        self.building: Mapping[int, ViewBuild] = {}
        """Those that the settings name and that do not serve yet. Replaced, never changed."""

    def open(self, view: int, model: ViewModel) -> ViewSpace:
        """The space of a view with what its file has."""
        space = ViewSpace(model, self._path(view, model.info.space))
        self._opened.append(space)
        return space

    def _path(self, view: int, space: str) -> Path:
        digest = hashlib.blake2b(space.encode(), digest_size=8).hexdigest()
        return self._directory / f"E{view}-{digest}{_ENDING}"

    def serve(self, view: int, space: ViewSpace) -> None:
        """From now on this space is the view."""
        self.building = {number: build for number, build in self.building.items() if number != view}
        self.serving = {**self.serving, view: space}
        for path in self._directory.glob(f"E{view}-*{_ENDING}"):
            if path != space.file.path:
                path.unlink(missing_ok=True)  # a former model's

    def keep_only(self, views: Sequence[int]) -> None:
        """Delete the files of all other views."""
        kept = {f"E{view}" for view in views}
        for path in self._directory.glob(f"*{_ENDING}"):
            if path.name.partition("-")[0] not in kept:
                path.unlink(missing_ok=True)

    @property
    def key(self) -> str:
        """Which models serve: what was computed under one key does not fit another. Empty without any."""
        return "".join(f" E{view}={space.model.info.space}" for view, space in sorted(self.serving.items()))

    def state(self) -> dict[str, Any]:
        """For `status`: which model serves which view, and how far the others are."""
        serving = {
            f"E{view}": {
                "model": space.model.info.model_id,
                "space": space.model.info.space,
                "vectors": len(space.file),
                "bytes": space.file.size,
                **({} if space.images is None else {"images": space.images.to_json()}),
            }
            for view, space in sorted(self.serving.items())
        }
        building = {f"E{view}": build.to_json() for view, build in sorted(self.building.items())}
        return {"serving": serving, "building": building}

    def close(self) -> None:
        """Close the files; what is added later is not kept."""
        for space in self._opened:
            space.file.close()


def file_space(space: str) -> str:
    """What the file of a space says it is of. It names the form too: one of another form is begun anew."""
    return f"{space} by passage"
