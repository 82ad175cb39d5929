"""How new a text is: its neighbours among the last memories of the store, and what is usual there."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from processors.context_graph.rules.novelty import (
    LEAST,
    REFERENCE,
    USUAL_COHERENCE,
    USUAL_ENTROPY,
    WINDOW,
    Raw,
    calibrated,
    measure,
    surprise,
)
from storage.context_graph.recent_memories import RecentMemories
from storage.search.vectors.space import Space

if TYPE_CHECKING:
    import duckdb

MAX_CACHED = 20_000
"""Raw values of memories that are kept in memory."""


@dataclass(frozen=True, slots=True)
class Novelty:
    """What was measured of a text, all in [0, 1]."""

    entropy: float
    coherence: float
    surprise: float
    raw: Raw
    compared: int
    """Memories that it was compared with."""


class History(NamedTuple):
    """What a text is measured against: the raw values of the last memories, and the (n, dim) last vectors."""

    references: Sequence[Raw]
    vectors: np.ndarray


def novelty_of(vector: np.ndarray, history: History) -> Novelty:
    """Compare a (dim,) unit vector with the last memories."""
    known, vectors = history
    raw = measure(vector, vectors)
    return Novelty(
        calibrated(raw.entropy, [each.entropy for each in known], USUAL_ENTROPY),
        calibrated(raw.coherence, [each.coherence for each in known], USUAL_COHERENCE),
        surprise(vector, vectors),
        raw,
        len(vectors),
    )


class NoveltyMeter:
    """Reads what texts are measured against, of each namespace. Any number of threads, each with its cursor.

    A memory's raw values are measured once a space; after a start those of the last 500 are measured with the first
    text (some 30 ms).
    """

    def __init__(self) -> None:
        self._recent = RecentMemories(REFERENCE + WINDOW)
        self._raw: dict[tuple[str, int], Raw | None] = {}
        """By space and label; None of a memory with too few before it."""
        self._lock = threading.Lock()

    def history(self, cursor: duckdb.DuckDBPyConnection, namespace: str, space: Space, name: str) -> History:
        """Of the last memories that have a vector, oldest first; `name` is that of the space."""
        labels = self._recent.view(cursor, namespace)
        last = labels[-REFERENCE:].tolist()
        with self._lock:
            unknown = {label for label in last if (name, label) not in self._raw}
            places = [place for place, label in enumerate(labels.tolist()) if label in unknown]
            start = max(0, min([*places, len(labels)]) - WINDOW)
            vectors = space.vectors(labels[start:])
            embedded = [label for label in labels[start:].tolist() if label in vectors]
            rows = np.array([vectors[label] for label in embedded], np.float32)
            for place, label in enumerate(embedded):
                if label in unknown:
                    earlier = rows[max(0, place - WINDOW) : place]
                    self._raw[name, label] = measure(rows[place], earlier) if len(earlier) >= LEAST else None
            if len(self._raw) > MAX_CACHED:
                self._raw = dict(list(self._raw.items())[-REFERENCE:])
            known = [raw for label in last if (raw := self._raw.get((name, label))) is not None]
        return History(known, rows[-WINDOW:])
