"""Properties of all readers.

Whatever stands in a file, nothing fails, nothing is skipped, and what comes out is accepted.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.reading import events_of, read

NAMES = st.sampled_from(
    [
        "type",
        "uuid",
        "sessionId",
        "message",
        "content",
        "role",
        "id",
        "name",
        "input",
        "usage",
        "model",
        "text",
        "tool_use_id",
        "is_error",
        "timestamp",
        "cwd",
        "agentId",
        "isSidechain",
        "leafUuid",
        "input_tokens",
        "output_tokens",
        "thinking",
        "toolUseResult",
        "durationMs",
        "payload",
        "info",
        "call_id",
        "output",
        "last_token_usage",
        "metadata",
        "duration",
        "source",
        "specversion",
        "data",
        "event",
        "time",
        "resourceSpans",
        "scopeSpans",
        "spans",
        "resourceLogs",
        "scopeLogs",
        "logRecords",
        "resourceMetrics",
        "scopeMetrics",
        "metrics",
    ]
)
WORDS = st.sampled_from(
    [
        "user",
        "assistant",
        "tool_use",
        "tool_result",
        "text",
        "toolResult",
        "session_meta",
        "token_count",
        "2026-01-01T00:00:00Z",
        "message",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(
    [
        "user",
        "assistant",
        "system",
        "summary",
        "event_msg",
        "response_item",
        "session_meta",
        "turn_context",
        "message",
        "session",
    ]
)


@given(
    st.sampled_from(["claude-code", "codex", "pi", "agent-analytics", "cloudevents", "otlp-json"]),
    st.lists(JSON, max_size=4),
)
def test_no_json_makes_a_reader_fail(kind: str, values: list[Any]) -> None:
    mapped = read(kind, [json.dumps(value).encode() for value in values])
    events_of(mapped)
    if kind not in ("otlp-json", "cloudevents"):
        assert len(mapped) == len(values)


@given(st.dictionaries(NAMES, JSON, max_size=6), KINDS)
def test_an_object_with_a_transcripts_own_names_gives_one_accepted_event(value: dict[str, Any], kind: str) -> None:
    for form in ("claude-code", "pi"):
        assert len(events_of(read(form, [json.dumps({**value, "type": kind}).encode()]))) == 1


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_no_bytes_make_a_reader_fail(lines: list[bytes]) -> None:
    for form in ("claude-code", "codex", "pi"):
        assert len(read(form, lines)) == len(lines)
