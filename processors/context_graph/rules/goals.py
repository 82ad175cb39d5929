"""Goals: what a namespace's memories are about, as a group of them that belongs together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from streams.ids import derived_id

NORTH_STAR = "NorthStar"
LEAST_MEMBERS = 3
"""A goal of fewer memories is provisional: the next bootstrap may replace its members."""
PARENT_ALIGNMENT = 0.5
"""A theme that is aligned with a goal this much at least is its child."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal and the memories that it was found in. `level`: NorthStar, Strategic, Tactical or Operational.

    `text`: the first sentence of its medoid. `dominant_views`: E1 to E13. Members may have been merged since.
    """

    goal_id: str
    level: str
    text: str
    medoid_id: str
    member_ids: Sequence[str]
    parent_goal_id: str | None
    confidence: float
    coherence: float
    dominant_views: Sequence[str]
    created_at: datetime

    @property
    def is_provisional(self) -> bool:
        return len(self.member_ids) < LEAST_MEMBERS


def north_star_id(namespace: str) -> str:
    """The id of the one North Star that a namespace has."""
    return derived_id(namespace, "context.goal")


def subgoal_id(namespace: str, asked_parent: str, medoid_id: str) -> str:
    """The id of a theme under a goal: found again around the same memory it is the same."""
    return derived_id(namespace, "context.goal", asked_parent, medoid_id)
