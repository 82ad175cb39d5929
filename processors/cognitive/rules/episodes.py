"""Episodes (cognitive memory 3.4): the reward of judgements, when a reflection is due, and the form of one."""

from __future__ import annotations

DUE_BELOW = 0.3


def reward(relevance: float, accuracy: float, completeness: float) -> float:
    """2·(.4·relevance + .4·accuracy + .2·completeness) − 1, from judgements of 0 to 1."""
    return round(2 * (0.4 * relevance + 0.4 * accuracy + 0.2 * completeness) - 1, 12)


def is_reflection_due(value: float) -> bool:
    """Whether a reward is so low that a lesson should be drawn."""
    return value < DUE_BELOW


def reflection_warnings(reflection: str) -> list[str]:
    """A line when the text is not of the form `Problem: … Lesson: …`."""
    missing = [part for part in ("Problem:", "Lesson:") if part not in reflection]
    return (
        [f"The reflection has no {' and no '.join(missing)}; the form is 'Problem: ... Lesson: ...'."]
        if missing
        else []
    )
