"""Thirteen coupled oscillators, one a view: the more the views agree, the more keep time.

`dθᵢ/dt = ωᵢ + (1/13) Σⱼ K·Āᵢⱼ sin(θⱼ − θᵢ)`. The state is a function of the coupling K and of the agreement Ā alone: it
starts where all phases are evenly spread, and what is told of it is what it comes to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from processors.context_graph.rules.groups import VIEW_COUNT

FREQUENCIES_HZ = (40.0, 8.0, 8.0, 8.0, 25.0, 4.0, 25.0, 12.0, 80.0, 40.0, 15.0, 60.0, 4.0)
"""E1 to E13."""
OMEGA = tuple(each / (sum(FREQUENCIES_HZ) / VIEW_COUNT) for each in FREQUENCIES_HZ)
"""Radians a second: the frequencies in their proportion, the mean 1."""
COUPLING = 2.0
LEAST_COUPLING, MOST_COUPLING = 0.0, 10.0
STEP_S, SECONDS = 0.1, 60.0
SETTLED = 0.3
"""The last share of the time in which it is taken to have settled."""
DORMANT_S = 600.0
STATES = ((0.3, "DORMANT", "DOR"), (0.5, "FRAGMENTED", "FRG"), (0.8, "EMERGING", "EMG"))
"""Below which order parameter each state ends; above the last CONSCIOUS begins."""
HYPERSYNC_ABOVE = 0.95
_TURN = 2 * math.pi


@dataclass(frozen=True, slots=True)
class Synchrony:
    """Thirteen phases in [0, 2π), and the mean order parameter of the time in which they were found."""

    phases: tuple[float, ...]
    mean_r: float

    @property
    def order(self) -> tuple[float, float]:
        """r in [0, 1], 1 where all phases are the same, and the mean phase in [0, 2π)."""
        return order_of(self.phases)

    def turned(self, elapsed_s: float) -> Synchrony:
        """The same order a while later: all phases have turned alike, by the mean frequency."""
        return Synchrony(tuple((phase + elapsed_s) % _TURN for phase in self.phases), self.mean_r)


def order_of(phases: Sequence[float]) -> tuple[float, float]:
    """The order parameter r and the mean phase of these phases."""
    mean = complex(sum(map(math.cos, phases)), sum(map(math.sin, phases))) / len(phases)
    return abs(mean), math.atan2(mean.imag, mean.real) % _TURN


def clamped(coupling: float) -> float:
    """A coupling strength inside its bounds."""
    return min(MOST_COUPLING, max(LEAST_COUPLING, coupling))


def settled(coupling: float, agreement: np.ndarray) -> Synchrony:
    """What thirteen oscillators come to. agreement: [13, 13] in [0, 1].

    Of weakly coupled ones r goes on swinging: the phases are those at which it is nearest to its mean.
    """
    return _settled(coupling, tuple(np.round(agreement, 6).ravel().tolist()))


@lru_cache(maxsize=256)
def _settled(coupling: float, agreement: tuple[float, ...]) -> Synchrony:
    pull = coupling * np.array(agreement).reshape(VIEW_COUNT, VIEW_COUNT) / VIEW_COUNT
    phases, omega = np.arange(VIEW_COUNT) * (_TURN / VIEW_COUNT), np.array(OMEGA)
    steps = round(SECONDS / STEP_S)
    kept: list[np.ndarray] = []
    for step in range(steps):
        sines, cosines = np.sin(phases), np.cos(phases)
        phases = phases + STEP_S * (omega + cosines * (pull @ sines) - sines * (pull @ cosines))
        if step >= steps * (1 - SETTLED):
            kept.append(phases)
    order = np.abs(np.exp(1j * np.stack(kept)).mean(axis=1))
    mean = float(order.mean())
    best = kept[int(np.abs(order - mean).argmin())] % _TURN
    return Synchrony(tuple(best.tolist()), mean)


def state_of(r: float, idle_s: float = 0.0) -> tuple[str, str]:
    """The state of an order parameter and its code; without calls for ten minutes it is dormant."""
    if idle_s >= DORMANT_S:
        return STATES[0][1], STATES[0][2]
    for below, name, code in STATES:
        if r < below:
            return name, code
    return ("HYPERSYNC", "HYP") if r > HYPERSYNC_ABOVE else ("CONSCIOUS", "CON")
