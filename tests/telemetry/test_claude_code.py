"""Claude Code's session log becomes events: identity, sessions, usage, tools, and nothing is skipped."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from processors.telemetry.formats.claude_code import SOURCE
from streams.topics import TELEMETRY
from tests.processors.harness import Store
from tests.telemetry.reading import MODIFIED, events_of, parts, read, unreadable_of
from thalweg.example import session_path

SESSION = "s-1"


def entry(
    kind: str = "user", *, uuid: str | None = "u-1", second: float = 0, content: Any = "Fix the parser", **more: Any
) -> dict[str, Any]:
    line = {"type": kind, "sessionId": SESSION, "timestamp": f"2026-01-01T00:00:{second:06.3f}Z", "cwd": "/src/p"}
    if uuid is not None:
        line["uuid"] = uuid
    if kind in ("user", "assistant"):
        line["message"] = {"role": kind, "content": content}
    return line | more


def answer(
    uuid: str, message_id: str, output: int, *, second: float = 0, content: Any = None, model: str = "claude-opus-4-1"
) -> dict[str, Any]:
    line = entry("assistant", uuid=uuid, second=second, content=content or [{"type": "text", "text": "Yes."}])
    usage = {
        "input_tokens": 3,
        "output_tokens": output,
        "cache_read_input_tokens": 50,
        "cache_creation_input_tokens": 7,
    }
    line["message"] |= {"id": message_id, "model": model, "usage": usage}
    return line


def tool_line(
    call_id: str, content: Any, *, is_error: bool | None = None, told: Any = None, second: float = 1
) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    if is_error is not None:
        block["is_error"] = is_error
    return entry(uuid=f"result-{call_id}", second=second, content=[block], toolUseResult=told)


def test_a_line_is_identified_by_its_uuid_in_whatever_file_it_stands() -> None:
    (first,) = events_of(read("claude-code", [entry()], name="a"))
    (second,) = events_of(read("claude-code", [entry()], name="b"))
    assert first == second
    assert (first.id, first.source, first.data["session_id"]) == ("u-1", SOURCE, SESSION)


def test_a_line_without_uuid_is_identified_by_its_session_and_content() -> None:
    queued = entry("queue-operation", uuid=None, operation="enqueue") | {"content": "And then?"}
    (first,) = events_of(read("claude-code", [queued], name="a"))
    (second,) = events_of(read("claude-code", [entry(), queued], name="b")[1:])
    (other,) = events_of(read("claude-code", [queued | {"content": "Or else?"}]))
    assert first.id == second.id != other.id
    assert first.data["text"] == "And then?"


def test_every_line_becomes_an_event_or_is_unreadable_with_the_reason() -> None:
    raw = [
        b'"massive error"',
        b"42",
        b"[1]",
        b"null",
        b'{"silly": 1}',
        b'{"type": 5}',
        b'{"type": "user", "mess',
        b"\0\0\0\0",
        b"{" * 5000,
    ]
    found = unreadable_of(read("claude-code", raw))
    assert [item.raw for item in found] == raw
    assert [item.line_number for item in found] == list(range(1, len(raw) + 1))
    reasons = [item.reason for item in found]
    assert "a string, not an object" in reasons[0]
    assert "without a `type`" in reasons[4]
    assert "cut off" in reasons[6]


@pytest.mark.parametrize(
    "message", ["error", None, 7, [], {"role": "user", "contents": []}, {"content": ["wow", {"type": "text"}, 5, {}]}]
)
def test_a_message_of_an_unexpected_shape_is_kept_in_the_payload(message: Any) -> None:
    line = entry(message=message)
    (event,) = events_of(read("claude-code", [line]))
    assert event.data["payload"]["message"] == message


def test_a_message_may_be_a_string_and_a_block_too() -> None:
    first, second = events_of(
        read(
            "claude-code",
            [entry(message="as it is"), entry(uuid="u-2", content=["wow", {"type": "text", "text": "!"}])],
        )
    )
    assert (first.data["text"], second.data["text"]) == ("as it is", "wow\n!")


def test_fields_of_newer_versions_stay_in_the_payload() -> None:
    (event,) = events_of(read("claude-code", [entry(fromTheFuture={"a": [1]})]))
    assert event.data["payload"]["fromTheFuture"] == {"a": [1]}


def test_each_line_of_a_message_names_its_usage_under_the_message_id() -> None:
    calls = parts(
        read("claude-code", [entry(), answer("a-1", "m-1", 2, second=2), answer("a-2", "m-1", 90, second=3)]),
        "model_calls",
    )
    assert [(call["message_id"], call["output_tokens"], call["latency_ms"]) for call in calls] == [
        ("m-1", 2, 2000.0),
        ("m-1", 90, 3000.0),
    ]
    assert (calls[0]["input_tokens"], calls[0]["cache_read_tokens"], calls[0]["cache_creation_tokens"]) == (3, 50, 7)


def test_a_message_that_no_model_made_is_no_model_call() -> None:
    (event,) = events_of(read("claude-code", [answer("a-1", "m-1", 0, model="<synthetic>")]))
    assert "model_calls" not in event.data
    assert "model" not in event.data["session"]


def test_numbers_that_are_none_do_not_spoil_the_record() -> None:
    line = answer("a-1", "m-1", 1)
    line["message"]["usage"] = {
        "input_tokens": -1,
        "output_tokens": "many",
        "cache_read_input_tokens": 2**60,
        "cache_creation_input_tokens": True,
    }
    (call,) = parts(read("claude-code", [line]), "model_calls")
    assert {call[name] for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")} == {
        None
    }


def test_a_tool_use_and_its_result_meet_by_the_call_id() -> None:
    use = {"type": "tool_use", "id": "t-1", "name": "Bash", "input": {"command": "ls"}}
    mapped = read("claude-code", [answer("a-1", "m-1", 5, content=[use]), tool_line("t-1", "über")])
    assert parts(mapped, "tool_calls") == [
        {"tool_call_id": "t-1", "tool_name": "Bash", "started_at": "2026-01-01T00:00:00Z", "input": {"command": "ls"}}
    ]
    assert parts(mapped, "tool_results") == [
        {"tool_call_id": "t-1", "ended_at": "2026-01-01T00:00:01Z", "is_error": False, "output_bytes": 5}
    ]
    assert events_of(mapped)[1].data["role"] == "tool"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<tool_use_error>InputValidationError: Edit failed</tool_use_error>", "InputValidationError"),
        ("Command timed out after 2m 0.0s", "timeout"),
        ("The user doesn't want to proceed with this tool use.", "rejected"),
        ("<tool_use_error>File has not been read yet.</tool_use_error>", "file_not_read"),
        ("Exit code 1\nTraceback", "nonzero_exit"),
        ("Something else", "error"),
        ("", "error"),
    ],
)
def test_a_failed_tool_call_has_a_short_error_type(text: str, kind: str) -> None:
    (result,) = parts(read("claude-code", [tool_line("t-1", text, is_error=True)]), "tool_results")
    assert (result["is_error"], result["error_type"]) == (True, kind)


def test_the_duration_that_a_tool_tells_is_taken() -> None:
    (result,) = parts(read("claude-code", [tool_line("t-1", "3 files", told={"durationMs": 41})]), "tool_results")
    assert result["duration_ms"] == 41


def test_the_duration_of_a_line_with_several_results_is_that_of_none_of_them() -> None:
    line = tool_line("t-1", "3 files", told={"durationMs": 41})
    line["message"]["content"].append({"type": "tool_result", "tool_use_id": "t-2", "content": "4 files"})
    found = parts(read("claude-code", [line]), "tool_results")
    assert [(result["tool_call_id"], result.get("duration_ms")) for result in found] == [("t-1", None), ("t-2", None)]


def test_the_latency_of_an_answer_that_is_dated_before_its_question_is_not_known() -> None:
    lines = [entry(second=5), answer("a-1", "m-1", 2, second=4), answer("a-2", "m-2", 2, second=5)]
    calls = parts(read("claude-code", lines), "model_calls")
    assert [call["latency_ms"] for call in calls] == [None, 0]


@pytest.mark.parametrize("timestamp", [1_767_225_600, 1_767_225_600_000, "2026-01-01T00:00:00Z"])
def test_a_time_may_be_seconds_or_milliseconds_since_1970(timestamp: Any) -> None:
    (event,) = events_of(read("claude-code", [entry(timestamp=timestamp)]))
    assert event.time == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_number_past_all_bounds_is_null() -> None:
    raw = orjson.dumps(entry(cost=0)).replace(b'"cost":0', b'"cost":[1e999,-1e999,NaN]')
    (event,) = events_of(read("claude-code", [raw]))
    assert event.data["payload"]["cost"] == [None, None, None]


def test_a_sub_agent_is_a_session_of_its_own_that_names_its_parent() -> None:
    (event,) = events_of(read("claude-code", [entry(isSidechain=True, agentId="a7")]))
    assert event.data["session_id"] == f"{SESSION}/a7"
    assert event.data["session"]["parent_session_id"] == SESSION


def test_an_early_sub_agent_without_an_id_is_named_by_its_first_line() -> None:
    lines = [
        entry(isSidechain=True),
        entry(uuid="u-2", isSidechain=True, parentUuid="u-1"),
        entry(uuid="u-3", parentUuid="u-2", isSidechain=True),
    ]
    assert {event.data["session_id"] for event in events_of(read("claude-code", lines))} == {f"{SESSION}/u-1"}


@pytest.mark.parametrize("order", [0, 1])
def test_a_summary_belongs_to_the_session_of_its_leaf_before_or_after_it(order: int) -> None:
    lines = [{"type": "summary", "summary": "Fixed it", "leafUuid": "u-1"}, entry(second=5)]
    found = events_of(read("claude-code", lines if order == 0 else lines[::-1], name="other"))
    (summary,) = [event for event in found if event.data["event_type"] == "summary"]
    assert (summary.data["session_id"], summary.data["session"]["summary"]) == (SESSION, "Fixed it")
    assert summary.time == next(event.time for event in found if event.data["event_type"] == "user")


def test_a_summary_whose_leaf_is_elsewhere_belongs_to_the_session_of_the_files_name() -> None:
    (event,) = events_of(
        read("claude-code", [{"type": "summary", "summary": "Earlier", "leafUuid": "gone"}], name="s-9")
    )
    assert (event.data["session_id"], event.time) == ("s-9", MODIFIED)


def test_a_line_that_lies_too_far_back_is_forgotten_and_the_latest_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("processors.telemetry.formats.claude_code.MAX_REMEMBERED", 1)
    refer = [{"type": "summary", "summary": leaf, "leafUuid": leaf} for leaf in ("u-1", "u-2")]
    found = events_of(read("claude-code", [entry(), entry(uuid="u-2"), *refer], name="s-9"))
    sessions = {event.data["text"]: event.data["session_id"] for event in found}
    assert (sessions["u-1"], sessions["u-2"]) == ("s-9", SESSION)


def test_the_goal_is_what_a_person_asked_and_not_what_the_program_put_there() -> None:
    asked = "Please " + "look " * 100
    texts = ["<command-name>/clear</command-name>", "Caveat: The messages below were generated", asked]
    lines = [entry(uuid=f"u-{number}", content=text) for number, text in enumerate(texts)]
    lines.insert(0, entry(uuid="meta", content="A hook's note", isMeta=True))
    goals = [event.data["session"].get("goal") for event in events_of(read("claude-code", lines))]
    assert goals[:3] == [None, None, None]
    assert goals[3] is not None and goals[3].startswith("Please look") and len(goals[3]) == 200


def test_the_bytes_of_images_are_left_out_and_counted() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 5000}}
    (event,) = events_of(read("claude-code", [entry(content=[image, {"type": "text", "text": "see"}])]))
    assert event.data["payload"]["message"]["content"][0]["source"]["data"] == {"omitted_bytes": 5000}


def test_secrets_are_taken_out_of_text_payload_and_input() -> None:
    secret = "sk-" + "ant-api03-" + "a1B2c3D4e5" * 3
    use = {"type": "tool_use", "id": "t-1", "name": "Bash", "input": {"command": f"export KEY={secret}"}}
    (event,) = events_of(
        read("claude-code", [answer("a-1", "m-1", 1, content=[{"type": "text", "text": f"it is\n{secret}"}, use])])
    )
    assert secret not in str(event.data)
    assert event.data["tool_calls"][0]["input"]["command"] == "export KEY=[redacted:api-key]"


@pytest.mark.parametrize("broken", [rb"\ud83d", rb"\u0000", b"\xff"])
def test_what_the_codec_refuses_in_a_text_is_replaced(broken: bytes) -> None:
    raw = orjson.dumps(entry(content="a?b")).replace(b"?", broken)
    (event,) = events_of(read("claude-code", [raw]))
    assert event.data["text"] == "a\ufffdb"


def test_the_bundled_example_shows_what_a_session_holds() -> None:
    mapped = read("claude-code", session_path().read_bytes().splitlines(), name=session_path().stem)
    events = events_of(mapped)
    assert [item.reason.split(":")[0] for item in unreadable_of(mapped)] == ["not JSON, the line is cut off"]
    assert len({event.id for event in events}) == len(events) == 45
    assert len({event.data["session_id"] for event in events}) == 2
    assert len({call["model"] for call in parts(mapped, "model_calls")}) == 2
    assert {result["error_type"] for result in parts(mapped, "tool_results") if result["is_error"]} == {
        "file_not_read",
        "nonzero_exit",
    }
    calls = [call["tool_call_id"] for call in parts(mapped, "tool_calls")]
    assert sorted(calls) == sorted(result["tool_call_id"] for result in parts(mapped, "tool_results"))
    assert {call["tool_name"] for call in parts(mapped, "tool_calls")} == {"Bash", "Read", "Edit", "Grep", "Task"}


def shown(line: dict[str, Any], *, agent: Any = "a1", second: float = 0, **more: Any) -> dict[str, Any]:
    """A line of the parent's transcript that shows this line of its sub-agent's."""
    data = {"type": "agent_progress", "agentId": agent, "prompt": "Search.", "message": line}
    return (
        entry("progress", uuid=f"shown-{line.get('uuid')}", second=second) | {"data": data, "isSidechain": False} | more
    )


def own(line: dict[str, Any]) -> dict[str, Any]:
    """The line as the sub-agent's own transcript has it."""
    return line | {"isSidechain": True, "agentId": "a1"}


def of_sub_agent() -> list[dict[str, Any]]:
    call = [{"type": "tool_use", "id": "t-1", "name": "Grep", "input": {"pattern": "sign"}}]
    return [
        entry(uuid="p-1", second=1, content="Search the parser for the sign."),
        answer("p-2", "m-1", 40, second=2, content=call),
        tool_line("t-1", "parser.py:7", second=4) | {"uuid": "p-3"},
        answer("p-4", "m-2", 60, second=5, content=[{"type": "text", "text": "It is lost in line 7."}]),
    ]


def test_a_sub_agent_that_a_transcript_shows_is_a_session_of_its_own_with_its_parent_tool_calls_and_tokens() -> None:
    prompt, call, result, end = events_of(read("claude-code", [shown(line) for line in of_sub_agent()]))
    for event in (prompt, call, result, end):
        assert (event.data["session_id"], event.data["session"]["parent_session_id"]) == (f"{SESSION}/a1", SESSION)
        assert (event.data["event_type"], event.data["payload"]["type"]) == ("progress", "progress")
    assert prompt.id == "shown-p-1" and prompt.data["session"]["goal"] == "Search the parser for the sign."
    assert call.data["tool_calls"][0]["tool_call_id"] == "t-1" and call.data["model_calls"][0]["output_tokens"] == 40
    assert (result.data["role"], result.data["tool_results"][0]["tool_call_id"]) == ("tool", "t-1")
    assert (end.data["text"], end.time.second) == ("It is lost in line 7.", 5)


def test_a_sub_agent_counts_once_where_its_own_transcript_is_imported_too_in_either_order() -> None:
    showing = events_of(read("claude-code", [shown(line) for line in of_sub_agent()]))
    itself = events_of(read("claude-code", [own(line) for line in of_sub_agent()]))
    found = []
    for events in (showing + itself, itself + showing, itself):
        store = Store()
        store.publish(*events, topic=TELEMETRY.name)
        found.append(
            [
                store.sql("SELECT session_id, tool_call_id, duration_ms, is_error FROM tool_calls"),
                store.sql("SELECT session_id, message_id, output_tokens FROM model_calls ORDER BY message_id"),
                store.sql("SELECT session_id, role, text, created_at FROM turns ORDER BY created_at"),
                store.sql("SELECT session_id, parent_session_id, goal, started_at, ended_at FROM sessions"),
            ]
        )
    assert found[0] == found[1] == found[2]
    calls, models, turns, sessions = found[0]
    assert len(calls) == len(sessions) == 1 and [row[2] for row in models] == [40, 60]
    assert [(role, text) for _, role, text, _ in turns] == [
        ("assistant", "Search the parser for the sign."),
        ("assistant", "It is lost in line 7."),
    ]


def test_a_sub_agent_of_a_sub_agent_names_that_as_its_parent() -> None:
    nested = shown(of_sub_agent()[0], agent="a2") | {"isSidechain": True, "agentId": "a1"}
    (event,) = events_of(read("claude-code", [nested]))
    assert event.data["session_id"] == f"{SESSION}/a2"
    assert event.data["session"]["parent_session_id"] == f"{SESSION}/a1"


@pytest.mark.parametrize("agent", [None, "", 7, "x" * 600])
def test_progress_that_names_no_agent_stays_a_line_of_its_session(agent: Any) -> None:
    (event,) = events_of(read("claude-code", [shown(of_sub_agent()[1], agent=agent)]))
    assert event.data["session_id"] == SESSION and "tool_calls" not in event.data
    odd = entry("progress") | {"data": {"type": "agent_progress", "agentId": "a1", "message": 7}}
    (event,) = events_of(read("claude-code", [odd]))
    assert event.data["session_id"] == SESSION
