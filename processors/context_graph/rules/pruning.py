"""Which memories could go, why, and in what order. Nothing goes by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

Reason = Literal["redundant", "orphaned", "low_alignment", "stale"]
REASONS: tuple[Reason, ...] = get_args(Reason)
NEAR_DUPLICATE = 0.90
"""The cosine from which another memory that says the same makes one redundant."""
FRESH_DAYS = 1.0
"""A younger memory is never a candidate, unless a staleness of less is asked for."""
PROTECTING_EDGES = 3
PROTECTED = 0.5
"""What a memory with this many edges has of its priority."""
UNKNOWN_ALIGNMENT = 0.5
"""That of a memory without a goal."""
USUAL_IMPORTANCE = 0.5


class Standing(NamedTuple):
    """What is known of a living memory.

    `idle_days`: since it was stored or recalled last; `alignment` None: not known.
    """

    memory_id: str
    age_days: float
    idle_days: float
    alignment: float | None
    connections: int
    byte_size: int
    importance: float = USUAL_IMPORTANCE
    redundant_with: str | None = None

    def aligned(self, alignment: float | None) -> Standing:
        """The same with its alignment."""
        return self._replace(alignment=alignment)

    @property
    def is_protected(self) -> bool:
        return self.connections >= PROTECTING_EDGES


def is_fresh(memory: Standing, staleness_days: float) -> bool:
    """Whether a memory is too young to be a candidate, however it is aligned."""
    return memory.age_days < min(FRESH_DAYS, staleness_days)


def reason_of(memory: Standing, staleness_days: float, least_alignment: float) -> Reason | None:
    """Why a memory is a candidate: the first reason that holds."""
    if is_fresh(memory, staleness_days):
        return None
    if memory.redundant_with is not None:
        return "redundant"
    is_old = memory.age_days >= staleness_days
    if is_old and memory.connections == 0:
        return "orphaned"
    if memory.alignment is not None and memory.alignment < least_alignment:
        return "low_alignment"
    return "stale" if is_old and memory.idle_days >= staleness_days else None


def priority_of(memory: Standing) -> float:
    """0 to 1: higher where it is aligned less, older, joined to less, and less important."""
    alignment = UNKNOWN_ALIGNMENT if memory.alignment is None else memory.alignment
    score = 0.5 * (1 - alignment) + 0.3 * min(memory.age_days / 365, 1.0) + 0.2 / (memory.connections + 1)
    score *= 1 + USUAL_IMPORTANCE - memory.importance
    return min(1.0, max(0.0, score * (PROTECTED if memory.is_protected else 1.0)))


def standing_for(pairs: Mapping[str, list[str]], rank: Mapping[str, tuple[object, ...]]) -> dict[str, str]:
    """By memory that is redundant the best of those that say the same: used more, or as often and newer.

    `pairs`: by memory those near to it that say the same; `rank`: by memory how often it was used, and when it was
    made.
    """
    best = {one: max(others, key=lambda other: rank[other]) for one, others in pairs.items()}
    return {one: other for one, other in best.items() if rank[other] > rank[one]}
