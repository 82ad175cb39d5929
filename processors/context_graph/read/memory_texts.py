"""What follows from the texts of stored memories: from memory, from kept rows, or from the table.

A row that is kept says the same as the table would: it is made by `rows_of` when a memory has all of its token vectors,
and is not believed when their number has changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from processors.context_graph.rules.memories import TOOLSET
from processors.context_graph.rules.views.fingerprint import MAX_CHARS, MAX_TOKENS, TextFeatures, text_features
from processors.context_graph.rules.views.pools import Pools, pools_of_each
from processors.context_graph.rules.views.spans import flags_of
from processors.context_graph.rules.views.stored_text import FORMAT, StoredText, pack_text, unpack_text
from processors.context_graph.rules.views.times import Moment
from storage.context_graph.last_places import LastPlacesFollower
from storage.search.records.passages import FIRST_PASSAGES
from storage.search.vectors.token_vectors import unit, unpack_body
from storage.search.vectors.vector_file import text_digest
from storage.statements import execute

if TYPE_CHECKING:
    import duckdb

    from processors.embedding.model import TokenEmbedder
    from storage.search.index_set import IndexSet
    from storage.search.records.passages import Passage
    from storage.search.vectors.dense_space import DenseSpace

CACHED_MEMORIES = 4096
"""About 20 MB."""
_COLUMNS = f'namespace, label, kind, left(text, {MAX_CHARS}), epoch(created_at), session_id, "offset"'


class _Document(NamedTuple):
    """A memory's row in `documents`. `at`: seconds since 1970; `position`: in the log."""

    namespace: str
    label: int
    kind: str
    text: str
    at: float
    session_id: str | None
    position: int

    @property
    def digest(self) -> bytes:
        """What says later whether a row was made of this."""
        return text_digest(f"{self.kind} {self.at} {self.session_id} {self.position} {self.text}")


@dataclass(frozen=True, slots=True)
class StoredTokens:
    """The stored tokens of a text: each passage's place, None of a short text, ids and int8 rows."""

    parts: Sequence[tuple[Passage | None, np.ndarray, np.ndarray]]

    @property
    def ids(self) -> np.ndarray:
        return _joined([ids for _, ids, _ in self.parts])

    @property
    def codes(self) -> np.ndarray:
        return _joined([codes for _, _, codes in self.parts])

    @property
    def are_all(self) -> bool:
        """Whether none will come: the passages behind the first ones come later."""
        return len(self.parts) < FIRST_PASSAGES or len(self.ids) == MAX_TOKENS


@dataclass(frozen=True, slots=True)
class MemoryText:
    """What of a stored memory never changes under one model, but for its vectors."""

    moment: Moment
    features: TextFeatures
    pools: Pools | None


class FingerprintCache:
    """What follows from the texts of the memories that were asked for last. Any number of threads.

    `places`: where the next memory of a namespace would stand.
    """

    def __init__(self, size: int = CACHED_MEMORIES) -> None:
        self._memories: OrderedDict[tuple[str, int], MemoryText] = OrderedDict()
        self.places = LastPlacesFollower(TOOLSET)
        self._size = size
        self._lock = threading.Lock()

    def known(self, space: str, labels: Sequence[int]) -> dict[int, MemoryText]:
        """Those of these labels that are here, as the model of a space has them."""
        with self._lock:
            found = {label: self._memories[space, label] for label in labels if (space, label) in self._memories}
            for label in found:
                self._memories.move_to_end((space, label))
        return found

    def keep(self, space: str, memories: dict[int, MemoryText]) -> None:
        """Remember these; those unused for longest go."""
        with self._lock:
            for label, one in memories.items():
                self._memories[space, label] = one
            while len(self._memories) > self._size:
                self._memories.popitem(last=False)


@dataclass(frozen=True)
class MemoryTexts:
    """Reads what follows from the texts of one namespace's memories. It is for one read on one thread.

    `embedder` says where the tokens of a text stand; without one, cause and effect are not told apart.
    """

    cursor: duckdb.DuckDBPyConnection
    indexes: IndexSet
    embedder: TokenEmbedder | None
    cache: FingerprintCache
    namespace: str

    def read(self, labels: Sequence[int], tokens: Mapping[int, StoredTokens]) -> dict[int, MemoryText]:
        """By label those that the store has. `tokens`: what is stored of them."""
        live = self.indexes.spaces.live
        space = "" if live is None else live.model.space
        memories = self.cache.known(space, labels)
        if missing := [label for label in labels if label not in memories]:
            found = self._kept(space, missing, tokens)
            stored, places = self._stored([label for label in missing if label not in found])
            found |= {one.label: self._made(one, places, tokens.get(one.label)) for one in stored}
            read = _pooled(found, tokens)
            # with such a model one without tokens waits for its vectors
            whole = {label: one for label, one in read.items() if one.pools or self.embedder is None}
            self.cache.keep(space, whole)
            memories |= read
        return memories

    def rows_of(self, labels: Sequence[int]) -> list[tuple[int, bytes, bytes]]:
        """(label, digest, row) of those of these memories that have all of their tokens. Callers who wait go first."""
        live = self.indexes.spaces.live
        tokens = {} if live is None else self.tokens(live, labels)
        asked = [label for label in labels if self.embedder is None or (label in tokens and tokens[label].are_all)]
        stored, places = self._stored(asked)
        rows = []
        for one in stored:
            rows.append((one.label, one.digest, pack_text(self._made(one, places, tokens.get(one.label)))))
            self.indexes.yield_to_callers()
        return rows

    def tokens(self, live: DenseSpace, labels: Sequence[int]) -> dict[int, StoredTokens]:
        """The stored tokens of texts, of a long one of its first passages. Those without any are left out."""
        return {label: found for label in labels if (found := self._tokens(live, label))}

    def text_starts(self, text: str, tokens: StoredTokens) -> np.ndarray | None:
        """Where the tokens of a stored text begin in it, by passage; None where they are another text's."""
        starts = []
        for passage, ids, _ in tokens.parts:
            begin, end = (0, len(text)) if passage is None else (passage.start, passage.end)
            inner = self.starts(text[begin:end], ids)
            if inner is None:
                return None
            starts.append(inner + begin)
        return np.concatenate(starts) if starts else None

    def starts(self, text: str, ids: np.ndarray) -> np.ndarray | None:
        """Where each of these word pieces begins in a text; None where they are not this text's."""
        if self.embedder is None:
            return None
        [pieces] = self.embedder.piece_starts([text])
        same = np.array_equal(pieces.ids[: len(ids)], ids)
        return pieces.starts[: len(ids)] if same else None

    def _kept(self, space: str, labels: Sequence[int], tokens: Mapping[int, StoredTokens]) -> dict[int, StoredText]:
        """Those that have a row, made with as many tokens as there are."""
        rows = self.indexes.features.read(feature_space(space), labels)
        found = {label: unpack_text(body) for label, body in rows.items()}
        counts = {label: len(tokens[label].ids) if label in tokens else 0 for label in found}
        return {label: one for label, one in found.items() if one.token_count == counts[label]}

    def _stored(self, labels: Sequence[int]) -> tuple[list[_Document], dict[int, int]]:
        """The documents of these memories, and the place of each in its session."""
        if not labels:
            return [], {}
        found = [one for one in read_documents(self.cursor, labels) if one.namespace == self.namespace]
        return found, self._places({one.session_id for one in found if one.session_id is not None}, labels)

    def _made(self, one: _Document, places: Mapping[int, int], tokens: StoredTokens | None) -> StoredText:
        """From the table: half a millisecond for a text of 24 words."""
        moment = Moment(one.at, one.session_id, places.get(one.label), one.position)
        features = text_features(one.text, one.kind)
        starts = self.text_starts(one.text, tokens) if tokens is not None and features.spans else None
        count = 0 if tokens is None else len(tokens.ids)
        flags = None if starts is None else flags_of(features.spans, starts[:count])
        return StoredText(moment, features, count, flags)

    def _places(self, sessions: set[str], labels: Sequence[int]) -> dict[int, int]:
        """The place from 0 in these sessions of each of these memories, by label."""
        if not sessions:
            return {}
        rows = execute(
            self.cursor,
            'FROM (SELECT label, row_number() OVER (PARTITION BY session_id ORDER BY "offset", label) - 1 AS place '
            "FROM documents WHERE namespace = ? AND toolset = ? AND session_id IN (SELECT unnest(?::VARCHAR[]))) "
            "SELECT label, place WHERE label IN (SELECT unnest(?::BIGINT[]))",
            [self.namespace, TOOLSET, sorted(sessions), list(labels)],
        ).fetchall()
        return dict(rows)

    def _tokens(self, live: DenseSpace, label: int) -> StoredTokens | None:
        passages = self.indexes.records.passages
        parts, count = [], 0
        for part in passages.parts(label) or (label,):
            ids, codes = unpack_body(live.tokens.packed_body(part))
            parts.append((passages.passage(part), ids, codes))
            count += len(ids)
            if count >= MAX_TOKENS:
                break
        return StoredTokens(parts) if count else None


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The first MAX_TOKENS rows of all; of a short text, which has one part, it is a view."""
    rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return rows[:MAX_TOKENS]


def _pooled(texts: Mapping[int, StoredText], tokens: Mapping[int, StoredTokens]) -> dict[int, MemoryText]:
    """The texts with their pools, which those without tokens do not have."""
    labels = [label for label in texts if label in tokens]
    codes = [tokens[label].codes for label in labels]
    pools: dict[int, Pools | None] = {}
    if labels:
        rows = np.split(unit(np.concatenate(codes).astype(np.float32)), np.cumsum([len(some) for some in codes[:-1]]))
        marked = [(texts[label].flags, texts[label].features.spans.asked) for label in labels]
        each = pools_of_each([(some, *mark) for some, mark in zip(rows, marked, strict=True)])
        pools = dict(zip(labels, each, strict=True))
    return {label: MemoryText(one.moment, one.features, pools.get(label)) for label, one in texts.items()}


def feature_space(space: str) -> str:
    """The name under which the rows of a model's space are kept."""
    return f"{FORMAT} {space}"


def read_documents(cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> list[_Document]:
    """What the rows of these labels are made of, of all namespaces, in any order."""
    query = f"SELECT {_COLUMNS} FROM documents WHERE label IN (SELECT unnest(?::BIGINT[]))"
    return [_Document(*row) for row in execute(cursor, query, [list(labels)]).fetchall()]
