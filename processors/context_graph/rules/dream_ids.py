"""Ids of what a dream puts on the log: functions of the dream, so that a second try says the same."""

from __future__ import annotations

from streams.event_types.context_ends import MEMORIES_MERGED
from streams.ids import derived_id

SOURCE = "thalweg:dreams"


def fact_id(event_type: str, namespace: str, dream_id: str, about: str = "") -> str:
    """The id of a dream's event of this type; `about`: which of several."""
    return derived_id(SOURCE, event_type, namespace, dream_id, about)


def merge_id(namespace: str, dream_id: str) -> str:
    """The id of the event by which a dream merges memories."""
    return fact_id(MEMORIES_MERGED, namespace, dream_id)
