"""Reads the session files of pi (pi-mono), one JSON object a line.

A `session` header comes first, then messages and changes of model.

Identity: an entry's `id` within its session where a version writes one, else session and content. A message of a model
has no id of its own either: the entry's id names the model call.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from processors.telemetry.formats.lines import (
    Mapped,
    Unreadable,
    filled,
    fingerprint,
    goal,
    identifier,
    joined,
    milliseconds,
    moment,
    read_object,
)
from processors.telemetry.formats.transcript import (
    Repeats,
    model_call,
    session_event,
    session_fields,
    tool_call,
    tool_result,
)
from streams.ids import derived_id

AGENT = "pi"
SOURCE = f"thalweg:import/{AGENT}"
_KINDS = {
    "toolResult": "tool_result",
    "bashExecution": "bash_execution",
    "branchSummary": "summary",
    "compactionSummary": "summary",
}
_ROLES = {"toolResult": "tool", "bashExecution": "user"}


class Mapper:
    """Reads one file; what is kept is the session's header and when the model was last asked."""

    def __init__(self, *, namespace: str, name: str, fallback_time: datetime) -> None:
        self._namespace = namespace
        self._session_id = name
        self._time = fallback_time
        self._project: Any = None
        self._parent: str | None = None
        self._asked: datetime | None = None
        self._repeats = Repeats()

    def line(self, number: int, raw: bytes) -> list[Mapped]:
        """The event of this line."""
        entry = read_object(number, raw)
        if isinstance(entry, Unreadable):
            return [entry]
        kind = filled(entry.get("type"))
        if kind is None:
            return [Unreadable(number, raw, "an object without a `type`")]
        if kind == "session":
            self._session_id = identifier(entry.get("id")) or self._session_id
            self._project = entry.get("cwd")
            self._parent = _session_of_file(entry.get("parentSession") or entry.get("branchedFrom"))
        own_time = moment(entry.get("timestamp"))
        time = self._time = own_time or self._time
        event_id = self._identity(entry, kind, raw, own_time is not None)
        body = entry.get("message")
        message: dict[str, Any] = body if isinstance(body, dict) else {}
        role = filled(message.get("role"))
        model = message.get("model") or entry.get("modelId")
        session = session_fields(AGENT, project=self._project, model=model, parent=self._parent)
        data = self._parts(entry, message, role, session, event_id, time)
        if kind == "message" and role:
            kind = _KINDS.get(role, role)
        parent = identifier(entry.get("parentId"))
        return [
            session_event(
                SOURCE,
                self._namespace,
                event_id,
                time,
                self._session_id,
                kind,
                parent_event_id=f"{self._session_id}/{parent}" if parent else None,
                role=_ROLES.get(role, role) if role else None,
                payload=entry,
                session=session,
                **data,
            )
        ]

    def end(self) -> list[Mapped]:
        """Nothing waits in this format."""
        return []

    def _identity(self, entry: dict[str, Any], kind: str, raw: bytes, has_time: bool) -> str:
        own = identifier(entry.get("id"))
        if own is not None and kind != "session" and len(own) + len(self._session_id) < 500:
            return f"{self._session_id}/{own}"
        content = fingerprint(raw)
        return derived_id(AGENT, self._session_id, content if has_time else self._repeats.name(content))

    def _parts(
        self,
        entry: dict[str, Any],
        message: dict[str, Any],
        role: str | None,
        session: dict[str, Any],
        event_id: str,
        time: datetime,
    ) -> dict[str, Any]:
        """Text, calls and results of an entry, under the names of the event's data."""
        texts = _texts(message.get("content"))
        if role == "assistant":
            calls = [
                tool_call(block.get("id"), block.get("name"), time, block.get("arguments"))
                for block in _blocks(message.get("content"))
                if block.get("type") == "toolCall"
            ]
            usage = message.get("usage")
            asked = [self._model_call(usage, message, event_id, time)] if isinstance(usage, dict) else None
            return {"text": joined(texts), "tool_calls": [call for call in calls if call], "model_calls": asked}
        if role is not None:
            self._asked = time
        if role == "toolResult":
            text = "\n".join(texts)
            result = tool_result(message.get("toolCallId"), time, text, is_error=message.get("isError") is True)
            return {"text": joined(texts), "tool_results": [result] if result else None}
        if role == "bashExecution":
            return {
                "text": joined(message[name] for name in ("command", "output") if isinstance(message.get(name), str))
            }
        if role == "user":
            found = next((line for line in map(goal, texts) if line), None)
            if found:
                session["goal"] = found
        summary = filled(entry.get("summary")) or filled(message.get("summary"))
        if summary or (entry.get("type") == "session_info" and filled(entry.get("name"))):
            session["summary"] = summary or entry["name"]
        return {"text": joined(texts) or summary}

    def _model_call(
        self, usage: dict[str, Any], message: dict[str, Any], event_id: str, time: datetime
    ) -> dict[str, Any]:
        cost = usage.get("cost")
        return model_call(
            identifier(message.get("responseId")) or event_id,
            message.get("model"),
            input_tokens=usage.get("input"),
            output_tokens=usage.get("output"),
            cache_read_tokens=usage.get("cacheRead"),
            cache_creation_tokens=usage.get("cacheWrite"),
            cost_usd=cost.get("total") if isinstance(cost, dict) else None,
            latency_ms=milliseconds(self._asked, time),
        )


def _session_of_file(path: Any) -> str | None:
    """The session's id in a file's name, `<time>_<id>.jsonl`."""
    if not isinstance(path, str):
        return None
    name = path.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".jsonl")
    return identifier(name.rsplit("_", 1)[-1])


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    said = [block.get("text", block.get("thinking")) for block in _blocks(content)]
    said += [block for block in content if isinstance(block, str)] if isinstance(content, list) else []
    return [text for text in said if isinstance(text, str)]
