"""The arguments that the tools which keep a memory share: their checks and their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from processors.context_graph.rules.memories import IMPORTANCE, clean_tags
from processors.context_graph.rules.modalities import WORDLESS, searched_text
from streams.event_types.context_graph import MODALITIES
from streams.events import Event

MAX_CONTENT_BYTES = 1 << 20
MAX_TAGS, MAX_TAG = 50, 100

CONTENT = {"type": "string", "description": "The text; of an image or recording a caption, data: URI, path or URL"}
MODALITY = {"type": "string", "enum": MODALITIES, "default": "text", "description": "What the content is"}
IMPORTANCE_SCHEMA = {
    "type": "number",
    "minimum": 0,
    "maximum": 1,
    "default": IMPORTANCE,
    "description": "How much it matters; orders no search",
}


def memory_request(call: Call, short_type: str, arguments: Mapping[str, Any]) -> Event:
    """The event of a memory that is kept, its session beside it. Raises Refused."""
    content, modality = checked_content(arguments), arguments["modality"]
    given = arguments.get("rationale")
    rationale = None if given is None else writes.checked_text(arguments, "rationale")
    tags = clean_tags(arguments.get("tags"))
    if searched_text(content, modality, rationale, tags) is None:
        raise writes.invalid(WORDLESS.format(modality=modality), "content", "a caption", reason="missing")
    about = {"modality": modality, "importance": float(arguments["importance"]), "tags": tags or None}
    event = writes.request(call, short_type, {"content": content, "rationale": rationale, **about})
    session_id = call.session_id or call.connection.open_session_id
    return writes.with_findings(event, {"session_id": session_id}).changed(subject=session_id)


def checked_content(arguments: Mapping[str, Any]) -> str:
    """The content. Raises Refused when it is blank or longer than MAX_CONTENT_BYTES."""
    content = writes.checked_text(arguments, "content", most=None)
    size = len(content.encode())
    if size > MAX_CONTENT_BYTES:
        message = f"The argument `content` has {size} bytes of UTF-8; at most {MAX_CONTENT_BYTES} are accepted: cut it."
        raise writes.invalid(message, "content", MAX_CONTENT_BYTES, reason="range")
    return content
