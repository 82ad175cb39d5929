"""Ids of sessions, exchanges, patterns and insights.

They are UUIDs made from the event that asked for the object, never from stored state.
"""

from __future__ import annotations

import uuid

from streams.events import Event
from streams.ids import derived_id

SESSION, EXCHANGE, PATTERN, INSIGHT = "valence.session", "valence.exchange", "valence.pattern", "valence.insight"


def object_id(event: Event, role: str) -> str:
    """The id of the object that the event makes in this role: a repeated delivery makes the same."""
    return derived_id(str(event.key), role)


def as_uuid(text: str) -> str | None:
    """The id in its usual form (lower case, hyphens); None when the text is not a UUID."""
    try:
        return str(uuid.UUID(text)) if len(text) == 36 else None
    except ValueError:
        return None
