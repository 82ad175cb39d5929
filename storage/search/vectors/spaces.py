"""The spaces of one data directory: the live one, those in preparation and earlier ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import duckdb
import numpy as np

from storage.malloc import release_free_memory
from storage.search.entries import VectorEntry
from storage.search.records.passages import FIRST_PASSAGES, PassageIndex
from storage.search.vectors.backfill import catch_up_vectors, load_vectors
from storage.search.vectors.dense_space import DenseSpace, delete_other_tokens
from storage.search.vectors.space import EmptySpace, Space
from storage.search.vectors.vector_index import VectorIndex
from storage.search.vectors.vector_model import VectorModel

_EMPTY = EmptySpace()


class VectorSpaces:
    """Spaces by name. One thread applies, one prepares, switches and drops; any number search."""

    def __init__(
        self, directory: Path, model: VectorModel | None, passages: PassageIndex, pause: Callable[[], None]
    ) -> None:
        """`model`: of the live space, None without an embedder. `pause`: see `DenseSpace`."""
        self.model = model
        self.vectors_of_other_models = 0
        """Vectors received that the live model did not make: from a space being built, a process with other settings,
        or in flight during a switch."""
        self.partly_embedded = 0
        """Long texts received of which only the first passages have vectors so far."""
        self._vectors_in, self._tokens_in = directory / "vectors", directory / "tokens"
        self._passages = passages
        self._pause = pause
        self._spaces: dict[tuple[str, str], DenseSpace] = {}
        """By (space, model). Replaced, never changed."""
        self._missing_tokens = np.empty(0, np.int64)

    def load(self, cursor: duckdb.DuckDBPyConnection, positions: Mapping[str, int]) -> None:
        """Open the live space with the vectors of the tables. Its token vectors may lack some: see `fill_tokens`."""
        if self.model is not None:
            space = self._space_of(load_vectors(cursor, self._vectors_in, self.model, positions))
            self._spaces = {_key(self.model): space}
            self._missing_tokens = space.missing_tokens(cursor)
            delete_other_tokens(self._tokens_in, [space])

    def _space_of(self, vectors: VectorIndex) -> DenseSpace:
        return DenseSpace(vectors, self._passages, self._tokens_in, self._pause)

    @property
    def missing_tokens(self) -> int:
        """How many texts and passages of the live space lack their token vectors."""
        return len(self._missing_tokens)

    def fill_tokens(self, cursor: duckdb.DuckDBPyConnection, stopped: Callable[[], bool]) -> None:
        """Add the missing token vectors of the live space; returns early when `stopped` says so."""
        if len(self._missing_tokens) and (live := self.live) is not None:
            live.fill_tokens(cursor, self._missing_tokens, stopped)
        self._missing_tokens = np.empty(0, np.int64)

    @property
    def live(self) -> DenseSpace | None:
        """The space that answers where no other is named; None without an embedder."""
        return self._spaces.get(_key(self.model)) if self.model is not None else None

    def named(self, name: str | None = None) -> Space:
        """The space of this name, an empty one where there is none; without a name the live one."""
        if name is None:
            return self.live or _EMPTY
        return next((space for space in self._spaces.values() if space.model.space == name), None) or _EMPTY

    def prepare(self, cursor: duckdb.DuckDBPyConnection, model: VectorModel, stopped: Callable[[], bool]) -> DenseSpace:
        """The space of another model, filled from the tables; what is applied meanwhile is in it.

        Takes some seconds per 100,000 vectors the first time.
        """
        if (known := self._spaces.get(_key(model))) is not None:
            return known
        space = self._space_of(VectorIndex(model, directory=self._vectors_in))
        self._spaces = self._spaces | {_key(model): space}  # before the table is read: nothing falls between
        catch_up_vectors(cursor, space.index)
        space.fill_tokens(cursor, space.missing_tokens(cursor), stopped)
        release_free_memory()
        return space

    def drop_others(self) -> None:
        """Drop every space but the live one."""
        live = self.live
        self._spaces = {} if live is None else {_key(live.model): live}
        delete_other_tokens(self._tokens_in, self._spaces.values())
        release_free_memory()

    def apply(self, entries: Sequence[VectorEntry]) -> None:
        """Make committed vectors findable, each in the space that it is of, when there is one and it fits."""
        for space in self._spaces.values():
            if own := [entry for entry in entries if self._is_of(entry, space.model)]:
                space.apply(own)
        if self.model is not None:
            self.vectors_of_other_models += sum(not self._is_of(entry, self.model) for entry in entries)
            self.partly_embedded += sum(
                entry.passages is not None and entry.passages > FIRST_PASSAGES for entry in entries
            )

    def _is_of(self, entry: VectorEntry, model: VectorModel) -> bool:
        own = None if self.model is None else _key(self.model)
        made_by = own if entry.space is None else (entry.space, entry.model_id)
        return made_by == _key(model) and len(entry.vector) == model.dim

    def remove(self, labels: Sequence[int]) -> None:
        """Labels of documents and passages that are not found any more."""
        for space in self._spaces.values():
            space.remove(labels)

    @property
    def unlinked(self) -> int:
        """Vectors of the live space that exact search finds and the graph does not yet."""
        return 0 if self.live is None else self.live.index.unlinked

    def link(self, seconds: float, rows: int) -> None:
        """Link vectors of the live space into its graph, `rows` at a time, for at most so long."""
        if (live := self.live) is not None:
            until = time.monotonic() + seconds
            while live.index.link(rows) and time.monotonic() < until:
                pass

    def save(self, covers: Mapping[str, int]) -> None:
        """Seal the live space's graph with what it covers, and have its token vectors on the disk."""
        if (live := self.live) is not None:
            live.index.save(self._vectors_in, covers)
            live.tokens.sync()

    def labels(self) -> np.ndarray:
        """The documents with a vector in the live space, sorted."""
        vectors = np.empty(0, np.int64) if self.live is None else self.live.index.labels()
        return np.setdiff1d(vectors, self._passages.labels(), assume_unique=True)


def _key(model: VectorModel) -> tuple[str, str]:
    return model.space, model.model_id
