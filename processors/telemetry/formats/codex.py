"""Reads the OpenAI Codex CLI's rollout files.

A line is `{"timestamp", "type", "payload"}`, or a bare item in early versions.

Identity: no line has an id, so each is named by its session and content; where a line has no time either (the early
form), equal lines of a file are numbered. The session is the one of the file's first `session_meta`: a forked session
repeats its parent's lines, that header included, after its own.
Tokens: a `token_count` names a running total, and is repeated when nothing was added; the total is the call's identity.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import orjson

from processors.telemetry.formats.lines import (
    Mapped,
    Unreadable,
    count,
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

AGENT = "codex"
SOURCE = f"thalweg:import/{AGENT}"
_WRAPPED = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_EXIT_CODE = re.compile(r"\A(?:.{0,200}\n)?\s*(?:Process )?[Ee]xit(?:ed with)? code:? (-?\d+)")
_WALL_TIME = re.compile(r"\A(?:.{0,200}\n){0,3}Wall time: (\d+(?:\.\d+)?) seconds")
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens")


class Mapper:
    """Reads one file; what is kept is its session, model and last total."""

    def __init__(self, *, namespace: str, name: str, fallback_time: datetime) -> None:
        self._namespace = namespace
        self._session_id: str | None = None
        self._name = name
        self._time = fallback_time
        self._project: Any = None
        self._parent: str | None = None
        self._model: str | None = None
        self._asked: datetime | None = None
        self._total: dict[str, Any] = {}
        self._repeats = Repeats()

    def line(self, number: int, raw: bytes) -> list[Mapped]:
        """The event of this line."""
        entry = read_object(number, raw)
        if isinstance(entry, Unreadable):
            return [entry]
        wrapped, item = _unwrapped(entry)
        if item is None:
            return [Unreadable(number, raw, "an object that is neither a rollout line nor a response item")]
        own_time = moment(entry.get("timestamp"))
        time = self._time = own_time or self._time
        if wrapped == "session_meta":
            self._begin(item)
        elif wrapped == "turn_context":
            self._model = filled(item.get("model")) or self._model
            self._project = self._project or item.get("cwd")
        content = fingerprint(raw)
        if own_time is None:
            content = self._repeats.name(content)
        session_id = self._session_id or self._name
        kind = filled(item.get("type")) if wrapped in ("response_item", "event_msg") else wrapped
        session = session_fields(AGENT, project=self._project, model=self._model, parent=self._parent)
        data = self._parts(kind or wrapped, wrapped, item, session, session_id, time)
        event_id = derived_id(AGENT, session_id, content)
        return [
            session_event(
                SOURCE,
                self._namespace,
                event_id,
                time,
                session_id,
                kind or wrapped,
                payload=entry,
                session=session,
                **data,
            )
        ]

    def end(self) -> list[Mapped]:
        """Nothing waits in this format."""
        return []

    def _begin(self, meta: dict[str, Any]) -> None:
        if self._session_id is not None:
            return
        self._session_id = identifier(meta.get("id")) or self._name
        self._project = meta.get("cwd")
        origin = meta.get("source")
        spawned = origin.get("subagent") if isinstance(origin, dict) else None
        thread = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
        parent = thread.get("parent_thread_id") if isinstance(thread, dict) else None
        self._parent = (
            identifier(parent) or identifier(meta.get("parent_thread_id")) or identifier(meta.get("forked_from_id"))
        )

    def _parts(
        self, kind: str, wrapped: str, item: dict[str, Any], session: dict[str, Any], session_id: str, time: datetime
    ) -> dict[str, Any]:
        """Role, text, calls and results of an item, under the names of the event's data."""
        if wrapped == "event_msg":
            return self._message_parts(kind, item, session, session_id, time)
        if kind == "message":
            role, text = filled(item.get("role")), joined(_texts(item.get("content")))
            if role == "user":
                self._asked = time
                _set_goal(session, _texts(item.get("content")))
            return {"role": role, "text": text}
        if kind == "reasoning":
            return {"role": "assistant", "text": joined(_texts(item.get("summary")) + _texts(item.get("content")))}
        if kind in ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call"):
            call = tool_call(
                item.get("call_id") or item.get("id"),
                _tool_name(item) or kind.removesuffix("_call"),
                time,
                _given(item),
            )
            return {"role": "assistant", "tool_calls": [call] if call else None}
        if kind.endswith("_output"):
            self._asked = time
            text, is_error, duration = _output(item.get("output"))
            result = tool_result(item.get("call_id"), time, text, is_error=is_error, duration_ms=duration)
            return {"role": "tool", "text": joined([text]), "tool_results": [result] if result else None}
        return {
            "text": joined([item[name] for name in ("message", "summary", "text") if isinstance(item.get(name), str)])
        }

    def _message_parts(
        self, kind: str, item: dict[str, Any], session: dict[str, Any], session_id: str, time: datetime
    ) -> dict[str, Any]:
        """The parts of an `event_msg`: what the program showed, beside the items that the model was given."""
        if kind == "token_count":
            call = self._tokens(item.get("info"), session_id, time)
            return {"model_calls": [call] if call else None}
        if kind in ("exec_command_end", "mcp_tool_call_end"):
            failed = item.get("exit_code") not in (None, 0)
            text = "".join(item[name] for name in ("stdout", "stderr") if isinstance(item.get(name), str))
            result = tool_result(
                item.get("call_id"), time, text, is_error=failed, duration_ms=_duration_ms(item.get("duration"))
            )
            return {"role": "tool", "tool_results": [result] if result else None}
        texts = [item[name] for name in ("message", "text") if isinstance(item.get(name), str)]
        if kind == "user_message":
            _set_goal(session, texts)
        role = {"user_message": "user", "agent_message": "assistant", "agent_reasoning": "assistant"}.get(kind)
        return {"role": role, "text": joined(texts)}

    def _tokens(self, info: Any, session_id: str, time: datetime) -> dict[str, Any] | None:
        if not isinstance(info, dict):
            return None
        total = info.get("total_token_usage")
        last = info.get("last_token_usage")
        total = total if isinstance(total, dict) else {}
        if not isinstance(last, dict):
            last = {name: (count(total.get(name)) or 0) - (count(self._total.get(name)) or 0) for name in _TOKENS}
        self._total = total or self._total
        identity = orjson.dumps(total or [last, time.isoformat()], option=orjson.OPT_SORT_KEYS).decode()
        given, cached = count(last.get("input_tokens")), count(last.get("cached_input_tokens"))
        return model_call(
            derived_id(AGENT, session_id, "tokens", identity),
            filled(info.get("model")) or self._model,
            input_tokens=None if given is None else max(0, given - (cached or 0)),
            output_tokens=last.get("output_tokens"),
            cache_read_tokens=cached,
            latency_ms=milliseconds(self._asked, time),
        )


def _unwrapped(entry: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """The kind of line and what it carries; the early form's header has an id but no type."""
    kind, payload = entry.get("type"), entry.get("payload")
    if kind in _WRAPPED and isinstance(payload, dict):
        meta = payload.get("meta")
        return kind, {**meta, **payload} if kind == "session_meta" and isinstance(meta, dict) else payload
    if isinstance(kind, str) and kind:
        return ("response_item", entry) if payload is None else (kind, payload if isinstance(payload, dict) else {})
    if filled(entry.get("record_type")):
        return str(entry["record_type"]), entry
    if filled(entry.get("id")) and "timestamp" in entry:
        return "session_meta", entry
    return "", None


def _set_goal(session: dict[str, Any], texts: list[str]) -> None:
    found = next((line for line in map(goal, texts) if line), None)
    if found:
        session["goal"] = found


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") if isinstance(block, dict) else block for block in blocks]
    return [text for text in texts if isinstance(text, str)]


def _tool_name(item: dict[str, Any]) -> str | None:
    """The tool's name; that of an MCP server's tool as its hooks say it, after the server's."""
    parts = [filled(item.get("namespace")), filled(item.get("name"))]
    return "__".join(part for part in parts if part) or None


def _given(item: dict[str, Any]) -> Any:
    """What the tool was given: `arguments` is JSON in a string, when the model kept to it."""
    given = next((item[name] for name in ("arguments", "input", "action") if name in item), None)
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            return orjson.loads(given)
        except orjson.JSONDecodeError:
            return given
    return given


def _output(output: Any) -> tuple[str, bool, float | None]:
    """Text of a tool's output, whether the tool failed, and its duration in ms.

    The output is a text, a text with a head, or JSON with metadata.
    """
    if isinstance(output, str) and output.startswith('{"'):
        try:
            output = orjson.loads(output)
        except orjson.JSONDecodeError:
            pass
    if isinstance(output, str):
        code, wall = _EXIT_CODE.match(output), _WALL_TIME.match(output)
        return output, bool(code and code.group(1) != "0"), float(wall.group(1)) * 1000 if wall else None
    if isinstance(output, list):
        return "\n".join(_texts(output)), False, None
    if not isinstance(output, dict):
        return "" if output is None else str(output), False, None
    metadata = output.get("metadata")
    facts: dict[str, Any] = metadata if isinstance(metadata, dict) else {}
    text = next((output[name] for name in ("output", "content") if isinstance(output.get(name), str)), None)
    failed = output.get("success") is False or facts.get("exit_code") not in (None, 0)
    seconds = facts.get("duration_seconds")
    return (
        text if text is not None else orjson.dumps(output).decode(),
        failed,
        seconds * 1000 if isinstance(seconds, (int, float)) else None,
    )


def _duration_ms(duration: Any) -> float | None:
    """Milliseconds of `{"secs", "nanos"}`."""
    if not isinstance(duration, dict):
        return None
    seconds, nanos = count(duration.get("secs")), count(duration.get("nanos"))
    return None if seconds is None else seconds * 1000 + (nanos or 0) / 1e6
