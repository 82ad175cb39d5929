"""When a dream may begin: below an activity, or by itself after a time without any."""

from __future__ import annotations

QUIET_BELOW = 0.15
"""Share of the last minute's seconds with a call that stores or recalls, from which on nobody dreams."""
IDLE_S = 600.0
"""So long it is quiet before a dream begins by itself."""
COOLDOWN_S = 1800.0
"""So long after a dream none begins by itself."""
QUIET_S = 0.1
"""So long after the last call of any namespace a dream goes on."""
MOST_WAIT_S = 5.0
"""So long in all a dream waits for that, so that it ends beside calls that never do."""


def refusal_of(activity: float, *, forced: bool) -> str | None:
    """Why no dream begins at this activity; None where one may."""
    if forced or activity < QUIET_BELOW:
        return None
    return f"activity {activity:.2f} is not below {QUIET_BELOW}: somebody works; `force` dreams all the same"


def waits_for(activity: float, idle_s: float, since_last_s: float | None) -> str | None:
    """What a dream by itself still waits for; None where it is due. `since_last_s`: None before the first dream."""
    if activity >= QUIET_BELOW:
        return "activity"
    if idle_s < IDLE_S:
        return "idleness"
    return "cooldown" if cooldown_left_s(since_last_s) > 0 else None


def cooldown_left_s(since_last_s: float | None) -> float:
    """For how long none begins by itself after the last dream.

    One that lies in the future counts as none: the clock was wrong then, or was put right since.
    """
    if since_last_s is None or since_last_s < 0:
        return 0.0
    return max(0.0, COOLDOWN_S - since_last_s)
