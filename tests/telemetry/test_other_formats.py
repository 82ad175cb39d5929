"""Codex, pi, CloudEvents and analytics files become events."""

from __future__ import annotations

from typing import Any

import pytest

from tests.telemetry.reading import NAMESPACE, events_of, parts, read, read_fixture, unreadable_of


def test_a_codex_rollout_gives_its_session_goal_model_and_project() -> None:
    events = events_of(read_fixture("codex", "codex_rollout.jsonl"))
    assert len(events) == len({event.id for event in events}) == 17
    assert {event.data["session_id"] for event in events} == {"0199c1aa-0000-7000-8000-00000000c0de"}
    goals = [event.data["session"]["goal"] for event in events if "goal" in event.data["session"]]
    assert set(goals) == {"Why does the tide table start at 1 a.m.?"}
    assert events[-1].data["session"]["model"] == "gpt-5.1-codex"
    assert events[0].data["session"]["project"] == "/home/ana/src/tidewatch"


def test_a_codex_token_count_that_is_repeated_is_the_same_model_call() -> None:
    calls = parts(read_fixture("codex", "codex_rollout.jsonl"), "model_calls")
    assert len(calls) == 3
    by_id = {call["message_id"]: call for call in calls}
    assert [(call["input_tokens"], call["cache_read_tokens"], call["output_tokens"]) for call in by_id.values()] == [
        (1000, 4000, 100),
        (1000, 5000, 60),
    ]


def test_codex_tool_calls_have_input_result_duration_and_error_type() -> None:
    mapped = read_fixture("codex", "codex_rollout.jsonl")
    calls = {call["tool_call_id"]: call for call in parts(mapped, "tool_calls")}
    results = {result["tool_call_id"]: result for result in parts(mapped, "tool_results")}
    assert calls["call_rg"]["input"]["command"] == ["bash", "-lc", "rg first_row"]
    assert calls["call_patch"]["tool_name"] == "apply_patch"
    assert calls["call_local"]["tool_name"] == "local_shell"
    assert (results["call_rg"]["error_type"], results["call_rg"]["duration_ms"]) == ("command_not_found", 200.0)
    assert (results["call_patch"]["is_error"], results["call_patch"]["duration_ms"]) == (False, 300.0)


def test_a_codex_tool_of_an_mcp_server_is_named_as_codex_hooks_name_it() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "remember", "arguments": "{}"}
    lines = [rollout("response_item", {**call, "namespace": "mcp__thalweg"}), rollout("response_item", call)]
    names = [call["tool_name"] for call in parts(read("codex", lines), "tool_calls")]
    assert names == ["mcp__thalweg__remember", "remember"]


def test_equal_lines_of_the_early_codex_form_stay_separate_events() -> None:
    events = events_of(read_fixture("codex", "codex_bare.jsonl"))
    assert len({event.id for event in events}) == 7
    assert {event.data["session_id"] for event in events} == {"5e55-bare"}
    assert events == events_of(read_fixture("codex", "codex_bare.jsonl"))


def test_a_forked_codex_session_keeps_its_own_id_and_names_its_parent() -> None:
    own = {
        "timestamp": "2026-01-01T00:00:00Z",
        "type": "session_meta",
        "payload": {"id": "fork", "forked_from_id": "origin"},
    }
    copied = {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "origin"}}
    events = events_of(read("codex", [own, copied]))
    assert [event.data["session_id"] for event in events] == ["fork", "fork"]
    assert events[1].data["session"]["parent_session_id"] == "origin"


def rollout(kind: str, payload: dict[str, Any], second: int = 0) -> dict[str, Any]:
    return {"timestamp": f"2026-01-01T00:00:{second:02}Z", "type": kind, "payload": payload}


def test_the_end_of_a_codex_command_is_a_result_with_its_exit_code_size_and_duration() -> None:
    ended = {"type": "exec_command_end", "call_id": "c1", "stdout": "tïde", "stderr": "!", "exit_code": 2}
    mapped = read(
        "codex",
        [
            rollout("event_msg", {**ended, "duration": {"secs": 1, "nanos": 500_000_000}}),
            rollout("event_msg", {**ended, "call_id": "c2", "exit_code": 0, "duration": "a while"}),
            rollout("event_msg", {**ended, "call_id": "c3", "exit_code": 0, "duration": {"nanos": 5}}),
            rollout("event_msg", {**ended, "call_id": None}),
        ],
    )
    first, second, third = parts(mapped, "tool_results")
    assert (first["is_error"], first["output_bytes"], first["duration_ms"]) == (True, 6, 1500.0)
    assert (second["is_error"], second["tool_call_id"]) == (False, "c2")
    assert "duration_ms" not in second and "duration_ms" not in third
    assert [event.data["role"] for event in events_of(mapped)] == ["tool"] * 4


def test_what_a_codex_tool_is_given_and_answers_is_kept_also_where_it_only_looks_like_json() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "sh"}
    outputs = ['{"exit_code": 1', [{"type": "text", "text": "a"}, "b", {"image": 1}], 7, None]
    mapped = read(
        "codex",
        [
            rollout("response_item", {**call, "arguments": '{"command": "ls"'}),
            *[rollout("response_item", {"type": "function_call_output", "call_id": "c", "output": o}) for o in outputs],
        ],
    )
    (call,) = parts(mapped, "tool_calls")
    assert call["input"] == '{"command": "ls"'
    texts = [event.data.get("text") for event in events_of(mapped) if event.data.get("role") == "tool"]
    assert texts == ['{"exit_code": 1', "a\nb", "7", None]
    assert [result["is_error"] for result in parts(mapped, "tool_results")] == [False] * 4


@pytest.mark.parametrize(("said", "duration"), [("0.25", 250.0), ("3", 3000.0), ("1.2.3", None), ("...", None)])
def test_the_wall_time_of_a_codex_output_is_its_duration_where_it_is_a_number(
    said: str, duration: float | None
) -> None:
    output = f"Exit code: 1\nWall time: {said} seconds\nOutput:\n"
    mapped = read(
        "codex", [rollout("response_item", {"type": "function_call_output", "call_id": "c", "output": output})]
    )
    (result,) = parts(mapped, "tool_results")
    assert (result["is_error"], result.get("duration_ms")) == (True, duration)


def test_codex_tokens_without_those_of_the_last_call_are_the_difference_of_the_totals() -> None:
    totals = [
        {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2},
        {"input_tokens": 30, "cached_input_tokens": 9, "output_tokens": 7},
    ]
    counts = [rollout("event_msg", {"type": "token_count", "info": {"total_token_usage": total}}) for total in totals]
    unknown = rollout("event_msg", {"type": "token_count", "info": None})  # before the first call
    mapped = read("codex", [unknown, *counts])
    calls = parts(mapped, "model_calls")
    assert [(call["input_tokens"], call["cache_read_tokens"], call["output_tokens"]) for call in calls] == [
        (6, 4, 2),
        (15, 5, 5),
    ]
    assert len(events_of(mapped)) == 3


def test_a_codex_line_of_any_kind_is_an_event_and_an_object_that_is_none_is_unreadable() -> None:
    lines = [
        {"record_type": "state", "n": 1},
        {"type": "message", "role": "user", "content": "Read the tide"},
        rollout("compacted", {"message": "They spoke of tides."}),
        {"n": 1},
    ]
    mapped = read("codex", lines)
    events = events_of(mapped)
    assert [(event.data["event_type"], event.data.get("text")) for event in events] == [
        ("state", None),
        ("message", "Read the tide"),
        ("compacted", "They spoke of tides."),
    ]
    assert events[1].data["session"]["goal"] == "Read the tide"
    (item,) = unreadable_of(mapped)
    assert (item.line_number, item.reason) == (4, "an object that is neither a rollout line nor a response item")


def test_a_pi_session_gives_roles_costs_calls_and_its_parent() -> None:
    mapped = read_fixture("pi", "pi.jsonl")
    events = events_of(mapped)
    assert [event.data.get("role") for event in events] == [
        None,
        "user",
        "user",
        "assistant",
        "tool",
        "user",
        None,
        None,
    ]
    (call,) = parts(mapped, "model_calls")
    assert (call["input_tokens"], call["output_tokens"], call["cache_read_tokens"], call["cache_creation_tokens"]) == (
        10,
        20,
        30,
        40,
    )
    assert (call["cost_usd"], call["latency_ms"]) == (0.25, 3000.0)
    assert parts(mapped, "tool_results")[0]["error_type"] == "command_not_found"
    assert events[0].data["session"]["parent_session_id"] == "pi-0"
    assert [event.data["session"].get("goal") for event in events[1:3]] == [None, "Plot the tide"]
    assert events[7].data["session"]["summary"] == "Plotting the tide"
    assert events[2].data["parent_event_id"] == events[1].id == "pi-1/a1"


def cloud_event(**more: Any) -> dict[str, Any]:
    data = {"session_id": "s", "event_type": "note"}
    return {
        "specversion": "1.0",
        "id": "1",
        "source": "/lab",
        "type": "thalweg.session.event.v1",
        "time": "2026-01-01T00:00:00Z",
        "data": data,
    } | more


def test_a_cloud_event_keeps_its_identity() -> None:
    (event,) = events_of(read("cloudevents", [cloud_event(subject="a")]))
    assert (event.id, event.source, event.namespace, event.subject) == ("1", "/lab", NAMESPACE, "a")


def test_an_array_of_cloud_events_is_read_as_its_events() -> None:
    assert len(events_of(read("cloudevents", [[cloud_event(), cloud_event(id="2")]]))) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (cloud_event(type="com.example.note"), "is not known"),
        (cloud_event(type="thalweg.embedding.made.v1"), "is not known"),
        (cloud_event(data={"session_id": 5, "event_type": "x"}), "session_id"),
        (cloud_event(id=""), "'id' is missing"),
        ({"id": "1"}, "not a structured CloudEvent"),
        (b"[1", "not JSON"),
    ],
)
def test_a_cloud_event_that_a_producer_could_not_publish_is_unreadable(line: Any, reason: str) -> None:
    (item,) = unreadable_of(read("cloudevents", [line]))
    assert reason in item.reason


def test_equal_analytics_events_of_one_second_all_count() -> None:
    line = {"event": "launched", "properties": {}, "user_id": "u", "time": 1755099880}
    sent = {
        "event": "message_send",
        "properties": {"main_model": "m", "prompt_tokens": 9, "completion_tokens": 2, "cost": 0.5},
        "user_id": "u",
        "time": 1,
    }
    mapped = read("agent-analytics", [line, line, sent, {"event": "x"}])
    assert len({event.id for event in events_of(mapped)}) == 3
    assert {event.subject for event in events_of(mapped)} == {"u"}
    assert parts(mapped, "model_calls")[0]["cost_usd"] == 0.5
    assert len(unreadable_of(mapped)) == 1
