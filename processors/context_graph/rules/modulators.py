"""The four modulators: levels that go back to their baselines, and what one does to others.

A level at a time is a function of the last change and of the time since: it does not depend on how often it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Modulator:
    """`parameter`: what it stands for. `decay`: the share of its distance from the baseline that it loses a second."""

    name: str
    parameter: str
    least: float
    baseline: float
    most: float
    decay: float
    trigger: str
    effect: str
    is_read_only: bool = False

    def clamped(self, level: float) -> float:
        """A level inside the bounds."""
        return min(self.most, max(self.least, level))

    def after(self, level: float, seconds: float) -> float:
        """What a level has become after this many seconds; a clock that goes back changes nothing."""
        return self.baseline + (level - self.baseline) * (1.0 - self.decay) ** max(0.0, seconds)


DOPAMINE = Modulator(
    *("dopamine", "hopfield.beta", 1.0, 3.0, 5.0, 0.05),
    trigger="a broadcast",
    effect="fewer memories stand behind an answer",
)
SEROTONIN = Modulator(
    *("serotonin", "space_weights", 0.0, 0.5, 1.0, 0.02),
    trigger="dopamine far from its baseline",
    effect="views other than E1 weigh more",
)
NORADRENALINE = Modulator(
    *("noradrenaline", "attention.temp", 0.5, 1.0, 2.0, 0.1),
    trigger="a search that left out all it found; a sudden change of dopamine",
    effect="more memories are near enough",
)
ACETYLCHOLINE = Modulator(
    *("acetylcholine", "utl.lr", 0.001, 0.001, 0.002, 0.1),
    trigger="learning scores that were not foreseen",
    effect="shown only: nothing depends on it",
    is_read_only=True,
)
MODULATORS: Mapping[str, Modulator] = {each.name: each for each in (DOPAMINE, SEROTONIN, NORADRENALINE, ACETYLCHOLINE)}
ADJUSTED = tuple(each.name for each in MODULATORS.values() if not each.is_read_only)
HIGH_DOPAMINE, LOW_DOPAMINE = 4.0, 2.0
SEROTONIN_STEP, NORADRENALINE_STEP = 0.05, 0.1
SUDDEN = 0.3
BROADCAST_DOPAMINE = 0.2
"""What a broadcast adds."""
MISSED_NORADRENALINE = 0.5
"""What a search adds that left out all it found; five seconds later, when an agent asks again, 0.3 is left."""
MISSED_EVERY_S = 5.0
"""One such search of a namespace counts in this many seconds: a loop of them does not fill the log."""
ALERT_ABOVE = 1.2
SURPRISE_FACTOR = 1.5


@dataclass(frozen=True, slots=True)
class Levels:
    """Levels of those that are adjusted, as of one moment."""

    dopamine: float = DOPAMINE.baseline
    serotonin: float = SEROTONIN.baseline
    noradrenaline: float = NORADRENALINE.baseline

    def later(self, seconds: float) -> Levels:
        """These after this many seconds."""
        return Levels(**{name: MODULATORS[name].after(getattr(self, name), seconds) for name in ADJUSTED})

    @property
    def is_baseline(self) -> bool:
        return all(self._is_near(name) for name in ADJUSTED)

    @property
    def keeps_order(self) -> bool:
        """Whether a search ranks as at the baseline: noradrenaline says what is found, not in which order."""
        return self._is_near(DOPAMINE.name) and self._is_near(SEROTONIN.name)

    def _is_near(self, name: str) -> bool:
        return bool(abs(getattr(self, name) - MODULATORS[name].baseline) < _NEAR)


_NEAR = 1e-3
"""A level this near to its baseline is there: a search then ranks as if nothing had ever been adjusted."""


@dataclass(frozen=True, slots=True)
class Adjusted:
    """What a change has made of the levels. `cascades`: (modulator, what was added to it) of those that followed."""

    levels: Levels
    applied: float
    cascades: tuple[tuple[str, float], ...]


def acetylcholine(*, is_surprised: bool) -> float:
    """The level that follows from whether the last learning scores were foreseen."""
    return ACETYLCHOLINE.clamped(ACETYLCHOLINE.baseline * (SURPRISE_FACTOR if is_surprised else 1.0))


def adjusted(levels: Levels, name: str, delta: float) -> Adjusted:
    """Add to one modulator, inside its bounds, and to those that follow it."""
    before = getattr(levels, name)
    now = {each: getattr(levels, each) for each in ADJUSTED}
    now[name] = MODULATORS[name].clamped(before + delta)
    applied = now[name] - before
    cascades: list[tuple[str, float]] = []
    if name == DOPAMINE.name:
        if now[name] > HIGH_DOPAMINE:
            cascades.append((SEROTONIN.name, SEROTONIN_STEP))
        elif now[name] < LOW_DOPAMINE:
            cascades.append((SEROTONIN.name, -SEROTONIN_STEP))
        if abs(applied) > SUDDEN:
            cascades.append((NORADRENALINE.name, NORADRENALINE_STEP))
    for other, step in cascades:
        now[other] = MODULATORS[other].clamped(now[other] + step)
    return Adjusted(Levels(**now), applied, tuple(cascades))
