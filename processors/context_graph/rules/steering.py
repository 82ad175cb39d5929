"""Steering: how well a memory is kept, as one reward of three scores, and what would raise it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEAST_WEIGHT = 0.1
"""An edge of less connects nothing."""
DUPLICATE = 0.9
"""Memories with a similar edge of at least this say the same."""
DUPLICATE_PENALTY = 0.4
"""The share of its quality that a duplicate loses."""
LOW_QUALITY = 0.3
TARGET_ACCURACY = 0.8
HEALTHY, DEGRADED = 0.7, 0.4
ATTENTION_BELOW = -0.5
QUALITY_WEIGHTS: Mapping[str, float] = {"learning_score": 0.4, "importance": 0.3}
TREND_BAND = 0.02


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted of memories and edges. `quality`: mean over the living, without what duplicates lose."""

    memories: int
    connected: int
    duplicates: int
    low_quality: int
    quality: float
    quality_of_duplicates: float


@dataclass(frozen=True, slots=True)
class Facts(Counted):
    """What is counted of a namespace."""

    relevant: int
    judged: int
    learning: float
    recent_learning: float | None
    edges_pruned: int
    merged: int

    @property
    def orphans(self) -> int:
        return self.memories - self.connected

    @property
    def connectivity(self) -> float:
        """The share that has an edge. One that was merged counts as connected: a merge makes no orphans."""
        return (self.connected + self.merged) / (self.memories + self.merged) if self.memories else 0.0

    @property
    def average_quality(self) -> float:
        """The mean quality, duplicates counting less."""
        share = self.duplicates / self.memories if self.memories else 0.0
        return self.quality - DUPLICATE_PENALTY * share * self.quality_of_duplicates

    @property
    def accuracy(self) -> float:
        """The share of judged results that were relevant, drawn towards a half while few were judged."""
        return (self.relevant + 1) / (self.judged + 2)


@dataclass(frozen=True, slots=True)
class Reward:
    """Three scores in [-1, 1] and their mean. All 0 of an empty store."""

    gardener: float = 0.0
    curator: float = 0.0
    assessor: float = 0.0

    @classmethod
    def of(cls, facts: Facts) -> Reward:
        if not facts.memories:
            return cls()
        assessor = facts.accuracy + facts.learning - 1.0
        return cls(2 * facts.connectivity - 1, 2 * facts.average_quality - 1, max(-1.0, min(1.0, assessor)))

    @property
    def value(self) -> float:
        return (self.gardener + self.curator + self.assessor) / 3

    @property
    def by_name(self) -> dict[str, float]:
        return {"gardener": self.gardener, "curator": self.curator, "assessor": self.assessor}

    @property
    def dominant(self) -> str:
        """The name of the highest score."""
        return max(self.by_name, key=lambda name: self.by_name[name])

    @property
    def limiting(self) -> str:
        """The name of the lowest score."""
        return min(self.by_name, key=lambda name: self.by_name[name])

    @property
    def needs_attention(self) -> bool:
        return min(self.by_name.values()) < ATTENTION_BELOW


def health(connectivity: float) -> str:
    """How a graph is of which this share of memories has an edge."""
    if connectivity > HEALTHY:
        return "healthy"
    return "degraded" if connectivity > DEGRADED else "critical"


def trend(before: float, now: float | None) -> str:
    """Where the learning scores go, of the last memories beside the running mean."""
    if now is None or abs(now - before) <= TREND_BAND:
        return "stable"
    return "improving" if now > before else "worsening"


def recommendations(facts: Facts) -> list[dict[str, str]]:
    """What would raise the reward, the most urgent first: a tool, and why."""
    found: list[dict[str, str]] = []
    if facts.duplicates:
        sentence = f"{facts.duplicates} memories say what another one says: merge them."
        found.append({"priority": "high", "action": "trigger_consolidation", "description": sentence})
    if facts.orphans:
        sentence = f"{facts.orphans} memories have no edge: a dream joins what belongs together."
        priority = "high" if health(facts.connectivity) == "critical" else "medium"
        found.append({"priority": priority, "action": "trigger_dream", "description": sentence})
    if facts.low_quality:
        sentence = f"{facts.low_quality} memories taught little and matter little: see which can go."
        found.append({"priority": "low", "action": "get_pruning_candidates", "description": sentence})
    if facts.memories and facts.judged < 10:
        sentence = f"{facts.judged} results were judged: judge what searches return."
        found.append({"priority": "low", "action": "update_synergy_matrix", "description": sentence})
    order = ("high", "medium", "low")
    return sorted(found, key=lambda each: order.index(each["priority"]))
