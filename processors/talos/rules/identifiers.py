"""Ids of Talos: pure functions of the published event or of the statement, never of a counter."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterator
from datetime import date

from processors.talos.rules.canonical import canonical_form
from streams.events import Event

SESSION_ID_MAX = 128
SESSION_ID_FORMAT = (
    "YYYY-MM-DD-slug: a date of the calendar, then letters and digits joined by '-', '_' or '.', "
    "at most 128 characters, e.g. 2026-01-05-ontology-design"
)
_SESSION_ID = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})-[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*")
_FIRST_SUGGESTIONS = range(2, 10)
_NAMED_WORDS = 5
_NAMED_CHARACTERS = 60


def is_session_id(text: str) -> bool:
    """Whether `text` is `YYYY-MM-DD-slug` with a date of the calendar, at most 128 characters long."""
    if len(text) > SESSION_ID_MAX:
        return False
    match = _SESSION_ID.fullmatch(text)
    if match is None:
        return False
    try:
        date.fromisoformat(match[1])
    except ValueError:
        return False
    return True


def dated_id(kind: str, event: Event, position: int) -> str:
    """An id of the form `<kind>-<UTC date of the event>-<12 decimal digits>`.

    The digits hash the event's identity and the item's position in it.
    """
    digest = hashlib.blake2b(f"{event.key}/{position}".encode(), digest_size=8).digest()
    return f"{kind}-{event.time:%Y-%m-%d}-{int.from_bytes(digest, 'big') % 10**12:012d}"


_SESSION_NAMES = {"persona": "Persona", "protocol": "Protocol", "human": "Human"}


def named_id(kind: str, statement: str) -> str:
    """`<kind>-<up to 5 words>-<8 hex>` of the statement's canonical form: equal statements have equal ids."""
    canonical = canonical_form(statement)
    words = "-".join(canonical.split()[:_NAMED_WORDS])[:_NAMED_CHARACTERS].rstrip("-")
    hashed = hashlib.blake2b(canonical.encode(), digest_size=4).hexdigest()
    return "-".join(part for part in (kind, words, hashed) if part)


def wordless_id(named: str) -> str:
    """`<kind>-<8 hex>` of an id that `named_id` made: the same for equal statements, without words."""
    return f"{named.partition('-')[0]}-{named.rpartition('-')[2]}"


def entry_id(event: Event) -> str:
    """The id of the journal entry that the event writes."""
    return dated_id("journal", event, 0)


def goal_id(goal: str) -> str:
    """The id of a session's goal."""
    return named_id("goal", goal)


def session_names(event: Event) -> list[tuple[str, str]]:
    """(label, name) of the persona, protocol and human that a session was opened with."""
    named = ((label, (event.data.get(field) or "").strip()) for field, label in _SESSION_NAMES.items())
    return [(label, name) for label, name in named if name]


def first_suggestions(session_id: str) -> tuple[str, ...]:
    """`<id>-2` to `<id>-9`: what is offered, first free first, when the id is taken."""
    return tuple(_suffixed(session_id, str(number)) for number in _FIRST_SUGGESTIONS)


def free_session_id(session_id: str, taken: Container[str], salt: str) -> str:
    """The first suggestion that is not taken. When all are, the id with eight hex digits hashed from `salt`."""
    return next(candidate for candidate in _candidates(session_id, salt) if candidate not in taken)


def _candidates(session_id: str, salt: str) -> Iterator[str]:
    yield from first_suggestions(session_id)
    attempt = 0
    while True:
        yield _suffixed(
            session_id, hashlib.blake2b(f"{session_id}/{salt}/{attempt}".encode(), digest_size=4).hexdigest()
        )
        attempt += 1


def _suffixed(session_id: str, suffix: str) -> str:
    room = SESSION_ID_MAX - len(suffix) - 1
    return f"{session_id[:room].rstrip('._-')}-{suffix}"
