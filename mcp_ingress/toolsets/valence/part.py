"""Valence's own part of a node."""

from __future__ import annotations

from dataclasses import dataclass, field

from storage.valence.belief_follower import BeliefFollower


@dataclass
class Valence:
    """`beliefs`: what beliefs are searched under, in memory."""

    beliefs: BeliefFollower = field(default_factory=BeliefFollower)
    auto_capture: bool = False
    """Whether a user's turn that is worth keeping becomes an insight without a call."""
