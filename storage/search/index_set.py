"""The indexes of one data directory, kept equal to the tables.

The single writer calls `apply` after each commit: from then on the rows are found. `maintain` (once a second, off
any path that somebody waits for) commits, links and saves. Whatever is missing or wrong on disk at `open` is built
again from the tables in the background, while exact search answers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np

from storage.malloc_trim import release_free_memory
from storage.search.backfill import (
    catch_up_keywords,
    catch_up_vectors,
    is_much,
    load_keywords,
    load_vectors,
    pausing,
    release_buffers,
    with_passages,
)
from storage.search.entries import DocumentEntry, VectorEntry
from storage.search.pace import Pace
from storage.search.ranking.late_interaction import LateIndex, entries_of
from storage.search.records.append_only import counts, mark
from storage.search.vectors.passages import EMBEDDED_PASSAGES, FIRST_PASSAGES
from storage.search.vectors.space import Space, delete_others
from storage.search.vectors.vector_index import VectorIndex, VectorModel
from storage.search.words.keyword_index import FREQUENT, KeywordIndex
from streams.topics import INVOCATIONS, TELEMETRY

SAVE_ROWS = 20_000
SAVE_S = 300.0
LINK_S = 0.2
"""How long one `maintain` links vectors: a bounded share of a core while importing."""
CLOSE_S = 30.0
_OF_NO_FILTER = (TELEMETRY.name, INVOCATIONS.name)
"""What comes from these topics alone changes neither documents nor merges: a search's own record does not make the next one slower."""


class HeldIndexes:
    """`model` is None when the node runs without an embedder.

    `connect` gives a new DuckDB cursor; each is used by one thread. `apply` is called by one thread only. `counted` names
    the tables whose rows are searched with a count of all matches.
    """

    def __init__(
        self,
        directory: Path,
        connect: Callable[[], duckdb.DuckDBPyConnection],
        model: VectorModel | None,
        counted: Sequence[str] = (),
    ) -> None:
        self.model = model
        self._counted = counted
        self.save_s = SAVE_S
        """After so many seconds what has changed is saved; after SAVE_ROWS rows, earlier."""
        self.late: LateIndex
        self._directory = directory
        self._connect = connect
        self._spaces: dict[tuple[str, str], Space] = {}
        """By (space, model): the one that answers, and those that are being prepared or left. Replaced, never changed."""
        self.foreign = 0
        """How many vectors came that another model made than the one that answers: of another space that is built, of a process of other
        settings, or on their way when the model changed."""
        self.partial = 0
        """How many long texts came of which only the first passages have vectors so far."""
        self._keywords: KeywordIndex | None = None
        self._keywords_ready = False
        self._unindexed = 0
        """While the keyword index is rebuilt: the rowid below which documents are not in it yet."""
        self._books: list[DocumentEntry] = []
        """Texts of megabytes whose words `maintain` indexes: the seconds that it takes are not the writer's."""
        self._missing_tokens = np.empty(0, np.int64)
        self._covered: dict[str, int] = {}
        self._generation = 0
        self._unsaved = 0
        self._saved_at = time.monotonic()
        self._maintaining = threading.Lock()
        self._closing = threading.Event()
        self._pace = Pace()
        self._rebuilding: Future[None] | None = None

    def searching(self) -> AbstractContextManager[None]:
        """What works in the background gives way while the block runs."""
        return self._pace.searching()

    def open(self, positions: Mapping[str, int]) -> None:
        """Load what is whole and not ahead of the table, whose positions ("topic/partition" -> next offset) these are.

        Returns in time proportional to what is stored (about a second per 100,000 memories); the rest is built in
        the background. Must return before the first `apply`.
        """
        self._covered = dict(positions)
        cursor = self._connect()
        self.late = LateIndex.load(cursor)
        if self.model is not None:
            space = Space.of(
                load_vectors(cursor, self._directory / "vectors", self.model, positions), self._directory / "tokens"
            )
            self._spaces = {key_of(self.model): space}
            self.late = replace(self.late, tokens=space.tokens)
            self._missing_tokens = space.missing_tokens(cursor)
            if not is_much(self._missing_tokens):
                self._fill_tokens(cursor)
            delete_others(self._directory / "tokens", [space])
        keywords = load_keywords(cursor, self._directory / "keywords", positions, self.late.passages)
        release_buffers(cursor)
        self._keywords, self._keywords_ready = (
            (KeywordIndex(self._directory / "keywords"), False) if keywords is None else (keywords, True)
        )
        self._unindexed = mark(cursor, "documents").last + 1
        cursor.close()
        if not self._keywords_ready or self.unlinked > SAVE_ROWS or len(self._missing_tokens):
            thread = ThreadPoolExecutor(1, thread_name_prefix="rebuild-indexes")
            self._rebuilding = thread.submit(self._rebuild)
            thread.shutdown(wait=False)

    def _fill_tokens(self, cursor: duckdb.DuckDBPyConnection) -> None:
        if len(self._missing_tokens) and self._live is not None:
            self._live.fill_tokens(cursor, self._missing_tokens, self._closing.is_set, self._pace.pause)
        self._missing_tokens = np.empty(0, np.int64)

    @property
    def _live(self) -> Space | None:
        return self._spaces.get(key_of(self.model)) if self.model is not None else None

    @property
    def _vectors(self) -> VectorIndex | None:
        live = self._live
        return None if live is None else live.vectors

    def prepare(self, model: VectorModel) -> int:
        """Hold another model's vectors as well, so that `switch` takes no time; the number held. Runs for some seconds per
        100,000 vectors on a thread of the caller's; what is applied meanwhile is in it."""
        if key_of(model) not in self._spaces:
            space = Space.of(VectorIndex(model, directory=self._directory / "vectors"), self._directory / "tokens")
            self._spaces = self._spaces | {key_of(model): space}  # before the table is read: nothing falls between
            cursor = self._connect()
            catch_up_vectors(cursor, space.vectors)
            space.fill_tokens(cursor, space.missing_tokens(cursor), self._closing.is_set, self._pace.pause)
            cursor.close()
            release_free_memory()
        return len(self._spaces[key_of(model)].vectors)

    def switch(self, model: VectorModel) -> None:
        """From now on this model's vectors answer. The former's stay until `forget`, for searches that are on their way."""
        self.prepare(model)
        with self._maintaining:
            self.model, self.late = model, replace(self.late, tokens=self._spaces[key_of(model)].tokens)
            self._unsaved += 1
            self._generation += 1

    def forget(self) -> None:
        """Hold the vectors that answer, and no others."""
        live = self._live
        self._spaces = {key_of(self.model): live} if self.model is not None and live is not None else {}
        delete_others(self._directory / "tokens", list(self._spaces.values()))
        release_free_memory()

    @property
    def unlinked(self) -> int:
        """Vectors that exact search finds and the graph does not yet."""
        return self._vectors.unlinked if self._vectors is not None else 0

    def _rebuild(self) -> None:
        """Runs in its own thread. Rows that are applied meanwhile come through `apply`, so that nothing is missed."""
        cursor = self._connect()
        if not self._keywords_ready:
            keywords, passages, pause = self._index_of_keywords(), self.late.passages, self._pace.pause
            stopped, below = self._closing.is_set, self._unindexed
            catch_up_keywords(
                cursor, keywords, passages, below=below, stopped=stopped, reached=self._reached, pause=pause
            )
            self._keywords_ready = not self._closing.is_set()
        self._fill_tokens(cursor)
        release_buffers(cursor)
        cursor.close()
        while self._vectors is not None and not self._closing.is_set() and self._vectors.link():
            pass
        if not self._closing.is_set():
            self.save()
            release_free_memory()

    def _reached(self, rowid: int) -> None:
        self._unindexed = rowid

    def _index_of_keywords(self) -> KeywordIndex:
        if self._keywords is None:
            raise RuntimeError("open() has not been called")
        return self._keywords

    def apply(
        self,
        documents: Sequence[DocumentEntry | tuple[int, str, str]],
        vectors: Sequence[VectorEntry | tuple[int, np.ndarray]],
        covered: Mapping[str, int] | None = None,
    ) -> None:
        """Make committed rows findable. A vector enters the index of its space and model, when there is one and it fits.

        (label, namespace, text) is a document that stands alone, (label, vector) a vector of the model that answers.
        `covered` are the positions that the commit reached.
        """
        if documents:
            entries = list(entries_of(documents))
            self.late.apply_documents(entries)
            long = [entry for entry in entries if len(self.late.passages.parts(entry.label)) > EMBEDDED_PASSAGES]
            self._index_of_keywords().add(
                with_passages([entry for entry in entries if entry not in long], self.late.passages)
            )
            self._books += long
        given = [VectorEntry(*vector) for vector in vectors]
        self.late.passages.place(given)
        for space in self._spaces.values():
            if own := [entry for entry in given if self._is_of(entry, space.vectors.model)]:
                space.apply(own)
        if given and self.model is not None:
            self.foreign += sum(not self._is_of(entry, self.model) for entry in given)
            self.partial += sum(entry.passages is not None and entry.passages > FIRST_PASSAGES for entry in given)
        if covered:
            self._covered |= covered
        self._unsaved += len(documents) + len(vectors)
        if documents or vectors or covered is None or not all(at.startswith(_OF_NO_FILTER) for at in covered):
            self._generation += 1

    def _is_of(self, entry: VectorEntry, model: VectorModel) -> bool:
        made_by = (
            (entry.space, entry.model_id)
            if entry.space is not None
            else key_of(self.model)
            if self.model is not None
            else None
        )
        return made_by == key_of(model) and len(entry.vector) == model.dim

    def remove(self, labels: Sequence[int]) -> None:
        """Labels that are not found any more. The sealed files forget them at the next `save`."""
        with self._maintaining:
            self._books = [entry for entry in self._books if entry.label not in labels]
            gone = self.late.remove(labels)
            for space in self._spaces.values():
                space.remove(gone)
            self._index_of_keywords().remove(gone)
            self._unsaved += len(labels)
            self._generation += 1

    def maintain(self) -> None:
        """Commit the keyword overlay, link vectors, remember frequent words, save now and then. Call every second, from one thread, off the
        waited path. Raises what stopped a rebuild."""
        if self._rebuilding is not None and self._rebuilding.done():
            self._rebuilding.result()
        with self._maintaining:
            self._index_of_keywords().commit()
            if self._vectors is not None and not self._is_rebuilding():
                until = time.monotonic() + LINK_S
                while self._vectors.link(64) and time.monotonic() < until:
                    pass
        self._index_books()
        self.remember_words()
        due = self._unsaved >= SAVE_ROWS or (self._unsaved > 0 and time.monotonic() - self._saved_at >= self.save_s)
        if due and not self._is_rebuilding():
            self.save()

    def _index_books(self) -> None:
        """What ends meanwhile (the process, at any point) is found missing at the next `open`."""
        while self._books and self._keywords_ready and not self._closing.is_set():
            self._index_of_keywords().build(
                pausing(with_passages(self._books[:1], self.late.passages), self._pace.pause)
            )
            del self._books[0]

    def remember_words(self) -> None:
        """Look for the documents of frequent words, where all that hold one are counted and they are not known yet."""
        if self._keywords_ready:
            self._index_of_keywords().remember_frequent(self.are_counted, self._closing.is_set, self._pace.pause)

    def are_counted(self) -> bool:
        """Whether a table has so many rows that counting those which hold a word takes time, and all matches in it are counted."""
        if not self._counted:
            return False
        cursor = self._connect()
        rows = counts(cursor, *self._counted)
        cursor.close()
        return max(rows) >= FREQUENT

    def save(self, covered: Mapping[str, int] | None = None) -> None:
        """Seal the indexes with what they cover: `covered`, or what `open` and `apply` were told last."""
        # before saving: an index may hold more, never less
        covers = dict(self._covered if covered is None else covered)
        with self._maintaining:
            self._unsaved = 0
            if self._keywords_ready:
                self._index_of_keywords().save(covers)
            if self._live is not None:
                self._live.vectors.save(self._directory / "vectors", covers)
                self._live.tokens.sync()
            self._saved_at = time.monotonic()

    def close(self, *, save: bool = True) -> None:
        """Stop the background work and, unless told otherwise, save. Bounded; what is not saved is caught up at `open`."""
        self._closing.set()
        self.wait_ready(CLOSE_S)
        if save and self._unsaved and self._keywords is not None:
            self.save()
        if self._keywords is not None:
            self._keywords.close()

    def _is_rebuilding(self) -> bool:
        return self._rebuilding is not None and not self._rebuilding.done()

    def wait_ready(self, timeout_s: float) -> bool:
        """Whether no rebuild is going on (any more) before the time is up."""
        if self._rebuilding is not None:
            wait([self._rebuilding], timeout_s)
        return not self._is_rebuilding()

    def state(self) -> dict[str, Any]:
        """For `status`: what each index is, how much it holds, what it covers."""
        keyword: dict[str, Any] = {"state": "ready" if self._keywords_ready else "rebuilding"}
        if self._keywords is not None:
            keyword |= {"count": len(self._keywords) - len(self.late.passages), "uncommitted": self._keywords.waiting}
        vector: dict[str, Any] = {"state": "none"}
        if self._vectors is not None and self.model is not None:
            state: Literal["rebuilding", "ready"] = "rebuilding" if self._is_rebuilding() and self.unlinked else "ready"
            vector = {"state": state, "model": self.model.model_id, "space": self.model.space}
            vector |= {"count": len(self.labels_of_vectors()), "unlinked": self.unlinked}
        tokens = self.late.tokens
        late: dict[str, Any] = {"texts": 0 if tokens is None else len(tokens), "passages": len(self.late.passages)}
        late |= {"bytes": 0 if tokens is None else tokens.size, "missing": len(self._missing_tokens)}
        about = {"is_rebuilding": self._is_rebuilding(), "covered": dict(self._covered), "unsaved": self._unsaved}
        return {"keyword": keyword, "vector": vector, "late": late} | about

    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Every document's label in the keyword and in the vector index, sorted: to be compared with the tables."""
        return np.setdiff1d(self._index_of_keywords().labels(), self.late.passages.labels()), self.labels_of_vectors()

    def labels_of_vectors(self) -> np.ndarray:
        """The documents that are embedded, sorted."""
        vectors = self._vectors.labels() if self._vectors is not None else np.empty(0, np.int64)
        return np.setdiff1d(vectors, self.late.passages.labels(), assume_unique=True)


def key_of(model: VectorModel) -> tuple[str, str]:
    """Under which name a model's vectors are held."""
    return model.space, model.model_id
