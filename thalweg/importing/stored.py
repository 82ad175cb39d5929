"""What of an import the store holds already, so that it is not put on the log again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from thalweg.process.running import Running

_DIGESTS = "SELECT event_key, digest FROM events WHERE event_key IN (SELECT unnest(?::UUID[]))"
_LETTERS = "SELECT dead_letter_id FROM dead_letters WHERE dead_letter_id IN (SELECT unnest(?::VARCHAR[]))"


@dataclass(frozen=True, slots=True)
class Stored:
    """Event key -> digest of the body, and ids of dead letters, of those that were asked for."""

    events: Mapping[str, int]
    letters: Set[str]


FindStored = Callable[[Sequence[str], Sequence[str]], Awaitable[Stored]]
"""Of these event keys and dead letters, those that are stored."""


async def nothing_stored(keys: Sequence[str], letters: Sequence[str]) -> Stored:
    """Without a store to ask everything counts as new; what comes twice takes effect once all the same."""
    return Stored({}, set())


async def find_stored(running: Running, request: dict[str, Any]) -> dict[str, Any]:
    """{`events`: key -> digest, `letters`: ids}. What is surely not there is not queried."""
    keys = [key for key in map(str, request["keys"]) if running.store.writer.may_hold("events", (key,))]
    letters = [
        letter for letter in map(str, request["letters"]) if running.store.writer.may_hold("dead_letters", (letter,))
    ]

    def find(cursor: Any) -> dict[str, Any]:
        digests = cursor.execute(_DIGESTS, [keys]).fetchall() if keys else []
        known = cursor.execute(_LETTERS, [letters]).fetchall() if letters else []
        return {"events": {str(key): digest for key, digest in digests}, "letters": [letter for (letter,) in known]}

    return await running.store.reader.run(find)
