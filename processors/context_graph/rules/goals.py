"""Goals: what a namespace's memories are about, as a group of them that belongs together."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources

import numpy as np

from processors.context_graph.rules.views.catalogue import VIEWS
from storage.search.vectors.token_vectors import unit
from streams.ids import derived_id

NORTH_STAR = "NorthStar"
LEAST_MEMBERS = 3
"""A goal of fewer memories is provisional: the next bootstrap may replace its members."""
PARENT_ALIGNMENT = 0.5
"""A theme that is aligned with a goal this much at least is its child."""
DOMINANT = 0.55
"""A view is dominant where a goal's memories are aligned with its centre this much."""
FULL_SIZE = 50
"""This many memories make a goal large; all of them in a smaller store."""
STRONG = (50, 0.85)
"""Members and coherence of a North Star that is called strong."""
LEVELS = (("Strategic", 0.2, 1.6, 0.80), ("Tactical", 0.1, 0.8, 0.75))
"""Levels of themes: what each needs of all memories or of an equal share of them, and of coherence.

Of a hundred memories these are the 20 and 10 that the levels are known by.
"""
LOWEST_LEVEL = "Operational"
TIE = 0.13
"""The largest candidate is taken of those whose confidence is nearer to the best than this.

Of one matter the whole store was up to 0.123 below its best cluster; of several mixed, 0.15 and more.
"""
MOST_TEXT = 300
"""Characters of a goal's text."""
_LEAST_BACKGROUND = 3
_SENTENCE = re.compile(r".+?[.!?](?=\s|$)", re.DOTALL)


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
    parent_alignment: float | None = None
    """Of a theme with the goal under which it was found"""

    @property
    def is_provisional(self) -> bool:
        return len(self.member_ids) < LEAST_MEMBERS

    @property
    def is_strong(self) -> bool:
        return is_strong(len(self.member_ids), self.coherence)


def north_star_id(namespace: str) -> str:
    """The id of the one North Star that a namespace has."""
    return derived_id(namespace, "context.goal")


def subgoal_id(namespace: str, asked_parent: str, medoid_id: str) -> str:
    """The id of a theme under a goal: found again around the same memory it is the same."""
    return derived_id(namespace, "context.goal", asked_parent, medoid_id)


def is_strong(members: int, coherence: float) -> bool:
    """Whether a goal stands on many memories that belong together."""
    least_members, least_coherence = STRONG
    return members >= least_members and coherence >= least_coherence


@cache
def background() -> tuple[str, ...]:
    """Sentences of unrelated matters, against which memories are held."""
    text = resources.files(__package__).joinpath("background.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


def nearness_within(members: np.ndarray) -> np.ndarray:
    """(n,) cosine of each of (n, dim) rows of length 1 with the centre of the others; of one row 1."""
    others = members.sum(axis=0) - members if len(members) > 1 else members
    nearness: np.ndarray = np.einsum("nd,nd->n", members, unit(others))
    return nearness


def coherence_of(members: np.ndarray, unrelated: np.ndarray, share: float = 1.0) -> float:
    """How far memories are of one matter, 0 to 1: 0 as near to each other as unrelated sentences are.

    members: (n, dim) rows of length 1, of at least one. unrelated: (m, dim) rows of the background. It is 2·P − 1, P
    the probability that a member is nearer to the centre of the others than an unrelated sentence is. `share`: of all
    memories that the members are. Those of a cluster were chosen because they are near each other, so that they are
    held against the same share of the background, the nearest of it.
    """
    outer = np.sort(unrelated @ unit(members.sum(axis=0)))
    outer = outer[-max(_LEAST_BACKGROUND, math.ceil(share * len(outer))) :]
    above = np.searchsorted(outer, nearness_within(members), side="left") / len(outer)
    return float(np.clip(2 * above.mean() - 1, 0.0, 1.0))


def dominant_views(aligned: np.ndarray) -> tuple[list[str], float]:
    """The views in which (n, 13) alignments with the centre are DOMINANT in the mean, and their share.

    The share is of the views that say something of at least one member.
    """
    known = ~np.isnan(aligned)
    counts = known.sum(axis=0)
    means = np.where(known, aligned, 0.0).sum(axis=0) / np.maximum(counts, 1)
    is_dominant = (counts > 0) & (means >= DOMINANT)
    names = [view.label for view, dominant in zip(VIEWS, is_dominant, strict=True) if dominant]
    return names, len(names) / max(1, int((counts > 0).sum()))


def confidence_of(coherence: float, members: int, memories: int, dominant_share: float) -> float:
    """0.4 coherence + 0.3 size + 0.3 dominant views; `memories`: of the store."""
    size = min(members / min(FULL_SIZE, memories), 1.0)
    return 0.4 * coherence + 0.3 * size + 0.3 * dominant_share


def level_of(share: float, clusters: int, coherence: float) -> str:
    """The level of a theme that has this share of all memories, where there were this many clusters."""
    for level, of_all, of_equal, least_coherence in LEVELS:
        if share >= min(of_all, of_equal / clusters) and coherence >= least_coherence:
            return level
    return LOWEST_LEVEL


def goal_text(text: str) -> str:
    """The first sentence of a text, or what of it fits."""
    plain = " ".join(text.split())
    found = _SENTENCE.match(plain)
    sentence = plain if found is None else found.group()
    return sentence if len(sentence) <= MOST_TEXT else sentence[: MOST_TEXT - 1].rstrip() + "…"


def passing_threshold(best_confidence: float) -> float:
    """The highest threshold of two digits that this confidence reaches."""
    return math.floor(best_confidence * 100 + 1e-9) / 100
