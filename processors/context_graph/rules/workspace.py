"""The global workspace: memories compete, and searches know of the one that is broadcast."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from processors.context_graph.rules.thresholds import GENERAL, THRESHOLDS

THRESHOLD = THRESHOLDS["theta_kur"].base(GENERAL)
"""The order parameter from which a memory is broadcast without force: no level of recalibration changes it."""
IMPORTANCE = ALIGNMENT = 0.8
BROADCAST_MS = 100
CANDIDATE_S = 5.0
"""How long a memory competes."""
MOST_CANDIDATES = 20
CONTEXT_S = 300.0
"""How long searches know of the memory that was broadcast last."""
WHOLE = "default"
"""The session that stands for the whole namespace."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A memory that competes. `score`: r · importance · alignment, in [0, 1]."""

    memory_id: str
    r: float
    importance: float
    alignment: float
    at: datetime

    @property
    def score(self) -> float:
        return self.r * self.importance * self.alignment

    def as_json(self) -> dict[str, Any]:
        """As it stands in its table."""
        numbers = {"r": self.r, "importance": self.importance, "alignment": self.alignment}
        return {"memory_id": self.memory_id, **numbers, "at": self.at.isoformat()}

    @classmethod
    def of_json(cls, row: Mapping[str, Any]) -> Contender:
        return cls(row["memory_id"], row["r"], row["importance"], row["alignment"], datetime.fromisoformat(row["at"]))


@dataclass(frozen=True, slots=True)
class Competition:
    """What came of one more candidate: who competes now, whether it won, whom it beat, and why."""

    candidates: Sequence[Contender]
    was_selected: bool
    losers: Sequence[str]
    reason: str


def competing(candidates: Sequence[Contender], moment: datetime) -> list[Contender]:
    """Those whose time is not over, the best first."""
    since = moment - timedelta(seconds=CANDIDATE_S)
    return sorted((each for each in candidates if each.at > since), key=lambda each: (-each.score, each.memory_id))


def compete(candidates: Sequence[Contender], new: Contender, threshold: float, *, is_forced: bool) -> Competition:
    """Let a memory compete: it wins with force, or where r is high enough and no other is better."""
    others = [each for each in competing(candidates, new.at) if each.memory_id != new.memory_id]
    now = competing([*others, new], new.at)[:MOST_CANDIDATES]
    better = [each for each in others if each.score > new.score]
    if is_forced:
        return Competition(now, True, [each.memory_id for each in others], "It was forced.")
    if new.r < threshold:
        reason = f"r is {new.r:.3f}, below the threshold {threshold:g}: it competes and is not broadcast."
        return Competition(now, False, [], reason)
    if better:
        reason = f"{better[0].memory_id} has the higher score {better[0].score:.3f}: it competes and is not broadcast."
        return Competition(now, False, [], reason)
    reason = f"r is {new.r:.3f}, and no candidate has a higher score."
    return Competition(now, True, [each.memory_id for each in others], reason)
