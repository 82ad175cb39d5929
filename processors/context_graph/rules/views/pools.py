"""E5 and E11: means of token vectors over cause and effect, and over head and tail."""

from __future__ import annotations

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
    if not len(vectors):
        return None
    rows = np.tile(unit(vectors.mean(0, keepdims=True)), (SIDES, 1))
    is_causal = False
    if flags is not None:
        for pair, (first, second) in enumerate(((CAUSE, EFFECT), (HEAD, TAIL))):
            known = [kind for kind in (first, second) if flags[kind].any()]
            if pair == 0 and asked is not None and known:
                rows[[kind for kind in (first, second) if kind not in known]] = 0
            elif len(known) < len((first, second)):
                continue
            for kind in known:
                rows[kind] = unit(vectors[flags[kind]].mean(0, keepdims=True))[0]
            is_causal |= pair == 0
    return Pools(rows.astype(np.float32), is_causal)


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
    found = np.full(len(rows), np.nan)
    places = [place for place, row in enumerate(rows) if row is not None]
    if query is None or not places:
        return found
    stored = np.stack([row.rows[list(sides)] for row in rows if row is not None])
    asked = query.rows[list(sides)]
    both = (np.abs(stored).sum(2) > 0) & (np.abs(asked).sum(1) > 0)
    cosines = np.einsum("nsd,sd->ns", stored, asked)
    count = both.sum(1)
    found[places] = np.where(count > 0, (cosines * both).sum(1) / np.maximum(count, 1), np.nan)
    return found
