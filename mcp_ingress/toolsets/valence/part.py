"""Valence's own part of a node."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.valence.belief_follower import HeldBeliefs


@dataclass
class Valence:
    """`beliefs`: what beliefs are searched under, in memory."""

    beliefs: HeldBeliefs = field(default_factory=HeldBeliefs)
    auto_capture: bool = False
    """Whether a user's turn that is worth keeping becomes an insight without a call."""
