"""What a session is when it begins: the tool answers it before the reducer has stored it, so both take it from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def opened(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a session that has just started, from its event's data; ids and times are the caller's."""
    metadata = data.get("metadata") or {}
    claude_session_id = metadata.get("claude_session_id")
    return {
        "platform": data["platform"],
        "project_context": data.get("project_context"),
        "status": "active",
        "summary": None,
        "themes": [],
        "ended_at": None,
        "claude_session_id": claude_session_id if isinstance(claude_session_id, str) else None,
        "external_room_id": data.get("external_room_id"),
        "metadata": metadata,
        "exchange_count": 0,
        "insight_count": 0,
    }
