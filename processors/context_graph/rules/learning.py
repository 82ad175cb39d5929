"""What a memory teaches (UTL): its learning score, and the running means that the pulse tells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Literal

from processors.context_graph.rules.johari import Quadrant, quadrant
from processors.context_graph.rules.lifecycle import Phase, phase_at

ALPHA = 0.3
"""Share of a new memory in the running means."""
STORE_ABOVE, CONSOLIDATE_ABOVE = 0.3, 0.6
"""Learning scores above which storing and consolidating are advised; a memory is kept in any case."""
NOVEL_ABOVE = 0.7
"""With a higher entropy everything that comes is new."""
LOW_BELOW, HIGH_ABOVE = 0.3, 0.7
Intensity = Literal["Low", "Medium", "High"]
ConsolidationPhase = Literal["NREM", "REM", "Wake"]
RESTLESS_FROM, RESTLESS_TO = 3, 7
"""Calls in ten minutes that are neither rest nor work."""
AWAKE = 0.0
"""The phase angle of a system that does not dream, in radians."""


@dataclass(frozen=True)
class Learning:
    """What was measured of a memory when it came, all in [0, 1] but `emotional_weight`, in [0.5, 1.5]."""

    entropy: float
    """How new it is (ΔS): at 0.5 as new as four of five memories are at most."""
    coherence: float
    """How well it fits with what is there (ΔC): at 0.5 as well as one of five memories does at most."""
    surprise: float
    """How far it is from the nearest memory."""
    emotional_weight: float
    learning_score: float

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Learning | None:
        """What an event says of it; None where it does not say all, as other producers' do not."""
        values = [float(data[name]) for field in fields(cls) if data.get(name := field.name) is not None]
        return cls(*values) if len(values) == len(fields(cls)) else None


@dataclass(frozen=True)
class Means:
    """What a namespace has learned: exponential means over its memories, and how often it was used."""

    interactions: int = 0
    entropy: float = 0.5
    coherence: float = 0.5
    learning_score: float = 0.0
    novel_since: datetime | None = None
    """Since when the entropy has been above NOVEL_ABOVE, by the times of the memories."""

    @classmethod
    def of(cls, row: Mapping[str, Any] | None) -> Means:
        """Those of a row of `context_utl`, or of a namespace without one."""
        return cls() if row is None else cls(**{field.name: row[field.name] for field in fields(cls)})

    @property
    def phase(self) -> Phase:
        return phase_at(self.interactions)

    @property
    def quadrant(self) -> Quadrant:
        return quadrant(self.entropy, self.coherence)

    def after(self, learning: Learning | None, moment: datetime) -> Means:
        """These after one more interaction; a memory that was not measured leaves the means as they are."""
        used = replace(self, interactions=self.interactions + 1)
        if learning is None:
            return used
        entropy = _mean(self.entropy, learning.entropy)
        return replace(
            used,
            entropy=entropy,
            coherence=_mean(self.coherence, learning.coherence),
            learning_score=_mean(self.learning_score, learning.learning_score),
            novel_since=(self.novel_since or moment) if entropy > NOVEL_ABOVE else None,
        )


def _mean(known: float, new: float) -> float:
    return round((1.0 - ALPHA) * known + ALPHA * new, 12)  # 0.65 in the pulse, not 0.6499999999999999


def learning_score(
    entropy: float, coherence: float, emotional_weight: float, phase: Phase, phase_angle: float = AWAKE
) -> float:
    """`4·λ_S·λ_C·ΔS·ΔC·wₑ·cos φ`, clamped to [0, 1]. Raises ValueError for a number that is not finite."""
    if not all(map(math.isfinite, (entropy, coherence, emotional_weight, phase_angle))):
        raise ValueError("a learning score is of finite numbers")
    score = phase.gain * entropy * coherence * emotional_weight * math.cos(phase_angle)
    return min(1.0, max(0.0, score))


def intensity(score: float) -> Intensity:
    """A learning score in a word."""
    if score < LOW_BELOW:
        return "Low"
    return "High" if score > HIGH_ABOVE else "Medium"


def consolidation_phase(calls: int) -> ConsolidationPhase:
    """What a sleeper would be in after this many calls in ten minutes. Shown only: nothing depends on it."""
    if calls < RESTLESS_FROM:
        return "NREM"
    return "Wake" if calls > RESTLESS_TO else "REM"
