"""Reducers of telemetry: sessions and their events, tool and model calls, states, OpenTelemetry.

Lines of a transcript may come twice and in pieces: a session's row widens, a tool call is completed by its result in
whichever order the two come, and tokens count once per message (its last line is complete, hence the greatest).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from processors.frame.reducer import Key, Outcome, Reducer, Row, Rows, at
from processors.talos.rules.identifiers import named_id
from processors.telemetry.rules.prose import Prose, prose_of
from streams.clock import parse_time
from streams.event_types.telemetry import OTEL_LOG, OTEL_METRIC, OTEL_SPAN, SESSION_EVENT, TALOS_EVENTS
from streams.events import LoggedEvent, wire_type
from streams.ids import derived_id

SESSIONS, SESSION_EVENTS, NAMES = "telemetry_sessions", "session_events", "telemetry_names"
TOOL_CALLS, MODEL_CALLS, STATE_CHANGES = "tool_calls", "model_calls", "state_changes"
SPANS, LOGS, METRICS = "otel_spans", "otel_logs", "otel_metrics"
_SESSION_FIELDS = ("parent_session_id", "source", "project", "agent", "goal", "summary")
_NEW_SESSION = dict.fromkeys((*_SESSION_FIELDS, "started_at", "ended_at", "model"))
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens", "cost_usd", "latency_ms")
_TALOS = "talos."


def _session_event(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    event, data = logged.event, logged.event.data
    moment = at(event.time)
    widen_session(rows, data["session_id"], moment, data.get("session") or {}, _model_of(data))
    rows.insert(
        SESSION_EVENTS,
        {
            "session_id": data["session_id"],
            "parent_event_id": data.get("parent_event_id"),
            "event_type": data["event_type"],
            "role": data.get("role"),
            "occurred_at": moment,
            "text": data.get("text"),
            "payload": data.get("payload"),
        },
    )
    for call in data.get("tool_calls") or ():
        _complete_tool_call(rows, data["session_id"], call, started_at=_moment(call.get("started_at")) or moment)
    for result in data.get("tool_results") or ():
        _complete_tool_call(rows, data["session_id"], result, ended_at=_moment(result.get("ended_at")) or moment)
    for call in data.get("model_calls") or ():
        count_model_call(rows, data["session_id"], call, moment)
    if (prose := prose_of(event.id, data)) is not None:
        rows.turn(
            _turn_id(logged, prose),
            prose.text,
            created_at=moment,
            session_id=data["session_id"],
            role=prose.role,
            source=(data.get("session") or {}).get("source"),
        )
    return None


def _turn_id(logged: LoggedEvent, prose: Prose) -> str:
    """The id of what was said: of the message, so that two events that show the same message are one turn."""
    return f"turn-{derived_id(logged.event.source, prose.identity)}"


def _session_event_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    data = logged.event.data
    yield SESSIONS, (data["session_id"],)
    for call in (*(data.get("tool_calls") or ()), *(data.get("tool_results") or ())):
        yield TOOL_CALLS, (call["tool_call_id"],)
    for call in data.get("model_calls") or ():
        yield MODEL_CALLS, (call["message_id"],)


def _model_of(data: Mapping[str, Any]) -> str | None:
    model = (data.get("session") or {}).get("model")
    return model or next((call["model"] for call in data.get("model_calls") or () if call.get("model")), None)


def widen_session(rows: Rows, session_id: str, moment: datetime, known: Mapping[str, Any], model: str | None) -> None:
    """Extend the session's row to this moment; the first value of each field stays, of the model the last."""
    row = dict(rows.get(SESSIONS, session_id) or _NEW_SESSION)
    row["session_id"] = session_id
    row["started_at"] = _first(row["started_at"], moment)
    row["ended_at"] = moment if row["ended_at"] is None else max(row["ended_at"], moment)
    row["model"] = model or row["model"]
    for name in _SESSION_FIELDS:
        if row[name] is None:
            row[name] = known.get(name)
    rows.complete(SESSIONS, row)


_TOOL_FIELDS = ("tool_name", "duration_ms", "is_error", "error_type", "input", "output_bytes")


def _complete_tool_call(
    rows: Rows,
    session_id: str,
    part: Mapping[str, Any],
    *,
    started_at: datetime | None = None,
    ended_at: datetime | None = None,
) -> None:
    row = rows.get(TOOL_CALLS, part["tool_call_id"])
    if row is None:
        empty = dict.fromkeys(("started_at", "ended_at", *_TOOL_FIELDS))
        row = {"tool_call_id": part["tool_call_id"], "session_id": session_id, **empty}
    row = {**row, **{name: part[name] for name in _TOOL_FIELDS if part.get(name) is not None and row[name] is None}}
    row["started_at"] = _first(row["started_at"], started_at)
    row["ended_at"] = _first(row["ended_at"], ended_at)
    if ended_at is not None and row["is_error"] is None:
        row["is_error"] = False
    if row["duration_ms"] is None and row["started_at"] and row["ended_at"]:
        row["duration_ms"] = max(0.0, (row["ended_at"] - row["started_at"]).total_seconds() * 1000)
    rows.complete(TOOL_CALLS, row)


def _first(known: datetime | None, new: datetime | None) -> datetime | None:
    return known if new is None else new if known is None else min(known, new)


def count_model_call(rows: Rows, session_id: str, call: Mapping[str, Any], moment: datetime) -> None:
    """Count a model call once per message id: of each number the greatest that any of its lines names."""
    row = rows.get(MODEL_CALLS, call["message_id"])
    if row is None:
        row = {
            "message_id": call["message_id"],
            "session_id": session_id,
            "model": None,
            "occurred_at": moment,
            **dict.fromkeys(_TOKENS),
        }
    counted = {**row, "model": row["model"] or call.get("model"), "occurred_at": min(row["occurred_at"], moment)}
    for name in _TOKENS:
        value, known = call.get(name), row[name]
        if value is not None and (known is None or value > known):
            counted[name] = value
    rows.complete(MODEL_CALLS, counted)


# --- the agent's own telemetry: attributes whose names start with `talos.`


def _attributes(logged: LoggedEvent) -> dict[str, Any]:
    return {name.removeprefix(_TALOS): value for name, value in logged.event.data["attributes"].items()}


def _session_of(logged: LoggedEvent) -> str | None:
    attributes = _attributes(logged)
    trace = logged.event.data.get("trace_id") or ""
    return attributes.get("session.id") or attributes.get("session_id") or (trace.removeprefix("sess-") or None)


def _talos_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    session_id = _session_of(logged)
    if session_id is not None:
        yield SESSIONS, (session_id,)
        yield TOOL_CALLS, (_call_id(logged),)
        yield MODEL_CALLS, (_call_id(logged),)
        if (named := _named(logged)) is not None:
            yield NAMES, named


def _named(logged: LoggedEvent) -> tuple[str, str] | None:
    """(label, name) of the tool or the state that the event names."""
    attributes, short = _attributes(logged), _short(logged)
    names = {
        "session.tool_call": ("Tool", _tool_name(attributes)),
        "session.state_change": ("OperationalState", attributes.get("to")),
    }
    label, name = names.get(short, ("", None))
    return (label, name.strip()) if isinstance(name, str) and name.strip() else None


def _tool_name(attributes: Mapping[str, Any]) -> Any:
    return attributes.get("tool.name") or attributes.get("name")


def _short(logged: LoggedEvent) -> str:
    return logged.event.type.removeprefix("thalweg.").rsplit(".v", 1)[0]


def _note_name(logged: LoggedEvent, rows: Rows, moment: datetime) -> None:
    """Store the node id of a tool or state under its name. The session's edges in the graph lead to that node."""
    named = _named(logged)
    if named is None or rows.get(NAMES, *named) is not None:
        return
    label, name = named
    identity = named_id("tool" if label == "Tool" else "state", name)
    category = _attributes(logged).get("category") if label == "OperationalState" else None
    row = {
        "label": label,
        "name": name,
        "node_id": identity,
        "category": category if isinstance(category, str) else None,
    }
    rows.put(NAMES, row | {"created_at": moment})


def _call_id(logged: LoggedEvent) -> str:
    return logged.event.data.get("span_id") or logged.event.id


def _talos_event(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    event, attributes = logged.event, _attributes(logged)
    short = _short(logged)
    session_id, moment = _session_of(logged), at(event.time)
    if session_id is None:
        return None
    widen_session(rows, session_id, moment, {"goal": attributes.get("goal"), "source": "talos"}, None)
    rows.insert(
        SESSION_EVENTS,
        {
            "session_id": session_id,
            "parent_event_id": None,
            "event_type": short,
            "role": None,
            "occurred_at": moment,
            "text": None,
            "payload": dict(event.data),
        },
    )
    _note_name(logged, rows, moment)
    if short == "session.tool_call":
        _talos_tool_call(logged, rows, session_id, attributes, moment)
    elif short == "session.state_change":
        rows.insert(STATE_CHANGES, _state_change(session_id, attributes, moment))
    elif short == "gen_ai.response":
        count_model_call(rows, session_id, {"message_id": _call_id(logged), **_usage(attributes)}, moment)
    return None


def _talos_tool_call(
    logged: LoggedEvent, rows: Rows, session_id: str, attributes: Mapping[str, Any], moment: datetime
) -> None:
    success = attributes.get("tool.success", attributes.get("success"))
    part = {
        "tool_call_id": _call_id(logged),
        "tool_name": _tool_name(attributes),
        "is_error": None if success is None else not success,
        "error_type": attributes.get("tool.error_type") or attributes.get("error_type"),
        "duration_ms": attributes.get("tool.duration_ms", attributes.get("duration_ms")),
    }
    _complete_tool_call(rows, session_id, part, started_at=moment)


def _state_change(session_id: str, attributes: Mapping[str, Any], moment: datetime) -> Row:
    return {
        "session_id": session_id,
        "from_state": attributes.get("from"),
        "to_state": attributes.get("to"),
        "category": attributes.get("category"),
        "trigger": attributes.get("trigger"),
        "intensity": attributes.get("intensity", 0.5),
        "occurred_at": moment,
    }


def _usage(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Token counts under the names of the GenAI conventions, old and new."""

    def number(*names: str) -> Any:
        return next((attributes[name] for name in names if attributes.get(name) is not None), None)

    return {
        "model": number("gen_ai.response.model", "gen_ai.request.model", "model"),
        "input_tokens": number(
            "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "usage.input_tokens", "input_tokens"
        ),
        "output_tokens": number(
            "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "usage.output_tokens", "output_tokens"
        ),
        "cache_read_tokens": number("gen_ai.usage.cache_read.input_tokens", "cache_read_tokens"),
        "cache_creation_tokens": number("gen_ai.usage.cache_creation.input_tokens", "cache_creation_tokens"),
        "cost_usd": number("cost_usd"),
        "latency_ms": number("latency_ms"),
    }


# --- OpenTelemetry

_SPAN_FIELDS = (
    "trace_id",
    "span_id",
    "parent_span_id",
    "name",
    "kind",
    "scope",
    "duration_ms",
    "status",
    "status_message",
)


def _span(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    data = logged.event.data
    row = {name: data.get(name) for name in _SPAN_FIELDS}
    row |= {name: data.get(name) for name in ("attributes", "resource", "links")}
    row |= {
        "span_events": data.get("events"),
        "started_at": _moment(data.get("started_at")),
        "ended_at": _moment(data.get("ended_at")),
    }
    rows.insert(SPANS, row)
    return None


def _log(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    data = logged.event.data
    names = ("trace_id", "span_id", "event_name", "severity", "body", "scope", "attributes", "resource")
    rows.insert(LOGS, {**{name: data.get(name) for name in names}, "occurred_at": at(logged.event.time)})
    return None


def _metric(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    data = logged.event.data
    names = ("name", "kind", "unit", "value", "count", "sum", "scope", "attributes", "resource", "point")
    row = {name: data.get(name) for name in names}
    rows.insert(METRICS, row | {"started_at": _moment(data.get("started_at")), "occurred_at": at(logged.event.time)})
    return None


def _moment(text: str | None) -> datetime | None:
    try:
        return None if text is None else at(parse_time(text))
    except ValueError:
        return None


REDUCERS = {
    SESSION_EVENT: Reducer(_session_event, _session_event_reads),
    OTEL_SPAN: Reducer(_span),
    OTEL_LOG: Reducer(_log),
    OTEL_METRIC: Reducer(_metric),
    **{wire_type(name): Reducer(_talos_event, _talos_reads) for name in TALOS_EVENTS},
}
