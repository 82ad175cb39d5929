"""How long is waited, and what is promised within a time, on a machine that may stall.

A stall makes one try slow, a program that is too slow several of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

TRIES = 5
MISSES = 1
"""How many of that many tries may miss what is promised."""
SOON_S = 30.0
"""How long anything is waited for that happens at once within a process."""
PATIENCE_S = 60.0
"""How long anything is waited for that takes processes a second on a machine that does nothing else."""


class Tries:
    """What each try came to, until it is clear whether all but MISSES of TRIES keep a promise.

    Every one of them is reported.
    """

    def __init__(self, promise: str, *, enough: int = TRIES - MISSES) -> None:
        """`enough`: how many tries that keep it are enough while none has missed: fewer where a try costs much."""
        self.promise, self._enough = promise, enough
        self._kept: list[str] = []
        self._missed: list[str] = []

    @property
    def made(self) -> int:
        return len(self._kept) + len(self._missed)

    @property
    def are_needed(self) -> bool:
        """Whether another try is to be made. Raises AssertionError once too many have missed."""
        assert len(self._missed) <= MISSES, str(self)
        if len(self._kept) < (TRIES - MISSES if self._missed else self._enough):
            return True
        print(self)
        return False

    def note(self, kept: bool, what: object) -> None:
        """A try, and what it came to."""
        (self._kept if kept else self._missed).append(str(what))

    def __str__(self) -> str:
        return f"{self.promise}: {len(self._missed)} of {self.made} tries missed it: {self._missed}; kept: {self._kept}"


def within(limit_s: float, attempt: Callable[[], float], *, enough: int = TRIES - MISSES) -> None:
    """Assert that tries take less than `limit_s`, all but MISSES of TRIES; `attempt` says how many seconds it took."""
    tries = Tries(f"less than {limit_s:g} s", enough=enough)
    while tries.are_needed:
        took = attempt()
        tries.note(took < limit_s, f"{took:.3f} s")


async def within_async(limit_s: float, attempt: Callable[[], Awaitable[float]]) -> None:
    """The same of what is awaited."""
    tries = Tries(f"less than {limit_s:g} s")
    while tries.are_needed:
        took = await attempt()
        tries.note(took < limit_s, f"{took:.3f} s")
