"""A conversation: the fields of a new session, size and number of an exchange, marks of an insight.

The tools answer these before the reducer has stored them, so both take them from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CHARACTERS_PER_TOKEN = 4
INSIGHT_CONFIDENCE = 0.8
"""Confidence of the belief of an insight, unless the caller gives one."""
INSIGHT_EXTRACTION = "conversation_extraction"
"""The extraction_method of the belief of an insight."""
INSIGHT_LINK = "manual"
"""How belief and session were linked: by a call, not by automatic capture."""


def new_session(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a session that has just started, from its event's data. Ids and times are the caller's."""
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


def tokens_approx(content: str) -> int:
    """A quarter of the characters, rounded up: near enough for a budget, the same everywhere."""
    return -(-len(content) // CHARACTERS_PER_TOKEN)


def next_sequence(exchange_count: int) -> int:
    """The number of the next exchange: those of a session are 1..n without gaps, in the order of the log."""
    return exchange_count + 1
