"""The spaces of views that have a model of their own: each with its model and a file of vectors.

A space is built beside what serves its view until then, and serves once it lacks nothing; then a text that is new
lacks its vector for a moment. A view that the settings no longer name loses its file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from storage.search.vectors.model_vector import ModelVector, unpack_vector
from storage.search.vectors.vector_file import VectorFile

_ENDING = ".vectors"


class ViewModelInfo(Protocol):
    """Which model it is."""

    @property
    def space(self) -> str: ...
    @property
    def model_id(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def dim(self) -> int: ...


class ViewModel(Protocol):
    """The model of a view, as far as a search must know it. Thread-safe."""

    @property
    def info(self) -> ViewModelInfo: ...

    def encode_query(self, text: str) -> ModelVector:
        """What is asked, as vectors. Raises EmbedderUnavailable."""
        ...


class ViewSpace:
    """The vectors of one view by label. One thread adds; any number read."""

    def __init__(self, model: ViewModel, path: Path) -> None:
        self.model = model
        self.file = VectorFile(path, model.info.space)

    def vectors(self, labels: Sequence[int]) -> dict[int, ModelVector]:
        """Those of these labels that have a vector."""
        return {label: unpack_vector(body) for label, body in self.file.read(labels).items()}


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
            }
            for view, space in sorted(self.serving.items())
        }
        building = {f"E{view}": build.to_json() for view, build in sorted(self.building.items())}
        return {"serving": serving, "building": building}

    def close(self) -> None:
        """Close the files; what is added later is not kept."""
        for space in self._opened:
            space.file.close()
