"""REM: edges between memories that are far apart and have a cause, a name or a recall in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from processors.context_graph.rules.edges import EdgeChange, ends_of
from processors.context_graph.rules.hyperbolic import LEAP, distances
from processors.memory.rules.statement import Statement, measure

Shared = Literal["cause", "name", "recall"]
QUERIES = 100
"""Memories from which a dream sets out at most."""
WEIGHT, CONFIDENCE = 0.3, 0.5
SURE_AT = 1.4
"""From this distance on a leap is sure."""
INNER_RADIUS, INNER_BONUS = 0.5, 0.2
LEAST_CONFIDENCE = 0.5
MOST_OF_ONE = 2
"""New edges of one memory in a dream, so that none becomes a hub of strangers."""
RARE_UP_TO = 6
"""A name that more memories have than this joins none of them."""
MOST_NAMES = 3
"""Names of one memory that are looked for."""
SHORTEST_NAME = 3
MAX_CHARS = 2000
_SENTENCE = re.compile(r"[.!?\n]\s+|\n")


@dataclass(frozen=True, slots=True)
class Bond:
    """Two memories, and what they have in common."""

    one: str
    other: str
    shared: Shared
    about: str
    """The id of the cause, the name, or the id of the query."""


@dataclass(frozen=True, slots=True)
class Leap:
    """A bond between two memories that are `distance` apart."""

    bond: Bond
    distance: float

    @property
    def change(self) -> EdgeChange:
        """What a dream makes of it."""
        source, target = ends_of(self.bond.one, self.bond.other, "rem")
        return EdgeChange(source, target, "rem", WEIGHT, CONFIDENCE)

    @property
    def evidence(self) -> dict[str, str]:
        return {"shared": self.bond.shared, "about": self.bond.about}


def names_in(text: str) -> list[str]:
    """Names in a text, case-folded, the longest first.

    A name is a word with a capital or a digit that does not begin a sentence.
    """
    found: set[str] = set()
    for sentence in _SENTENCE.split(text[:MAX_CHARS]):
        found |= Statement(sentence).names
    names = (name for name in found if len(name) >= SHORTEST_NAME and "'" not in name and measure(name) is None)
    return sorted((name for name in names if not name.isdigit()), key=lambda name: (-len(name), name))


def confidence_of(distance: float, radius: float) -> float:
    """How sure a leap over this distance is from a point at this radius."""
    bonus = INNER_BONUS if radius < INNER_RADIUS else 0.0
    return min(1.0, min(distance / SURE_AT, 1.0) + bonus)


def leaps(
    bonds: Iterable[Bond], points: Mapping[str, np.ndarray], joined: Collection[tuple[str, str]], most: int = QUERIES
) -> list[Leap]:
    """The significant leaps, the furthest first. `points`: of the ball; `joined`: pairs that have an edge already."""
    found: dict[tuple[str, str], Leap] = {}
    for bond in bonds:
        pair = ends_of(bond.one, bond.other, "rem")
        if pair[0] == pair[1] or pair in found or pair in joined or not points.keys() >= set(pair):
            continue
        here, there = points[bond.one], points[bond.other]
        distance = float(distances(here, there[None, :])[0])
        if distance >= LEAP and confidence_of(distance, float(np.linalg.norm(here))) >= LEAST_CONFIDENCE:
            found[pair] = Leap(bond, distance)
    taken: Counter[str] = Counter()
    chosen: list[Leap] = []
    for pair, leap in sorted(found.items(), key=lambda one: (-one[1].distance, one[0])):
        if len(chosen) < most and all(taken[end] < MOST_OF_ONE for end in pair):
            taken.update(pair)
            chosen.append(leap)
    return chosen
