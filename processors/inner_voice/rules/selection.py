"""Selects snippets from scored candidates: floor, share of each source, duplicates, free slots.

Thoughts are one source, entities and observations of the knowledge graph together the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from processors.memory.kind import Origin, TableName


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that passed the filters, with its cosine to the query. `text` is the stored text in full.

    `cluster`: which records state the same, by number; None where that is not known. `also`: (kind, id) of the others;
    `times`: how often it was stated. `earlier`: (kind, id) of records of which it changes what they say; `disputed_by`:
    of those that change what it says, or are in an open tension with it, whose ids `tensions` has. `said`: of a turn of
    a captured session who said it, and where.
    """

    table: TableName
    record_id: str
    text: str
    score: float
    created_at: datetime
    origin: Origin | None = None
    cluster: int | None = None
    also: Sequence[tuple[str, str]] = ()
    times: int = 1
    earlier: Sequence[tuple[str, str]] = ()
    disputed_by: Sequence[tuple[str, str]] = ()
    tensions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_thought(self) -> bool:
        return self.table == "thoughts"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A candidate that was picked, with the hash by which it was compared."""

    candidate: Candidate
    content_hash: str


def ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first; equal scores newer first, then by id."""
    by_id = sorted(candidates, key=lambda candidate: (candidate.record_id, candidate.table))
    by_age = sorted(by_id, key=lambda candidate: candidate.created_at, reverse=True)
    return sorted(by_age, key=lambda candidate: candidate.score, reverse=True)


def adapted_floor(best_scores: Sequence[float], floor: float, min_floor: float) -> float:
    """The floor in use. `best_scores`: the best of each fetched source that has candidates at all.

    It is lowered only when a source has nothing above it, only as far as needed, and never below `min_floor`.
    """
    starving = [best for best in best_scores if best < floor]
    if not starving:
        return floor
    within_reach = [best for best in starving if best >= min_floor]
    if within_reach:
        return max(min_floor, min(within_reach))
    return floor if len(starving) < len(best_scores) else min(floor, min_floor)


def knowledge_slots(mix: float, top_k: int, *, both_hit: bool) -> int:
    """How many of `top_k` slots are the knowledge graph's, halves up. Each source gets one when both have hits."""
    slots = math.floor(mix * top_k + 0.5)
    if both_hit and 0 < mix < 1 and top_k >= 2:
        return min(max(slots, 1), top_k - 1)
    return slots


def without_repeats(candidates: Iterable[Candidate], hash_of: Callable[[str], str]) -> list[Snippet]:
    """One hit for each row, each text and each cluster.

    Of equals the better score stays, of equal scores the knowledge graph's.
    """
    seen: set[str | tuple[str, str] | int] = set()
    kept: list[Snippet] = []
    for candidate in sorted(ranked(candidates), key=lambda candidate: (-candidate.score, candidate.is_thought)):
        identity, digest = (candidate.table, candidate.record_id), hash_of(candidate.text)
        if identity not in seen and digest not in seen and candidate.cluster not in seen:
            seen |= {identity, digest}
            if candidate.cluster is not None:
                seen.add(candidate.cluster)
            kept.append(Snippet(candidate, digest))
    return kept


def pick(
    candidates: Sequence[Candidate], floor: float, mix: float, top_k: int, hash_of: Callable[[str], str]
) -> list[Snippet]:
    """At most `top_k` hits at or above the floor, best first.

    Each source fills its share; the best of the others fill what is left.
    """
    above = [candidate for candidate in candidates if candidate.score >= floor]
    both_hit = {candidate.is_thought for candidate in above} == {True, False}
    unique = without_repeats(above, hash_of)
    share = {False: knowledge_slots(mix, top_k, both_hit=both_hit)}
    share[True] = top_k - share[False]
    taken: list[Snippet] = []
    for is_thought, slots in share.items():
        taken += [hit for hit in unique if hit.candidate.is_thought is is_thought][:slots]
    chosen = {id(hit) for hit in taken}
    taken += [hit for hit in unique if id(hit) not in chosen][: top_k - len(taken)]
    place = {id(candidate): number for number, candidate in enumerate(ranked(hit.candidate for hit in taken))}
    return sorted(taken, key=lambda hit: place[id(hit.candidate)])
