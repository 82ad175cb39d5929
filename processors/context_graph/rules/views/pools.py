"""E5 and E11: means of token vectors over cause and effect, and over head and tail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from processors.context_graph.rules.views.spans import CAUSE, EFFECT, HEAD, TAIL
from storage.search.vectors.token_vectors import unit

UNDIRECTED = 0.9
"""What a text that names no cause counts for one that does, or asks for one."""
SIDES = 4


@dataclass(frozen=True, slots=True)
class Pools:
    """(4, WIDTH) unit means of cause, effect, head and tail; a row of zeros for one that is asked for.

    `is_causal`: cause and effect are marked, or asked for. An unmarked pair is the whole text.
    """

    rows: np.ndarray
    is_causal: bool


def pools_of(vectors: np.ndarray, flags: np.ndarray | None, asked: int | None = None) -> Pools | None:
    """The pools of (n, WIDTH) token vectors under (4, n) flags; None of a text without tokens.

    `asked`: CAUSE or EFFECT in a question for one of them. A span without tokens leaves its pair the whole text.
    """
    return pools_of_each([(vectors, flags, asked)])[0]


def pools_of_each(texts: Sequence[tuple[np.ndarray, np.ndarray | None, int | None]]) -> list[Pools | None]:
    """What `pools_of` gives of each of several texts: a tenth of its time for fifty."""
    sums = np.zeros((len(texts), SIDES, texts[0][0].shape[1] if texts else 0), np.float32)
    are_causal = [_pool(row, *text) for row, text in zip(sums, texts, strict=True)]
    rows = unit(sums)
    return [
        Pools(row, is_causal) if len(text[0]) else None
        for row, is_causal, text in zip(rows, are_causal, texts, strict=True)
    ]


def _pool(rows: np.ndarray, vectors: np.ndarray, flags: np.ndarray | None, asked: int | None) -> bool:
    """Put the means of a text into its (4, WIDTH) rows; whether cause and effect are told apart."""
    if not len(vectors):
        return False
    rows[:] = np.add.reduce(vectors, 0) / len(vectors)
    if flags is None:
        return False
    counts, is_causal = flags.sum(1).tolist(), False
    for pair, (first, second) in enumerate(((CAUSE, EFFECT), (HEAD, TAIL))):
        known = [kind for kind in (first, second) if counts[kind]]
        if pair == 0 and asked is not None and known:
            rows[[kind for kind in (first, second) if kind not in known]] = 0
        elif len(known) < len((first, second)):
            continue
        for kind in known:
            rows[kind] = np.add.reduce(vectors[flags[kind]], 0) / counts[kind]
        is_causal |= pair == 0
    return is_causal


def causal_alignments(query: Pools | None, rows: list[Pools | None]) -> np.ndarray:
    """E5: the mean cosine of cause with cause and effect with effect, of those that both have.

    A text without direction counts UNDIRECTED beside one with. NaN without tokens.
    """
    found = _pair(query, rows, (CAUSE, EFFECT))
    directed = np.array([row is not None and row.is_causal for row in rows], bool)
    return np.where(directed != (query is not None and query.is_causal), found * UNDIRECTED, found)


def entity_alignments(query: Pools | None, rows: list[Pools | None]) -> np.ndarray:
    """E11: the mean cosine of head with head and tail with tail; NaN without tokens."""
    return _pair(query, rows, (HEAD, TAIL))


def _pair(query: Pools | None, rows: list[Pools | None], sides: tuple[int, int]) -> np.ndarray:
    """`sides`: two that stand side by side."""
    found = np.full(len(rows), np.nan)
    places = [place for place, row in enumerate(rows) if row is not None]
    if query is None or not places:
        return found
    first, second = sides
    stored = np.stack([row.rows[first : second + 1] for row in rows if row is not None])
    asked = query.rows[first : second + 1]
    both = (np.abs(stored).sum(2) > 0) & (np.abs(asked).sum(1) > 0)
    cosines = np.einsum("nsd,sd->ns", stored, asked)
    count = both.sum(1)
    found[places] = np.where(count > 0, (cosines * both).sum(1) / np.maximum(count, 1), np.nan)
    return found
