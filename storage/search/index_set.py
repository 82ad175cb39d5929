"""The indexes of one data directory, kept equal to the tables.

The single writer calls `apply` after each commit: from then on the rows are found. `maintain` (once a second, off
any path that somebody waits for) commits, links and saves. Whatever is missing or wrong on disk at `open` is built
again from the tables in the background, while exact search answers. `search.search` answers a query from them.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from storage.append_only import counts
from storage.buffers import release_buffers
from storage.cursor_pool import ThreadCursors
from storage.malloc import release_free_memory
from storage.search.entries import DocumentEntry, VectorEntry
from storage.search.pace import Pace
from storage.search.records.records import Records
from storage.search.records.relations import FOLLOWED
from storage.search.vectors.feature_rows import FeatureRows
from storage.search.vectors.space import Space
from storage.search.vectors.spaces import VectorSpaces
from storage.search.vectors.vector_model import VectorModel
from storage.search.vectors.view_spaces import ViewSpaces
from storage.search.words.backfill import CATCH_UP_ROWS
from storage.search.words.keyword_index import FREQUENT
from storage.search.words.words import Words
from streams.topics import INVOCATIONS, TELEMETRY

SAVE_ROWS = 20_000
SAVE_S = 300.0
LINK_S, LINK_ROWS = 0.2, 64
"""How long one `maintain` links vectors, a few at a time: a bounded share of a core while importing."""
CLOSE_S = 30.0
BUILT_ROWS, MAX_DEFERRED = 500, 60_000
"""Documents: more than BUILT_ROWS deferred ones enter the index without the overlay; MAX_DEFERRED may be deferred."""
IDLE_S, CATCH_UP_S = 2.0, 0.05
"""What is deferred is applied when nothing came for this long: in an import the next batch goes first."""
WARMED_ROWS = 5_000
"""Fewer relations and entities than these are read by the first search that needs them (some 20 ms)."""
Commit = tuple[Sequence[DocumentEntry], Sequence[VectorEntry], Mapping[str, int]]
"""What a commit brings: documents, vectors, the positions that it reached."""
_UNSEARCHED_TOPICS = (TELEMETRY.name, INVOCATIONS.name)
"""What comes from these changes neither documents nor merges: a search's own record slows down no other search."""


class IndexSet:
    """Words, spaces and records of one data directory.

    One thread applies; any number search, each with a cursor of its own.
    """

    def __init__(
        self,
        directory: Path,
        connect: Callable[[], duckdb.DuckDBPyConnection],
        model: VectorModel | None,
        counted: Sequence[str] = (),
        sources: Collection[tuple[str, str]] = (),
        roles: str = "",
        turns: IndexSet | None = None,
    ) -> None:
        """`connect` gives a new DuckDB cursor. `model` is None when the node runs without an embedder.

        `counted` names the tables whose rows are searched with a count of all matches, `sources` the (toolset, kind)
        of records that others are made of. `roles` SELECTs (namespace, record_id, role) of what a speaker said.
        `turns`: the indexes of captured sessions, which are kept together with these.
        """
        self.turns = turns
        self.unsearched: frozenset[str] = frozenset()
        """Namespaces whose turns no search finds."""
        self._counted = counted
        self.save_s = SAVE_S
        """After this many seconds what has changed is saved; after SAVE_ROWS rows, earlier."""
        self._pace: Pace = turns._pace if turns is not None else Pace()
        self.records = Records(sources, roles, directory)
        self.words = Words(directory / "keywords", self.records.passages, self._pace.pause)
        self.spaces = VectorSpaces(directory, model, self.records.passages, self._pace.pause)
        self.views = ViewSpaces(directory / "views")
        self.features = FeatureRows(directory / "features")
        self._connect = connect
        self.cursors = ThreadCursors(connect)
        """For a search that has a cursor of other indexes only."""
        self._covered: dict[str, int] = {}
        self._deferred = deque[Commit]()
        self._deferred_at = -IDLE_S
        self._deferred_documents, self._caught_up_documents = 0, 0
        """How many were ever deferred, and of them applied: each is counted by one thread at a time."""
        self._catching_up = threading.Lock()
        self._callers: set[object] = set()
        """Those that wait in `catch_up`."""
        self._unsaved = 0
        self._saved_at = time.monotonic()
        self._maintaining = threading.Lock()
        self._closing = threading.Event()
        self._rebuilding: Future[None] | None = None
        self._warming: threading.Thread | None = None

    @property
    def model(self) -> VectorModel | None:
        """The model of the live space, None without an embedder."""
        return self.spaces.model

    def space(self, name: str | None = None) -> Space:
        """The space of this name, an empty one where there is none; without a name the live one."""
        return self.spaces.named(name)

    def searched_turns(self, namespace: str) -> IndexSet | None:
        """The indexes of captured sessions, unless the namespace has opted out."""
        return None if namespace in self.unsearched else self.turns

    def serving(self) -> AbstractContextManager[None]:
        """A call runs: background work yields while the block does."""
        return self._pace.serving()

    @property
    def is_serving(self) -> bool:
        """Whether a call runs."""
        return self._pace.is_serving

    def answering(self) -> AbstractContextManager[None]:
        """This thread works for a call: `yield_to_callers` is short for it in the block."""
        return self._pace.answering()

    def yield_to_callers(self) -> None:
        """Call in long work, the more often the better: waiting callers go first."""
        self._pace.pause()

    def open(self, positions: Mapping[str, int]) -> None:
        """Load what is whole and not ahead of the table. `positions`: its "topic/partition" -> next offset.

        Returns in time proportional to what is stored (about a second per 100,000 memories); the rest is built in
        the background. Must return before the first `apply`.
        """
        if self.turns is not None:
            self.turns.open(positions)
        self._covered = dict(positions)
        cursor = self._connect()
        self.records.load(cursor)
        self.spaces.load(cursor, positions)
        if self.spaces.missing_tokens <= CATCH_UP_ROWS:
            self.spaces.fill_tokens(cursor, self._closing.is_set)
        self.words.load(cursor, positions)
        release_buffers(cursor)
        cursor.close()
        if not self.words.is_ready or self.unlinked > SAVE_ROWS or self.spaces.missing_tokens:
            thread = ThreadPoolExecutor(1, thread_name_prefix="rebuild-indexes")
            self._rebuilding = thread.submit(self._rebuild)
            thread.shutdown(wait=False)
        self._start_warming()

    def _start_warming(self) -> None:
        """Where there is much, fill the caches of searches in the background, not in the first search."""
        cursor = self._connect()
        rows = self.records.counts(cursor)
        has_relations = sum(rows[table] for table in FOLLOWED) > WARMED_ROWS
        if has_relations or self.are_counted():
            self._warming = threading.Thread(target=self._warm, args=(cursor, has_relations), name="warm-searches")
            self._warming.start()

    def _warm(self, cursor: duckdb.DuckDBPyConnection, has_relations: bool) -> None:
        if has_relations:
            self.records.follow_relations(cursor)
        self.cache_frequent_words()

    def _rebuild(self) -> None:
        """Runs in its own thread. Rows that are applied meanwhile come through `apply`, so that nothing is missed."""
        stopped = self._closing.is_set
        cursor = self._connect()
        self.words.rebuild(cursor, stopped)
        self.spaces.fill_tokens(cursor, stopped)
        cursor.close()
        while (live := self.spaces.live) is not None and not stopped() and live.index.link():
            pass
        if not stopped():
            self.save()
            release_free_memory()

    def prepare(self, model: VectorModel) -> int:
        """Load another model's space as well, so that `switch` takes no time; the number of its vectors.

        Runs for some seconds per 100,000 vectors on a thread of the caller's; what is applied meanwhile is in it.
        """
        if self.turns is not None:
            self.turns.prepare(model)
        cursor = self._connect()
        space = self.spaces.prepare(cursor, model, self._closing.is_set)
        cursor.close()
        return len(space.index)

    def switch(self, model: VectorModel) -> None:
        """Make this model's space live. The former stays until `drop_other_spaces`, for searches on their way."""
        self.prepare(model)
        if self.turns is not None:
            self.turns.switch(model)
        with self._maintaining:
            self.spaces.model = model
            self._unsaved += 1
            self.records.begin_generation()

    def drop_other_spaces(self) -> None:
        """Drop every space but the live one."""
        if self.turns is not None:
            self.turns.drop_other_spaces()
        self.spaces.drop_others()

    @property
    def unlinked(self) -> int:
        """Vectors that exact search finds and the graph does not yet."""
        return self.spaces.unlinked

    def apply(
        self,
        documents: Sequence[DocumentEntry | tuple[int, str, str]],
        vectors: Sequence[VectorEntry | tuple[int, np.ndarray]],
        covered: Mapping[str, int] | None = None,
    ) -> None:
        """Make committed rows findable. A vector enters the space that it is of, when there is one and it fits.

        (label, namespace, text) is a document that stands alone, (label, vector) a vector of the live model.
        `covered` are the positions that the commit reached.
        """
        entries = [DocumentEntry(*document) for document in documents]
        self.records.apply(entries)
        if entries:
            self.words.apply(entries)
        self._complete(entries, [VectorEntry(*vector) for vector in vectors], covered)

    def _complete(
        self, documents: Sequence[DocumentEntry], given: Sequence[VectorEntry], covered: Mapping[str, int] | None
    ) -> None:
        """What is to be done of a commit once its words are in the index."""
        self.records.passages.place(given)
        self.spaces.apply(given)
        if covered:
            self._covered |= covered
        self._unsaved += len(documents) + len(given)
        if documents or given or covered is None or not all(at.startswith(_UNSEARCHED_TOPICS) for at in covered):
            self.records.begin_generation(has_contents=bool(documents or given))

    def defer(
        self, documents: Sequence[DocumentEntry], vectors: Sequence[VectorEntry], covered: Mapping[str, int]
    ) -> None:
        """As `apply`, by the next search or `maintain`: committing does not wait. Many at once are applied here."""
        if not documents and not vectors and not self._deferred:
            self.apply((), (), covered)
            return
        self._deferred.append((documents, vectors, covered))
        if documents:
            self._deferred_at = time.monotonic()
            self._deferred_documents += len(documents)
        if self._deferred_documents - self._caught_up_documents > MAX_DEFERRED:
            self.catch_up()

    @property
    def is_idle(self) -> bool:
        """Whether no document was deferred in the last seconds: no import is under way."""
        return time.monotonic() - self._deferred_at > IDLE_S

    def catch_up(self, seconds: float = math.inf, pause: Callable[[], None] = lambda: None) -> bool:
        """Apply what was deferred, for about this long at most; whether that was all.

        `pause`: called after each commit; a search, which waits for all of it, does not pause.
        """
        until = time.monotonic() + seconds
        caller = object()
        self._callers.add(caller)
        try:
            if not self._catching_up.acquire(timeout=-1 if math.isinf(seconds) else seconds):
                return False
        finally:
            self._callers.discard(caller)
        try:
            while self._deferred and time.monotonic() < until:
                documents, vectors, covered = self._deferred.popleft()
                self.apply(documents, vectors, covered)
                self._caught_up_documents += len(documents)
                pause()
            return not self._deferred
        finally:
            self._catching_up.release()

    @property
    def is_waited_for(self) -> bool:
        """Whether a caller of `catch_up` waits for its turn."""
        return bool(self._callers)

    def _build_deferred(self) -> None:
        """Apply what was deferred, many documents at once, until that is all or a caller waits for the rest."""
        applied: list[Commit] = []

        def documents() -> Iterator[DocumentEntry]:
            for _ in range(len(self._deferred)):
                if self.is_waited_for:
                    return
                applied.append(self._deferred.popleft())
                self.records.apply(applied[-1][0])
                yield from applied[-1][0]

        with self._catching_up:
            self.words.build(documents())
            for commit in applied:
                self._complete(*commit)
                self._caught_up_documents += len(commit[0])

    def remove(self, labels: Sequence[int]) -> None:
        """Labels that are not found any more. The sealed files forget them at the next `save`."""
        with self._maintaining:
            gone = self.records.remove(labels)
            self.spaces.remove(gone)
            self.words.remove(gone)
            self._unsaved += len(labels)
            self.records.clear_caches()

    def maintain(self) -> None:
        """Commit words, link vectors, cache frequent words, save now and then.

        Call every second, from one thread, off the waited path. Raises what stopped a rebuild.
        """
        if self.turns is not None:
            self.turns.maintain()
        if self.is_idle and self._deferred_documents - self._caught_up_documents > BUILT_ROWS and self.words.is_ready:
            self._build_deferred()
            self._pace.pause()  # so that a caller gets the lock
        while self.is_idle and not self.catch_up(CATCH_UP_S, self._pace.pause):
            self._pace.pause()  # a search that waits for the rest goes first
        if self._rebuilding is not None and self._rebuilding.done():
            self._rebuilding.result()
            if not self.is_serving:  # a query beside it may fail
                self.cursors.run(release_buffers)
                self._rebuilding = None
        with self._maintaining:
            self.words.commit()
            if not self._is_rebuilding():
                self.spaces.link(LINK_S, LINK_ROWS)
        self.words.index_long(self._closing.is_set)
        self.cache_frequent_words()
        due = self._unsaved >= SAVE_ROWS or (self._unsaved > 0 and time.monotonic() - self._saved_at >= self.save_s)
        if due and not self._is_rebuilding():
            self.save()

    def cache_frequent_words(self) -> None:
        """Look for the documents of frequent words, where all that have one are counted."""
        self.words.cache_frequent(self.are_counted, self._closing.is_set)

    def are_counted(self) -> bool:
        """Whether a table whose matches are counted is so large that counting takes time."""
        if not self._counted:
            return False
        cursor = self._connect()
        rows = counts(cursor, *self._counted)
        cursor.close()
        return max(rows) >= FREQUENT

    def save(self, covered: Mapping[str, int] | None = None) -> None:
        """Seal the indexes with what they cover: `covered`, or the last positions of `open` and `apply`."""
        # before saving: an index may hold more, never less
        covers = dict(self._covered if covered is None else covered)
        with self._maintaining:
            self._unsaved = 0
            self.words.save(covers)
            self.spaces.save(covers)
            self._saved_at = time.monotonic()

    def close(self, *, save: bool = True) -> None:
        """Stop background work and save. Bounded in time; what is not saved is caught up at `open`."""
        if self.turns is not None:
            self.turns.close(save=save)
        self._closing.set()
        self.wait_ready(CLOSE_S)
        if save and self._unsaved and self.words.is_open:
            self.save()
        self.words.close()
        self.views.close()
        self.features.close()
        if self._warming is not None:
            self._warming.join()

    def _is_rebuilding(self) -> bool:
        rebuilding = self._rebuilding
        return rebuilding is not None and not rebuilding.done()

    def wait_ready(self, timeout_s: float) -> bool:
        """Whether no rebuild is going on (any more) before the time is up."""
        wait(filter(None, [self._rebuilding]), timeout_s)
        return not self._is_rebuilding() and (self.turns is None or self.turns.wait_ready(timeout_s))

    def state(self) -> dict[str, Any]:
        """For `status`: what each index is, how much it holds, what it covers."""
        vector: dict[str, Any] = {"state": "none"}
        live = self.spaces.live
        if live is not None:
            state = "rebuilding" if self._is_rebuilding() and self.unlinked else "ready"
            vector = {"state": state, "model": live.model.model_id, "space": live.model.space}
            vector |= {"count": len(self.spaces.labels()), "unlinked": self.unlinked}
        late: dict[str, Any] = {"texts": 0 if live is None else len(live.tokens)}
        late |= {"passages": len(self.records.passages), "bytes": 0 if live is None else live.tokens.size}
        late |= {"missing": self.spaces.missing_tokens}
        about = {"is_rebuilding": self._is_rebuilding(), "covered": dict(self._covered), "unsaved": self._unsaved}
        turns = {} if self.turns is None else {"turns": self.turns.state()}
        return {"keyword": self.words.state(), "vector": vector, "late": late} | about | turns

    def labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return every document's label in the keyword and in the vector index, sorted.

        For comparison with the tables.
        """
        return self.words.labels(), self.spaces.labels()
