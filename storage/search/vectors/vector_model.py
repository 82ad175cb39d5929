"""The model of a space, as far as its indexes must know it."""

from __future__ import annotations

from typing import Protocol


class VectorModel(Protocol):
    """The model that made some vectors; vectors of two models are never in one index."""

    @property
    def space(self) -> str: ...
    @property
    def model_id(self) -> str: ...
    @property
    def dim(self) -> int: ...
