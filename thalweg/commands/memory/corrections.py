"""`thalweg memory correct` and `retract`: an operator's word on a journal entry, decided by reducers."""

from __future__ import annotations

from typing import Any

from mcp_ingress.writes import checked_text
from processors.memory.vector_facts import VECTOR_STAGE
from streams.errors import Refused
from streams.event_types.talos import JOURNAL_CORRECTED, JOURNAL_RETRACTED
from thalweg.client.node_process import ensure_node
from thalweg.control.requests import decide
from thalweg.settings import Settings

STAGES = (VECTOR_STAGE, "prune")
"""What has seen a correction once it is answered: the new text is found by meaning, what was found in the old one not
at all."""


def correct(settings: Settings, entry_id: str, content: str, reason: str | None) -> dict[str, Any]:
    """The new entry in place of this one: `{"entry_id", "corrects_id"}`.

    Raises Refused when it cannot be corrected.
    """
    data = _about(entry_id, reason) | {"content": checked_text({"content": content}, "content")}
    ensure_node(settings.home)
    return decide(settings, JOURNAL_CORRECTED, data, stages=STAGES)


def retract(settings: Settings, entry_id: str, reason: str | None) -> dict[str, Any]:
    """The retracted entry: `{"entry_id"}`. Raises Refused when there is none of that id that still holds."""
    data = _about(entry_id, reason)
    ensure_node(settings.home)
    return decide(settings, JOURNAL_RETRACTED, data, stages=STAGES)


def _about(entry_id: str, reason: str | None) -> dict[str, Any]:
    if not entry_id.strip():
        raise Refused("The id is blank; `thalweg search` shows the ids of journal entries.")
    return {"entry_id": entry_id.strip()} | ({"reason": reason} if reason else {})
