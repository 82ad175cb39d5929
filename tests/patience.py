"""How long is waited, and what is promised within so many seconds, on a machine that may stall: a stall makes one try slow, a program that waits too long all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

TRIES = 4
SOON_S = 30.0
"""How long anything is waited for that happens at once within a process."""
PATIENCE_S = 60.0
"""How long anything is waited for that takes processes a second on a machine that does nothing else."""


def within(limit_s: float, attempt: Callable[[], float]) -> None:
    """Assert that one of a few tries takes less than `limit_s`; `attempt` says how many seconds it took."""
    took: list[float] = []
    while not took or took[-1] >= limit_s:
        assert len(took) < TRIES, f"{took} s, never less than {limit_s} s"
        took.append(attempt())


async def within_async(limit_s: float, attempt: Callable[[], Awaitable[float]]) -> None:
    """The same of what is awaited."""
    took: list[float] = []
    while not took or took[-1] >= limit_s:
        assert len(took) < TRIES, f"{took} s, never less than {limit_s} s"
        took.append(await attempt())
