"""What a client's hooks tell becomes events; the transcript that is imported later counts nothing twice."""

from __future__ import annotations

import json

import pytest

from processors.telemetry.formats.claude_code import Mapper
from processors.telemetry.formats.hooks import hook_event
from streams.errors import Refused
from streams.events import Event
from streams.topics import TELEMETRY
from tests.processors.harness import NOW, Store

BASE = {"session_id": "s1", "cwd": "/repo", "transcript_path": "/nowhere.jsonl"}


def told(name: str, *, identity: str = "drawn", **more: object) -> Event:
    raw = json.dumps({**BASE, "hook_event_name": name, **more}).encode()
    return hook_event(name, raw, namespace="default", identity=identity, time=NOW)


def test_a_tool_call_that_two_hooks_and_the_transcript_tell_of_is_one_row() -> None:
    store = Store()
    call = {"tool_name": "Bash", "tool_use_id": "toolu_1"}
    store.publish(
        told("PreToolUse", **call, tool_input={"command": "ls"}),
        told("PostToolUse", **call, tool_response={"stdout": "a"}, duration_ms=12),
        topic=TELEMETRY.name,
    )
    content = [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]
    line = {
        "type": "assistant",
        "sessionId": "s1",
        "uuid": "u1",
        "timestamp": "2026-01-05T10:00:00Z",
        "message": {"content": content},
    }
    [event] = Mapper(namespace="default", name="s1", fallback_time=NOW).line(1, json.dumps(line).encode())
    assert isinstance(event, Event)
    store.publish(event, topic=TELEMETRY.name)
    rows = store.sql("SELECT tool_call_id, session_id, tool_name, duration_ms, is_error FROM tool_calls")
    assert rows == [("toolu_1", "s1", "Bash", 12.0, False)]
    assert store.sql("SELECT session_id, project, agent FROM sessions") == [("s1", "/repo", "claude-code")]
    assert store.sql("SELECT event_type FROM session_events ORDER BY ALL") == [
        ("assistant",),
        ("hook.PostToolUse",),
        ("hook.PreToolUse",),
    ]


def test_a_tool_that_only_the_hook_after_it_told_of_has_its_name_before_the_transcript_is_imported() -> None:
    store = Store()
    call = {"tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "ls"}}
    store.publish(told("PostToolUse", **call, tool_response="a"), topic=TELEMETRY.name)
    store.publish(told("PostToolUseFailure", tool_use_id="toolu_2", error="gone"), topic=TELEMETRY.name)
    rows = store.sql("SELECT tool_call_id, tool_name, input->>'command', duration_ms FROM tool_calls ORDER BY 1")
    assert rows == [("toolu_1", "Bash", "ls", None), ("toolu_2", None, None, None)]


def test_a_tools_hook_told_twice_is_one_event_and_others_are_as_many_as_they_are() -> None:
    call = {"tool_name": "Bash", "tool_use_id": "toolu_1"}
    assert told("PreToolUse", identity="a", **call).id == told("PreToolUse", identity="b", **call).id
    assert told("Stop", identity="a").id != told("Stop", identity="b").id


def test_a_hook_of_codex_is_of_codex() -> None:
    raw = json.dumps({**BASE, "hook_event_name": "Stop"}).encode()
    event = hook_event("Stop", raw, namespace="default", identity="x", time=NOW, agent="codex")
    assert event.source == "thalweg:hook/codex" and event.data["session"]["agent"] == "codex"
    assert told("Stop").source == "thalweg:hook/claude-code"


def test_a_prompt_is_in_the_payload_without_its_secrets_and_is_no_second_text() -> None:
    event = told("UserPromptSubmit", prompt="use AKIAIOSFODNN7EXAMPLE")
    assert "text" not in event.data and "AKIAIOSFODNN7EXAMPLE" not in json.dumps(event.data["payload"])


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b"{}", "session_id"),
        (b'{"session_id": "s", "hook_event_name": "Stop"}', "'Stop'"),
    ],
)
def test_what_is_no_hooks_input_is_refused_with_a_sentence(raw: bytes, said: str) -> None:
    with pytest.raises(Refused, match=said):
        hook_event("SessionStart", raw, namespace="default", identity="x", time=NOW)
