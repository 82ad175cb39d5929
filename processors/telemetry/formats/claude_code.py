"""Reads Claude Code's session log: one JSON object a line, as it lies under its projects folder.

Identity: a line's `uuid`; a line without one is named by its session and content, so that the same line in two files
is one event. A sub-agent's lines (`isSidechain`) are a session of their own, `<sessionId>/<agentId>`, and so are
those of its parent's transcript that show its messages (`agent_progress`). Tool calls, model calls and turns have ids
of their own, so that they count once where the sub-agent's transcript is imported too.
A line that names no session (`summary`, `file-history-snapshot`) belongs to the session of the line it refers to; it
waits for that line when it comes first, and belongs to the session of the file's name when there is none.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from typing import Any

import orjson

from processors.telemetry.formats.lines import (
    Mapped,
    Unreadable,
    fingerprint,
    goal,
    identifier,
    joined,
    milliseconds,
    moment,
    read_object,
)
from processors.telemetry.formats.transcript import model_call, session_event, session_fields, tool_call, tool_result
from streams.events import Event
from streams.ids import derived_id

AGENT = "claude-code"
SOURCE = f"thalweg:import/{AGENT}"
MAX_REMEMBERED = 100_000
"""Lines whose session is remembered, so that a later line can refer to them."""
MAX_WAITING = 1_000
_SYNTHETIC = "<synthetic>"


class Mapper:
    """Reads one file. `name` is the file's name without suffix, `fallback_time` stands in where no line has a time."""

    def __init__(self, *, namespace: str, name: str, fallback_time: datetime) -> None:
        self._namespace = namespace
        self._name = name
        self._time = fallback_time
        self._sessions: OrderedDict[str, tuple[str, datetime]] = OrderedDict()
        self._asked: dict[str, datetime] = {}
        self._waiting: dict[str, list[tuple[dict[str, Any], bytes]]] = {}
        self._waiting_count = 0

    def line(self, number: int, raw: bytes) -> list[Mapped]:
        """The event of this line, and of lines that waited for it."""
        entry = read_object(number, raw)
        if isinstance(entry, Unreadable):
            return [entry]
        if not isinstance(entry.get("type"), str) or not entry["type"]:
            return [Unreadable(number, raw, "an object without a `type`")]
        session_id = identifier(entry.get("sessionId"))
        if session_id is None:
            return self._without_session(entry, raw)
        uuid = identifier(entry.get("uuid"))
        time = moment(entry.get("timestamp"))
        if time is None:
            time = self._time
        else:
            self._time = time
        session_id, parent = self._session_of(entry, session_id, uuid)
        event = self._event(entry, raw, session_id, parent, uuid, time)
        if uuid is None:
            return [event]
        if parent is not None and _shown_agent(entry) is not None:
            session_id = parent  # the line is of its transcript, whatever it shows
        self._remember(uuid, session_id, time)
        released = self._waiting.pop(uuid, ()) if self._waiting else ()
        self._waiting_count -= len(released)
        return [event, *(self._referring(waited, its_raw, session_id, time) for waited, its_raw in released)]

    def end(self) -> list[Mapped]:
        """The lines that referred to a line this file does not have."""
        waiting = [item for items in self._waiting.values() for item in items]
        self._waiting.clear()
        self._waiting_count = 0
        return [self._referring(entry, raw, self._name, self._time) for entry, raw in waiting]

    # --- which session

    def _session_of(self, entry: dict[str, Any], session_id: str, uuid: str | None) -> tuple[str, str | None]:
        """The session and, for a sub-agent's, its parent; early versions name no agent: its first line does."""
        own = identifier(entry.get("agentId")) if entry.get("isSidechain") is True else None
        if (shown := _shown_agent(entry)) is not None:
            return f"{session_id}/{shown}", f"{session_id}/{own}" if own else session_id
        if entry.get("isSidechain") is not True:
            return session_id, None
        agent = own
        if agent is not None:
            return f"{session_id}/{agent}", session_id
        before = entry.get("parentUuid")
        known = self._sessions.get(before) if isinstance(before, str) else None
        if known is not None and known[0].startswith(f"{session_id}/"):
            return known[0], session_id
        return f"{session_id}/{identifier(before) or uuid or 'sidechain'}", session_id

    def _remember(self, uuid: str, session_id: str, time: datetime) -> None:
        self._sessions[uuid] = (session_id, time)
        if len(self._sessions) > MAX_REMEMBERED:
            self._sessions.popitem(last=False)

    def _without_session(self, entry: dict[str, Any], raw: bytes) -> list[Mapped]:
        referred = (
            identifier(entry.get("leafUuid"))
            or identifier(entry.get("messageId"))
            or identifier(entry.get("parentUuid"))
        )
        if referred is None:
            return [self._referring(entry, raw, self._name, self._time)]
        known = self._sessions.get(referred)
        if known is not None:
            return [self._referring(entry, raw, *known)]
        self._waiting.setdefault(referred, []).append((entry, raw))
        self._waiting_count += 1
        if self._waiting_count <= MAX_WAITING:
            return []
        return list(self.end())

    def _referring(self, entry: dict[str, Any], raw: bytes, session_id: str, time: datetime) -> Event:
        own = moment(entry.get("timestamp"))
        return self._event(entry, raw, session_id, None, identifier(entry.get("uuid")), own or time)

    # --- the event

    def _event(
        self, entry: dict[str, Any], raw: bytes, session_id: str, parent: str | None, uuid: str | None, time: datetime
    ) -> Event:
        line, kind = entry, entry["type"]
        if _shown_agent(entry) is not None:
            entry = entry["data"]["message"]
            time = moment(entry.get("timestamp")) or time
        message = entry.get("message")
        body: dict[str, Any] = message if isinstance(message, dict) else {}
        content = body.get("content") if body else message
        texts, tool_calls, tool_results = _read_content(content, entry, time)
        speaker = entry.get("type")
        model = body.get("model")
        model = model if model != _SYNTHETIC else None
        session = session_fields(AGENT, project=line.get("cwd"), model=model, parent=parent)
        text = joined(texts) or _own_text(entry)
        role = body.get("role")
        model_calls: list[dict[str, Any]] = []
        if speaker == "user":
            self._asked[session_id] = time
            if tool_results and isinstance(content, list) and len(tool_results) == len(content):
                role = "tool"
            elif not (entry.get("isMeta") or entry.get("isCompactSummary")):
                found = next((line for line in map(goal, _asked_texts(content)) if line), None)
                if found:
                    session["goal"] = found
        elif speaker == "assistant" and isinstance(body.get("usage"), dict) and body.get("model") != _SYNTHETIC:
            message_id = identifier(body.get("id")) or identifier(entry.get("requestId")) or uuid
            if message_id:
                model_calls.append(self._model_call(message_id, entry, body, session_id, time))
        elif speaker == "summary" and text:
            session["summary"] = text
        return session_event(
            SOURCE,
            self._namespace,
            uuid or derived_id(AGENT, session_id, fingerprint(raw)),
            time,
            session_id,
            kind,
            parent_event_id=identifier(line.get("parentUuid")) or identifier(line.get("logicalParentUuid")),
            role=role if isinstance(role, str) else None,
            text=text,
            payload=line,
            session=session,
            tool_calls=tool_calls,
            tool_results=tool_results,
            model_calls=model_calls,
        )

    def _model_call(
        self, message_id: str, entry: dict[str, Any], body: dict[str, Any], session_id: str, time: datetime
    ) -> dict[str, Any]:
        usage = body["usage"]
        return model_call(
            message_id,
            body.get("model"),
            input_tokens=usage.get("input_tokens"),
            output_tokens=usage.get("output_tokens"),
            cache_read_tokens=usage.get("cache_read_input_tokens"),
            cache_creation_tokens=usage.get("cache_creation_input_tokens"),
            cost_usd=entry.get("costUSD"),
            latency_ms=milliseconds(self._asked.get(session_id), time),
        )


def _shown_agent(entry: dict[str, Any]) -> str | None:
    """The sub-agent of which a line of its parent's transcript shows a message."""
    shown = entry.get("data") if entry.get("type") == "progress" else None
    if not isinstance(shown, dict) or shown.get("type") != "agent_progress":
        return None
    return identifier(shown.get("agentId")) if isinstance(shown.get("message"), dict) else None


def _read_content(
    content: Any, entry: dict[str, Any], time: datetime
) -> tuple[list[str], list[dict[str, Any]], list[dict[str, Any]]]:
    """Texts, tool uses and tool results of a message's content.

    The content is a string, or blocks, of which some are bare strings.
    """
    if isinstance(content, str):
        return [content], [], []
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            texts.append(block)
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind in ("text", "thinking"):
            said = block.get(kind)
            texts.append(said if isinstance(said, str) else "")
        elif kind in ("tool_use", "server_tool_use"):
            call = tool_call(block.get("id"), block.get("name"), time, block.get("input"))
            calls.extend([call] if call else [])
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            output = _output_text(block.get("content"))
            texts.append(output)
            duration = _duration_ms(entry, len(content))
            result = tool_result(
                block.get("tool_use_id"), time, output, is_error=block.get("is_error") is True, duration_ms=duration
            )
            results.extend([result] if result else [])
    return texts, calls, results


def _output_text(content: Any) -> str:
    """A tool's output as one text; an image or a reference counts as its JSON."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else orjson.dumps(content).decode()
    parts = []
    for block in content:
        text = block.get("text") if isinstance(block, dict) else block
        parts.append(text if isinstance(text, str) else orjson.dumps(block).decode())
    return "\n".join(parts)


def _duration_ms(entry: dict[str, Any], blocks: int) -> Any:
    """How long the tool itself says that it took. Only where the line has one result, or it would be ambiguous."""
    told = entry.get("toolUseResult")
    if blocks != 1 or not isinstance(told, dict):
        return None
    return told.get("durationMs", told.get("totalDurationMs"))


def _asked_texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    texts = [
        block.get("text") if isinstance(block, dict) and block.get("type") == "text" else block for block in blocks
    ]
    return [text for text in texts if isinstance(text, str)]


def _own_text(entry: dict[str, Any]) -> str | None:
    """The text of a line that is not a message: a summary, a system notice, something queued."""
    for name in ("summary", "content"):
        value = entry.get(name)
        if isinstance(value, str) and value:
            return joined([value])
    return None
