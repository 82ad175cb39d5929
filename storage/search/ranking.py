"""The default ranking: late interaction, BM25 and dense cosine as a sum of absolute scores, neighbours as evidence.

    score = (late + 0.3 · keyword + 0.6 · brevity · vector) / 1.9, then lifted to half of a related record's score

late     Σ_j w_j · max(sim_j, 0.9 · one turn away, 0.8 · two turns away); w: rarity of the query's tokens, Σ w = 1
keyword  BM25 as a share of the most that the query can score; also 0.8 and 0.6 of the neighbours'
vector   cosine; of a long text the mean of its whole vector's and its best passage's
brevity  √min(1, content tokens / 30) for what has neighbours: the vector of a few words of a conversation is near to
         everything that names the same person; a note that stands alone says what it says

Absolute numbers, not ranks or z-scores: a side that has found nothing adds nothing, whatever the pool looks like.
docs/adr/0007 has what each part brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

SHARES: Mapping[str, float] = {"late": 1.0, "keyword": 0.3, "vector": 0.6}
TOKEN_DECAY = (1.0, 0.9, 0.8)
KEYWORD_DECAY = (1.0, 0.8, 0.6)
FULL_LENGTH = 30
GRAPH_SHARE = 0.5

Near = Sequence[tuple[int, int]]
"""(label, distance in turns) of a record's neighbours."""


@dataclass
class Evidence:
    """What is known of the candidates, by label. `matches` (n, tokens): the best cosine to each token of the query."""

    matches: Mapping[int, np.ndarray] = field(default_factory=dict)
    weights: np.ndarray = field(default_factory=lambda: np.empty(0))
    keyword: Mapping[int, float] = field(default_factory=dict)
    vector: Mapping[int, float] = field(default_factory=dict)
    lengths: Mapping[int, int] = field(default_factory=dict)
    near: Mapping[int, Near] = field(default_factory=dict)
    parents: Mapping[int, int] = field(default_factory=dict)
    """The best of the records that this one is related to."""


def late_scores(evidence: Evidence) -> dict[int, float]:
    """Of each record whose token vectors are held."""
    if not evidence.matches:
        return {}
    at = {label: row for row, label in enumerate(evidence.matches)}
    own = np.stack(list(evidence.matches.values()))
    best = own.copy()
    for distance, decay in enumerate(TOKEN_DECAY):
        pairs = [
            (at[label], at[other]) for label in at for other, far in evidence.near.get(label, ()) if far == distance > 0 and other in at
        ]
        while pairs:  # a record has several neighbours: one of each at a time
            once = dict(pairs)
            rows, others = list(once), list(once.values())
            best[rows] = np.maximum(best[rows], decay * own[others])
            pairs = [pair for pair in pairs if once[pair[0]] != pair[1]]
    values = np.maximum(best @ evidence.weights, 0.0).tolist()
    return dict(zip(at, values, strict=True))


def keyword_score(evidence: Evidence, label: int) -> float:
    around = (KEYWORD_DECAY[distance] * evidence.keyword.get(other, 0.0) for other, distance in evidence.near.get(label, ()) if distance)
    return min(1.0, max(evidence.keyword.get(label, 0.0), *around, 0.0))


def vector_score(evidence: Evidence, label: int) -> float:
    length = evidence.lengths.get(label, FULL_LENGTH) if evidence.near.get(label) else FULL_LENGTH
    brevity = min(1.0, length / FULL_LENGTH) ** 0.5
    return float(brevity) * max(0.0, evidence.vector.get(label, 0.0))


def score_parts(evidence: Evidence, labels: Iterable[int], late: Mapping[int, float]) -> dict[int, dict[str, float]]:
    """label -> what each side adds to its score: the parts' sum is the score, between 0 and 1. `late`: from `late_scores`."""
    whole = sum(SHARES.values())
    parts: dict[int, dict[str, float]] = {}
    for label in labels:
        vector = vector_score(evidence, label)
        # without token vectors (made by an embedder that gives none) the whole text's vector stands for them
        found = {"late": late.get(label, vector), "keyword": keyword_score(evidence, label), "vector": vector}
        parts[label] = {side: SHARES[side] * min(1.0, value) / whole for side, value in found.items()}
    lifts = {
        label: GRAPH_SHARE * sum(parts[parent].values()) - sum(parts[label].values())
        for label, parent in evidence.parents.items()
        if label in parts and parent in parts and label != parent
    }
    for label, lift in lifts.items():
        parts[label]["graph"] = max(0.0, lift)
    return parts
