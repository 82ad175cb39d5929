"""Every call goes one way, is answered in one shape, and leaves one record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from mcp_ingress import call as calls
from mcp_ingress.door import Answer, Door, Principal, Request, Visitor
from mcp_ingress.inventory import Inventory
from mcp_ingress.services import Limits
from mcp_ingress.toolset import Pulse
from streams.errors import LogUnavailable, UnknownTool
from streams.events import Event
from streams.log.base import Outgoing
from streams.log.sqlite import SqliteLog
from streams.positions import Position
from streams.topics import INVOCATIONS, TELEMETRY
from tests.ingress.lines import WAIT_S
from tests.ingress.parts import NoIndexes, events_on, opened_door
from tests.ingress.tools import ALL, DEMO, demo_tools

SESSION = "2026-01-15-demo"


@dataclass
class SetClock:
    """A clock that the test moves."""

    seconds: float = 100.0

    def now(self) -> datetime:
        return datetime(2026, 1, 15, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class Desk:
    """A door and a visitor in front of it."""

    door: Door
    visitor: Visitor = field(init=False)

    def __post_init__(self) -> None:
        self.visitor = Visitor(self.door.local)

    async def call(self, tool: str, _meta: dict[str, Any] | None = None, **arguments: Any) -> Answer:
        return await self.door.call(self.visitor, Request(tool, arguments, _meta or {}))

    async def events(self, topic: str) -> list[Event]:
        await self.door.publisher.flush(WAIT_S)
        assert self.door.publisher.waiting == 0
        log = self.door.services.log
        assert isinstance(log, SqliteLog)
        return await events_on(log, topic)

    async def record(self) -> dict[str, Any]:
        """The only invocation record there is."""
        (event,) = await self.events(INVOCATIONS.name)
        return dict(event.data)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with opened_door(tmp_path) as door:
        yield Desk(door)


async def test_an_answer_is_the_object_and_the_same_as_text(desk: Desk) -> None:
    answer = await desk.call("echo", text="hi")
    assert answer.body["arguments"] == {"text": "hi", "times": 1}
    assert json.loads(answer.text) == answer.body
    assert not answer.is_error


async def test_the_namespace_comes_from_the_credential(desk: Desk) -> None:
    desk.visitor = Visitor(Principal("alice", "alices"))
    assert (await desk.call("echo")).body["namespace"] == "alices"
    (event,) = await desk.events(INVOCATIONS.name)
    assert event.namespace == "alices"
    refused = await desk.call("echo", namespace="bobs")
    assert refused.body["error_code"] == "invalid_argument"


@pytest.mark.parametrize("name", ["thalweg/request_id", "claudecode/toolUseId"])
async def test_the_request_id_is_the_callers_when_it_names_one(desk: Desk, name: str) -> None:
    assert (await desk.call("echo", {name: "r-1"})).body["request_id"] == "r-1"


async def test_without_a_request_id_the_same_call_twice_is_two_requests(desk: Desk) -> None:
    first, second = await desk.call("echo"), await desk.call("echo")
    assert first.body["request_id"] != second.body["request_id"]


@pytest.mark.parametrize("value", ["", 7, "x" * 257, "a\0b", ["r"]])
async def test_what_cannot_be_a_request_id_is_refused(desk: Desk, value: Any) -> None:
    answer = await desk.call("echo", {"thalweg/request_id": value})
    assert answer.body["error_code"] == "invalid_argument"


async def test_a_write_answers_its_freshness_in_meta_too_and_a_read_asks_for_it(desk: Desk) -> None:
    written = await desk.call("write_note", content="a")
    assert written.meta == {"thalweg/freshness": written.body["freshness"]}
    assert (await desk.call("asked")).body["asked"] == written.body["freshness"]
    other = {TELEMETRY.name: {"3": 9}}
    assert (await desk.call("asked", {"thalweg/freshness": other})).body["asked"] == other


async def test_a_malformed_freshness_token_is_refused(desk: Desk) -> None:
    answer = await desk.call("asked", {"thalweg/freshness": {"topic": "5"}})
    assert answer.body["error_code"] == "invalid_argument" and "freshness token" in answer.body["message"]


async def test_a_well_formed_traceparent_is_handed_on_and_another_is_not(desk: Desk) -> None:
    parent = f"00-{'a' * 32}-{'b' * 16}-01"
    assert (await desk.call("asked", {"traceparent": parent})).body["traceparent"] == parent
    assert (await desk.call("asked", {"traceparent": "hello"})).body["traceparent"] is None


async def test_background_work_gives_way_while_a_call_runs_and_no_longer(desk: Desk) -> None:
    indexes = cast(NoIndexes, desk.door.services.indexes)
    running = asyncio.ensure_future(desk.call("slow", seconds=0.2))
    async with asyncio.timeout(WAIT_S):
        while not indexes.calls:
            await asyncio.sleep(0)
    assert indexes.calls == 1
    await running
    assert indexes.calls == 0
    await desk.call("fail", how="refused")
    assert indexes.calls == 0


async def test_a_refusal_has_the_tools_code_and_extras_which_hide_nothing(desk: Desk) -> None:
    answer = await desk.call("fail", how="refused")
    assert answer.is_error and json.loads(answer.text) == answer.body
    assert answer.body == {
        "success": False,
        "degraded": False,
        "error_code": "already_superseded",
        "message": "That belief is superseded.",
        "superseded_by": "b-2",
    }


async def test_what_is_unavailable_is_answered_degraded_with_when_to_try_again(desk: Desk) -> None:
    answer = await desk.call("fail", how="unavailable")
    assert answer.is_error
    assert (
        answer.body["degraded"] and answer.body["error_code"] == "unavailable" and answer.body["retry_after_ms"] == 250
    )


async def test_a_degraded_answer_of_a_tool_is_no_error_but_recorded_as_one(desk: Desk) -> None:
    answer = await desk.call("fail", how="degraded")
    assert not answer.is_error and answer.body["degraded"]
    record = await desk.record()
    assert (record["outcome"], record["error_code"]) == ("error", "degraded")


@pytest.mark.parametrize(("how", "name"), [("bug", "KeyError"), ("not_json", "TypeError")])
async def test_a_defect_shows_its_class_and_nothing_of_its_message(
    desk: Desk, how: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await desk.call("fail", how=how)
    assert answer.is_error and answer.body["error_code"] == "internal_error"
    assert name in answer.text and "secret" not in answer.text
    assert any(entry.exc_info for entry in caplog.records)


async def test_a_tool_that_takes_too_long_is_answered_timeout(desk: Desk) -> None:
    answer = await desk.call("slow", seconds=5)
    assert answer.is_error and answer.body["error_code"] == "timeout"
    assert (await desk.record())["outcome"] == "timeout"


async def test_a_write_that_is_on_the_log_answers_pending_before_its_time_is_up(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "ANSWER_MARGIN_S", 20.0)
    desk.door.services.limits = Limits(write_wait_s=WAIT_S)
    assert desk.door.services.limits.write_wait_s > desk.door.inventory.tools["decide"].timeout_s
    answer = await desk.call("decide")
    assert answer.body == {"success": True, "pending": True}


async def test_an_unknown_tool_names_the_nearest(desk: Desk) -> None:
    with pytest.raises(UnknownTool, match=r"There is no tool 'write_nota'. Did you mean 'write_note'?"):
        await desk.call("write_nota")
    assert (await desk.record())["outcome"] == "unknown_tool"


async def test_the_tools_that_a_client_prefixes_are_found_near() -> None:
    assert demo_tools().nearest("mcp__thalweg__echo") == "echo"


async def test_a_cancelled_call_is_recorded_and_stays_cancelled(desk: Desk) -> None:
    running = asyncio.create_task(desk.call("patient", seconds=30))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await desk.record())["outcome"] == "cancelled"


async def test_a_record_says_who_what_and_how_much_but_holds_no_body(desk: Desk) -> None:
    desk.visitor.connection.client = "a client"
    answer = await desk.call("echo", {"thalweg/request_id": "r-1"}, text="private words", session_id=SESSION)
    record = await desk.record()
    assert record.pop("duration_ms") >= 0
    assert record == {
        "tool": "echo",
        "toolset": "demo",
        "request_id": "r-1",
        "session_id": SESSION,
        "client": "a client",
        "outcome": "ok",
        "error_code": None,
        "input_bytes": len('{"text":"private words","session_id":"2026-01-15-demo"}'),
        "output_bytes": len(answer.text.encode()),
    }
    assert "private" not in json.dumps(record)


async def test_a_refused_call_with_a_strange_name_and_arguments_still_leaves_a_readable_record(desk: Desk) -> None:
    with pytest.raises(UnknownTool):
        await desk.call("a\0b" * 100, text="\ud800")
    record = await desk.record()
    assert "\0" not in record["tool"] and record["input_bytes"] is None


async def test_a_call_in_a_session_leaves_telemetry_of_it(desk: Desk) -> None:
    await desk.call("echo", session_id=SESSION)
    await desk.call("fail", how="refused", session_id=SESSION)
    found = sorted(await desk.events(TELEMETRY.name), key=lambda event: event.data["attributes"]["talos.tool.name"])
    assert [event.type for event in found] == ["thalweg.session.tool_call.v1"] * 2
    assert {event.data["trace_id"] for event in found} == {f"sess-{SESSION}"}
    echoed, failed = (dict(event.data["attributes"]) for event in found)
    assert echoed.pop("talos.tool.duration_ms") >= 0
    assert echoed == {"talos.session.id": SESSION, "talos.tool.name": "echo", "talos.tool.success": True}
    assert failed["talos.tool.success"] is False and failed["talos.tool.error_type"] == "already_superseded"


async def test_the_session_opened_last_on_the_connection_is_the_calls_session(desk: Desk) -> None:
    desk.visitor.connection.open_session_id = SESSION
    await desk.call("asked")
    (event,) = await desk.events(TELEMETRY.name)
    assert event.data["attributes"]["talos.session.id"] == SESSION


async def test_a_call_that_names_another_toolsets_session_has_it_in_its_record_alone(desk: Desk) -> None:
    await desk.call("echo", session_id="4cde2a36-d51f-591a-ae4b-aa234dfa0469")
    assert (await desk.record())["session_id"] == "4cde2a36-d51f-591a-ae4b-aa234dfa0469"
    assert await desk.events(TELEMETRY.name) == []


async def test_a_malformed_session_id_belongs_to_no_session(desk: Desk) -> None:
    desk.visitor.connection.open_session_id = SESSION
    await desk.call("echo", session_id="not one")
    assert (await desk.record())["session_id"] is None
    assert await desk.events(TELEMETRY.name) == []


async def test_secrets_are_taken_out_of_what_a_write_would_keep(desk: Desk) -> None:
    token = "ghp_" + "a1B2" * 9
    content = (await desk.call("write_note", content=f"use {token} now")).body["content"]
    assert token not in content and content.startswith("use [redacted:") and content.endswith("] now")


async def test_too_many_calls_are_refused_with_when_to_try_again_and_others_are_not(tmp_path: Path) -> None:
    clock = SetClock()
    async with opened_door(tmp_path, clock=clock, rate_limit=2.0) as door:
        desk = Desk(door)
        for _ in range(4):
            assert not (await desk.call("echo")).is_error
        refused = await desk.call("echo", session_id=SESSION)
        assert refused.body["error_code"] == "rate_limited" and refused.body["retry_after_ms"] == 500
        assert not (await door.call(Visitor(Principal("other", "default")), Request("echo", {}))).is_error
        clock.seconds += 0.5
        assert not (await desk.call("echo")).is_error
        outcomes = [event.data["outcome"] for event in await desk.events(INVOCATIONS.name)]
        assert sorted(outcomes) == ["ok"] * 6 + ["rate_limited"]
        assert await desk.events(TELEMETRY.name) == []


async def test_a_toolsets_pulse_is_in_every_answer_also_in_what_was_refused_failed_or_never_ran(tmp_path: Path) -> None:
    async def pulse(services: Any, namespace: str) -> dict[str, Any]:
        return {"entropy": 0.5, "of": namespace}

    beating = Inventory.of(ALL, [replace(DEMO, pulse=Pulse("cognitive_pulse", pulse))])
    async with opened_door(tmp_path, beating, rate_limit=3.0, clock=SetClock()) as door:
        desk = Desk(door)
        answers = [
            await desk.call("echo"),
            await desk.call("fail", how="refused"),
            await desk.call("slow", seconds=5),
            await desk.call("echo", _meta={"thalweg/request_id": ""}),
            await desk.call("fail", how="bug"),
            await desk.call("echo"),
            await desk.call("echo"),
        ]
        codes = [answer.body.get("error_code") for answer in answers]
        assert codes[:5] == [None, "already_superseded", "timeout", "invalid_argument", "internal_error"]
        assert codes[-1] == "rate_limited"
        for answer in answers:
            assert answer.body["_cognitive_pulse"] == {"entropy": 0.5, "of": "default"}
            assert (answer.meta or {})["thalweg/cognitive_pulse"] == answer.body["_cognitive_pulse"]
            assert json.loads(answer.text) == answer.body


async def test_a_call_whose_pulse_cannot_be_read_fails_and_says_that_its_write_stands(tmp_path: Path) -> None:
    async def broken(services: Any, namespace: str) -> dict[str, Any]:
        raise RuntimeError("no heart")

    async with opened_door(
        tmp_path, Inventory.of(ALL, [replace(DEMO, pulse=Pulse("cognitive_pulse", broken))])
    ) as door:
        desk = Desk(door)
        read, refused, wrote = (
            await desk.call("echo"),
            await desk.call("fail", how="refused"),
            await desk.call("write_note", content="kept"),
        )
        assert read.failure is not None and (read.failure.code, read.failure.rpc_code) == ("pulse", -32603)
        assert "accepted" not in read.body["message"] and "heart" not in read.text
        assert refused.body["error_code"] == "already_superseded", "what went wrong first is told"
        assert wrote.is_error and "do not send it again" in wrote.body["message"]
        assert wrote.body["freshness"] == (wrote.meta or {})["thalweg/freshness"] != {}
        (note,) = [
            event for event in await desk.events(TELEMETRY.name) if event.data["attributes"].get("talos.content")
        ]
        assert note.data["attributes"]["talos.content"] == "kept"
        outcomes = [event.data.get("error_code") for event in await desk.events(INVOCATIONS.name)]
        assert outcomes == ["pulse", "already_superseded", "pulse"]


class StuckLog(SqliteLog):
    """A log whose acknowledgements stay away until it is let go."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go = asyncio.Event()
        self.down = False

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        if self.down:
            raise LogUnavailable("away")
        await self.go.wait()
        return await super().publish(records, timeout_s=timeout_s)


async def test_an_answer_does_not_wait_for_its_record_and_a_full_queue_is_counted(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as door:
        stuck = StuckLog(tmp_path / "log.db")
        await stuck.start()
        door.publisher._log, door.publisher._capacity = stuck, 3
        desk = Desk(door)
        for _ in range(5):
            assert not (await asyncio.wait_for(desk.call("echo"), WAIT_S)).is_error
        status = door.status()
        assert (status["calls"], status["records_waiting"], status["records_dropped"]) == (5, 3, 2)
        stuck.go.set()
        assert len(await desk.events(INVOCATIONS.name)) == 3
        assert door.status()["records_published"] == 3
        await stuck.stop()


async def test_stopping_is_bounded_when_the_log_is_away(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as door:
        stuck = StuckLog(tmp_path / "log.db")
        stuck.down = True
        door.publisher._log = stuck
        await Desk(door).call("echo")
        await asyncio.wait_for(door.stop(0.1), WAIT_S)
        assert door.status()["records_dropped"] == 1
