"""The default ranking: late interaction, BM25, what stands out by its vector, and named dates, as a sum.

    score = (late + 0.3 · words · keyword + 0.045 · trust · brevity · vector + 0.2 · date) · (1 - 0.15 · asking) / 2,
    then lifted to half of a related record's score

late     Σ_j w_j · max(sim_j, 0.85 · one turn away, 0.75 · two turns away); w: rarity of the query's tokens, Σ w = 1
keyword  BM25 as a share of the most that the query can score; also 0.8 and 0.6 of the neighbours'
vector   by how many standard deviations the cosine exceeds those of the filter's other texts, 0 to 6; the cosine of a
         long text is the mean of its whole vector's and its best passage's
brevity  √min(1, content tokens / 45) for what has neighbours: the vector of a few words of a conversation is near to
         everything that names the same person; a note that stands alone says what it says
words    whether the query's words are there at all: 0 where no record alone matches its tokens better than 0.35,
         1 from 0.5 on; where they are not, only the vector can tell
trust    how often its share the vector counts: 1 where the words are there, 2 where they are nowhere; 2 and 5 where texts lie
         apart. A query whose mean cosine to all texts is 0.2 is near to all of them, by the persons and the matter that they
         share: what it is near to above that says little. At 0.1 the texts are of many matters, and the nearest is seldom so by chance
date     how near a record's day is to a date that the query names (`dates`)
asking   the share of a record that asks instead of telling (`asking`)

Absolute numbers, not ranks: a side that has found nothing adds nothing. Only the vector's are relative to the corpus,
since the cosines of one lie close together, and those of another far apart. docs/adr/0008 has what each part brings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

SHARES: Mapping[str, float] = {"late": 1.0, "keyword": 0.3, "vector": 0.045, "date": 0.2}
WHOLE = 2.0
TOKEN_DECAY = (1.0, 0.85, 0.75)
KEYWORD_DECAY = (1.0, 0.8, 0.6)
FULL_LENGTH = 45
WORDS_FROM, WORDS_FULL = 0.35, 0.5
CROWDED, APART = 0.2, 0.1
"""The mean cosine from which on texts are all alike to a query, and up to which they lie apart."""
TRUST_CROWDED, TRUST_APART = (1.0, 2.0), (2.0, 5.0)
"""So many times its share the vector counts where the query's words are said, and where they are nowhere."""
MOST_DEVIATIONS = 6.0
ASKING_SHARE = 0.15
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
    background: tuple[float, float] = (CROWDED, 1.0)
    """Mean and standard deviation of the cosines of all that might have been found."""
    lengths: Mapping[int, int] = field(default_factory=dict)
    near: Mapping[int, Near] = field(default_factory=dict)
    dates: Mapping[int, float] = field(default_factory=dict)
    asking: Mapping[int, float] = field(default_factory=dict)
    parents: Mapping[int, int] = field(default_factory=dict)
    """The best of the records that this one is related to."""


def late_scores(evidence: Evidence) -> dict[int, float]:
    """Of each record whose token vectors are held."""
    if not evidence.matches:
        return {}
    at = {label: row for row, label in enumerate(evidence.matches)}
    own = np.stack(list(evidence.matches.values()))
    best = own.copy()
    pairs = [
        (row, at[other], far)
        for label, row in at.items()
        for other, far in evidence.near.get(label, ())
        if 0 < far < len(TOKEN_DECAY) and other in at
    ]
    if pairs:
        rows, others, far = np.array(pairs).T
        first = np.flatnonzero(np.diff(rows, prepend=-1))  # a record's pairs stand together
        lent = own[others] * np.array(TOKEN_DECAY, own.dtype)[far][:, None]
        best[rows[first]] = np.maximum(best[rows[first]], np.maximum.reduceat(lent, first, axis=0))
    values = np.maximum(best @ evidence.weights, 0.0).tolist()
    return dict(zip(at, values, strict=True))


def words_found(evidence: Evidence) -> float:
    """How surely the query's words are said somewhere, 0 to 1: by the record that alone matches them best."""
    if not evidence.matches:
        return 1.0
    best = float(np.max(np.stack(list(evidence.matches.values())) @ evidence.weights))
    return min(1.0, max(0.0, (best - WORDS_FROM) / (WORDS_FULL - WORDS_FROM)))


def vector_trust(evidence: Evidence, words: float) -> float:
    """So many times its share the vector counts, 1 to 5. `words`: from `words_found`."""
    apart = min(1.0, max(0.0, (CROWDED - evidence.background[0]) / (CROWDED - APART)))
    said, nowhere = (close + apart * (far - close) for close, far in zip(TRUST_CROWDED, TRUST_APART, strict=True))
    return nowhere + (said - nowhere) * words


def keyword_score(evidence: Evidence, label: int) -> float:
    around = (KEYWORD_DECAY[distance] * evidence.keyword.get(other, 0.0) for other, distance in evidence.near.get(label, ()) if distance)
    return min(1.0, max(evidence.keyword.get(label, 0.0), *around, 0.0))


def deviations(evidence: Evidence, label: int) -> float:
    """By how many standard deviations a record's cosine exceeds the mean, 0 to MOST_DEVIATIONS."""
    if label not in evidence.vector:
        return 0.0
    mean, deviation = evidence.background
    return min(MOST_DEVIATIONS, max(0.0, (evidence.vector[label] - mean) / deviation))


def brevity(evidence: Evidence, label: int) -> float:
    length = evidence.lengths.get(label, FULL_LENGTH) if evidence.near.get(label) else FULL_LENGTH
    return float(min(1.0, length / FULL_LENGTH) ** 0.5)


def score_parts(evidence: Evidence, labels: Iterable[int], late: Mapping[int, float]) -> dict[int, dict[str, float]]:
    """label -> what each side adds to its score: the parts' sum is the score, between 0 and 1. `late`: from `late_scores`.

    `asking` takes away, every other part adds.
    """
    words = words_found(evidence)
    shares = dict(SHARES) | {"vector": SHARES["vector"] * vector_trust(evidence, words)}
    parts: dict[int, dict[str, float]] = {}
    for label in labels:
        short = brevity(evidence, label)
        # without token vectors (not embedded yet, or by an embedder that gives none) the whole text's vector stands for
        # them, and words count in full: nothing else can tell
        shares["keyword"] = SHARES["keyword"] * (words if label in evidence.matches else 1.0)
        instead = short * max(0.0, evidence.vector.get(label, 0.0))
        found = {"late": min(1.0, late.get(label, instead)), "keyword": keyword_score(evidence, label)}
        found |= {"vector": short * deviations(evidence, label)} | ({"date": evidence.dates[label]} if label in evidence.dates else {})
        parts[label] = {side: shares[side] * value / WHOLE for side, value in found.items()}
        if asking := evidence.asking.get(label):
            parts[label]["asking"] = -ASKING_SHARE * asking * sum(parts[label].values())
    lifts = {
        label: GRAPH_SHARE * sum(parts[parent].values()) - sum(parts[label].values())
        for label, parent in evidence.parents.items()
        if label in parts and parent in parts and label != parent
    }
    for label, lift in lifts.items():
        parts[label]["graph"] = max(0.0, lift)
    return parts
