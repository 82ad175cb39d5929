"""A client's hook is answered by a whole node: a brief at a session's start, and facts with a prompt."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC as ZERO
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.door import Request, Visitor
from processors.embedding.hashing import HashingEmbedder
from processors.telemetry.formats.claude_code import Mapper
from streams.events import Event
from streams.topics import TELEMETRY
from tests.schema import migrated_home
from thalweg.process.node import Node
from thalweg.settings import Settings

pytestmark = pytest.mark.process

START = datetime(2026, 1, 5, tzinfo=ZERO)
UTC = "We decided to store all times of the billing service in UTC."
QUESTION = "Was it decided that we store all times of the billing service in UTC?"
OTHERS = (
    "The parser rejects a missing comma.",
    "Retries double their pause up to a minute.",
    "Ann reviews what touches the schema.",
    "The nightly build takes forty minutes.",
    "Screenshots go into the wiki.",
    "Logs rotate once they are a gigabyte.",
    "A flag turns the new editor on.",
    "Two people approve a migration.",
    "Keyboard shortcuts follow the platform.",
    "Old branches are deleted every Friday.",
    "The cache is warm after three requests.",
)
"""What words are rare shows only beside other texts."""


class Asker:
    """A client of the node, whose hooks and tools are called as the real one calls them."""

    def __init__(self, node: Node) -> None:
        self.node = node

    async def hook(self, event: str, session: str = "s2", **given: Any) -> dict[str, Any]:
        body = json.dumps({"session_id": session, "hook_event_name": event, "cwd": "/repo", **given}).encode()
        return await self.raw(event, body)

    async def raw(self, event: str, body: bytes, **more: Any) -> dict[str, Any]:
        request = {"command": "hook", "event": event, "namespace": "default", "answer": True, "timeout_s": 30.0, **more}
        answer = await self.node.control.handle({**request, "input": base64.b64encode(body).decode()})
        if answer["ok"]:
            await self.node.running.has_reached("now")
        return answer

    async def context(self, event: str, session: str = "s2", **given: Any) -> str | None:
        answer = await self.hook(event, session, **given)
        assert answer["ok"], answer
        text: str | None = answer["context"]
        return text

    async def call(self, tool: str, *, request_id: str | None = None, **arguments: Any) -> dict[str, Any]:
        meta = {"thalweg/request_id": request_id} if request_id else {}
        visitor = Visitor(self.node.running.door.local)
        answer = (await self.node.running.door.call(visitor, Request(tool, arguments, meta))).body
        assert "error_code" not in answer, answer
        return answer

    async def settled(self) -> None:
        await self.node.running.has_reached("now", ("embed",))

    async def decide(self, text: str = UTC, **more: Any) -> str:
        written = await self.call("journal_write", content=text, category="decision", **more)
        await self.settled()
        return str(written["entry_id"])

    async def decide_others(self) -> None:
        for text in OTHERS:
            await self.call("journal_write", content=text, category="decision")
        await self.settled()

    async def say(self, session: str, *texts: str, role: str = "assistant", at: datetime = START) -> None:
        """What a session's transcript brings when it is imported."""
        reader = Mapper(namespace="default", name=session, fallback_time=at)
        for number, text in enumerate(texts):
            message = {"role": role, "content": [{"type": "text", "text": text}]}
            line = {"type": role, "uuid": f"{session}-{text}", "sessionId": session, "message": message}
            for event in reader.line(number, json.dumps(line).encode()):
                assert isinstance(event, Event)
                await self.node.running.publish(event, TELEMETRY.name)
        await self.node.running.has_reached("now")

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return await self.node.running.store.reader.run(lambda cursor: cursor.execute(sql).fetchall())


@pytest.fixture
async def asker(tmp_path: Path) -> AsyncIterator[Asker]:
    """A node whose model passes for a trained one: texts with common words are near."""
    node = Node(Settings(home=migrated_home(tmp_path / "home"), embedder="hashing", partitions=1, write_wait_s=30.0))
    await node.start()
    model = HashingEmbedder()
    model.info = replace(model.info, trained=True)
    node.running.use(model)
    yield Asker(node)
    await node.stop()


async def test_a_prompt_is_given_the_fact_that_bears_on_it_and_sql_and_why_say_so(asker: Asker) -> None:
    await asker.decide_others()
    entry = await asker.decide()
    text = await asker.context("UserPromptSubmit", prompt=QUESTION)
    assert text is not None and UTC in text
    [(session, hook, records, scores, tokens, digest)] = await asker.rows(
        "SELECT session_id, hook, record_ids, scores, tokens, prompt_digest FROM injections"
    )
    assert (session, hook, tokens) == ("s2", "UserPromptSubmit", -(-len(text) // 4))
    assert (
        len(records) == len(scores) == 1 and 0.5 <= scores[0] <= 1 and f"[{records[0]}]" in text and len(digest) == 16
    )
    why = {"command": "why", "namespace": "default", "query": QUESTION}
    given = await asker.node.control.handle({**why, "record_id": records[0]})
    assert [(one["session_id"], one["hook"], one["score"]) for one in given["injected"]] == [("s2", hook, scores[0])]
    others = {entry, "s2"} - set(records)
    assert all([(await asker.node.control.handle({**why, "record_id": other}))["injected"] == [] for other in others])
    events = await asker.rows(
        "SELECT payload->>'prompt' FROM session_events WHERE event_type = 'hook.UserPromptSubmit'"
    )
    assert events == [(QUESTION,)], "the prompt is captured too"


async def test_a_prompt_is_given_what_holds_now_against_what_it_was_and_never_that_alone(asker: Asker) -> None:
    await asker.decide_others()
    was, now = "The payment client retries three times.", "The payment client retries five times."
    for text in (was, now):
        belief = (await asker.call("belief_create", content=text))["belief"]
        await asker.node.running.has_reached("now", ("embed", "changes", "tensions"))
    asked = "How often does the payment client retry, three times?"
    text = str(await asker.context("UserPromptSubmit", prompt=asked))
    assert f"{now} — against: {was} [{belief['id']}]" in text and text.count("\n- ") == 1
    assert await asker.context("UserPromptSubmit", prompt=asked) is None, "the session has it now"


async def test_a_copy_of_a_corrected_belief_is_given_with_what_is_right_and_once(
    asker: Asker,
) -> None:
    await asker.decide_others()
    was, right = "The payment client retries three times.", "Six attempts are made before the customer sees an error."
    belief = (await asker.call("belief_create", content=was))["belief"]
    await asker.call("journal_write", content=was, category="insight")
    await asker.settled()
    asked = "How often does the payment client retry, three times?"
    assert was in str(await asker.context("UserPromptSubmit", prompt=asked))
    await asker.call("correct", id=belief["id"], text=right)
    await asker.settled()
    text = str(await asker.context("UserPromptSubmit", "s3", prompt=asked))
    assert f"{right} — against: {was}" in text and text.count("\n- ") == 1
    assert await asker.context("UserPromptSubmit", "s3", prompt=asked) is None


async def test_a_prompt_that_nothing_bears_on_is_given_nothing_and_nothing_is_recorded(asker: Asker) -> None:
    await asker.decide_others()
    await asker.decide()
    assert await asker.context("UserPromptSubmit", prompt="Write a haiku on an owl and moonlight.") is None
    assert await asker.context("UserPromptSubmit", prompt="   ") is None
    assert await asker.context("UserPromptSubmit", prompt=None) is None
    assert await asker.context("Stop") is None
    assert await asker.rows("SELECT * FROM injections") == []


async def test_a_session_is_given_a_fact_once_and_again_after_its_context_was_summarised(asker: Asker) -> None:
    await asker.decide_others()
    await asker.decide()
    assert UTC in str(await asker.context("UserPromptSubmit", prompt=QUESTION))
    assert await asker.context("UserPromptSubmit", prompt=QUESTION) is None
    assert UTC in str(await asker.context("UserPromptSubmit", "s3", prompt=QUESTION)), "another session's is its own"
    await asker.context("PreCompact", trigger="auto")
    assert UTC in str(await asker.context("UserPromptSubmit", prompt=QUESTION))


async def test_a_session_is_never_given_what_it_said_itself_or_its_sub_agents(asker: Asker) -> None:
    await asker.decide_others()
    named = "2026-01-05-named"
    agents = "The crane scheduler of the harbour runs its jobs in quartz mode."
    by_name = "The lighthouse exporter signs all of its bundles with ed25519 keys."
    for session, call, text in (("s2", "toolu_1", UTC), ("s2/agent", "toolu_2", agents)):
        await asker.hook("PreToolUse", session, tool_name="journal_write", tool_use_id=call, tool_input={})
        await asker.decide(text, request_id=call)
    await asker.decide(by_name, session_id=named)
    for own, text in (("s2", UTC), ("s2", agents), (named, by_name)):
        prompt = f"Remind me: {text}"
        assert await asker.context("UserPromptSubmit", own, prompt=prompt) is None
        assert text in str(await asker.context("UserPromptSubmit", "s3", prompt=prompt))


async def test_a_session_that_has_as_good_a_fact_in_sight_is_not_given_another(asker: Asker) -> None:
    await asker.decide_others()
    await asker.decide(UTC)
    assert UTC in str(await asker.context("UserPromptSubmit", "s3", prompt=QUESTION))
    await asker.decide(f"{UTC} Ann said so.", session_id="2026-01-05-named")
    assert await asker.context("UserPromptSubmit", "2026-01-05-named", prompt=QUESTION) is None


async def test_a_prompt_is_given_what_another_session_said_and_nothing_once_its_own_says_as_much(asker: Asker) -> None:
    await asker.say("s1", *OTHERS, UTC)
    await asker.say("s2", "The scheduler is fine.")
    assert UTC in str(await asker.context("UserPromptSubmit", "s3", prompt=QUESTION))
    assert await asker.context("UserPromptSubmit", "s1", prompt=QUESTION) is None, "it said that itself"
    await asker.say("s2", QUESTION, role="user")
    assert UTC in str(await asker.context("UserPromptSubmit", "s2", prompt=QUESTION)), "its own prompt tells nothing"
    await asker.say("s4", f"{UTC} Ann said so.")
    assert await asker.context("UserPromptSubmit", "s4", prompt=QUESTION) is None, "it has as much in sight"


async def test_what_is_private_is_given_to_nobody(asker: Asker) -> None:
    await asker.decide_others()
    await asker.decide(domain="private")
    assert await asker.context("UserPromptSubmit", prompt=QUESTION) is None
    assert "UTC" not in str(await asker.context("SessionStart", source="startup"))


async def test_the_brief_names_decisions_goals_and_the_last_session_but_nothing_that_was_retracted(
    asker: Asker,
) -> None:
    assert await asker.context("SessionStart", source="startup") is None, "nothing is known yet"
    await asker.call(
        "session_open", session_id="2026-01-05-a", goal="Move to Postgres 17", persona="p", protocol="q", human="h"
    )
    kept, wrong = await asker.decide(), await asker.decide("We decided on Oracle.")
    retracted = {"command": "request", "namespace": "default", "type": "thalweg.talos.journal.retracted.v1"}
    assert (await asker.node.control.handle({**retracted, "data": {"entry_id": wrong}}))["ok"]
    text = str(await asker.context("SessionStart", source="startup"))
    assert f"{UTC} [{kept}]" in text and "Oracle" not in text
    assert "Move to Postgres 17 [2026-01-05-a]" in text and "Open goals" in text
    assert -(-len(text) // 4) <= 800
    [(records, scores)] = await asker.rows("SELECT record_ids, scores FROM injections")
    assert kept in records and "2026-01-05-a" in records and set(scores) == {None}
    assert await asker.context("UserPromptSubmit", prompt=QUESTION) is None, "the brief has said it"


async def test_the_brief_names_what_was_remembered_as_a_goal_until_it_is_retracted(asker: Asker) -> None:
    kept = await asker.call("remember", text="Ship the importer before the audit.", kind="goal")
    await asker.settled()
    text = str(await asker.context("SessionStart", source="startup"))
    assert f"Ship the importer before the audit. [{kept['id']}]" in text.partition("Open goals:")[2]
    await asker.call("correct", id=kept["id"], retract=True, reason="done")
    await asker.settled()
    assert "importer" not in str(await asker.context("SessionStart", "s3", source="startup"))


async def test_what_was_said_in_another_session_is_given_with_who_said_it_and_ends_the_brief(asker: Asker) -> None:
    await asker.say("s0", *OTHERS)
    await asker.say("s1", "Where do we keep the times?", role="user")
    await asker.say("s1", UTC)
    await asker.node.running.has_reached("now")
    brief = str(await asker.context("SessionStart", "s3", source="startup"))
    assert "goal: Where do we keep the times? [s1]" in brief and f"last words: {UTC} [turn-" in brief
    assert await asker.context("UserPromptSubmit", "s3", prompt=QUESTION) is None, "the brief has said it"
    assert f"2026-01-05 assistant said: {UTC} [" in str(await asker.context("UserPromptSubmit", prompt=QUESTION))
    assert await asker.context("UserPromptSubmit", "s1", prompt=QUESTION) is None, "it is the session's own"


async def test_the_brief_names_the_last_three_sessions_the_newest_first(asker: Asker) -> None:
    for number, asked in enumerate(("Mend the parser.", "Paint the door.", "Write the manual.", "Ask Ann.")):
        await asker.say(f"s{number}", asked, role="user", at=START + timedelta(hours=number))
    brief = str(await asker.context("SessionStart", "s9", source="startup"))
    sessions = brief.partition("Last sessions, the newest first:")[2]
    places = [sessions.find(asked) for asked in ("Ask Ann.", "Write the manual.", "Paint the door.")]
    assert places == sorted(places) and places[0] > 0 and "Mend the parser." not in brief


async def test_a_session_that_is_resumed_is_told_only_what_came_since(asker: Asker) -> None:
    await asker.decide()
    assert UTC in str(await asker.context("SessionStart", source="startup"))
    assert await asker.context("SessionStart", source="resume") is None
    await asker.decide("We decided to pay on Mondays.")
    text = str(await asker.context("SessionStart", source="resume"))
    assert "Mondays" in text and UTC not in text
    await asker.context("PreCompact", trigger="auto")
    text = str(await asker.context("SessionStart", source="compact"))
    assert "Mondays" in text and UTC in text, "a summary may have lost both"


async def test_what_a_later_decision_changes_stands_beside_it_and_not_among_the_decisions(asker: Asker) -> None:
    await asker.decide("The deploy day is Monday.")
    later = await asker.decide("The deploy day is Friday.")
    await asker.node.running.has_reached("now", ("embed", "changes"))
    text = str(await asker.context("SessionStart", source="startup"))
    decisions, _, contradictions = text.partition("Open contradictions, the newer first:")
    assert "Friday" in decisions and "Monday" not in decisions
    assert "Friday. — against: The deploy day is Monday." in contradictions and later in decisions
    assert contradictions.count("against") == 1, "a decision and what was found in it are one"


async def test_what_was_decided_again_after_it_was_changed_is_a_decision_again(asker: Asker) -> None:
    monday, friday = "The deploy day is Monday.", "The deploy day is Friday."
    for said, holds, changed in [((monday, friday, monday), monday, friday), ((friday,), friday, monday)]:
        for text in said:
            await asker.decide(text)
            await asker.node.running.has_reached("now", ("embed", "changes"))
        brief = str(await asker.context("SessionStart", source="startup"))
        decisions, _, contradictions = brief.partition("Open contradictions, the newer first:")
        assert decisions.count(holds) == 1 and changed not in decisions
        assert f"{holds} — against: {changed}" in contradictions and contradictions.count("against") == 1


async def test_a_goal_that_was_remembered_twice_is_named_once(asker: Asker) -> None:
    for text in ("Ship the parser.", "Ship the parser.", "Keep the harbour open."):
        await asker.call("remember", text=text, kind="goal")
    await asker.settled()
    brief = str(await asker.context("SessionStart", source="startup"))
    assert brief.count("Ship the parser.") == 1 and "Keep the harbour open." in brief


async def test_a_belief_that_was_stated_again_after_an_entry_changed_it_is_the_newer_one(asker: Asker) -> None:
    monday, friday = "The deploy day is Monday.", "The deploy day is Friday."
    for tool, text in (("belief_create", monday), ("journal_write", friday), ("belief_create", monday)):
        await asker.call(tool, content=text, **({"category": "decision"} if tool == "journal_write" else {}))
        await asker.node.running.has_reached("now", ("embed", "changes"))
    brief = str(await asker.context("SessionStart", source="startup"))
    assert f"{monday} — against: {friday}" in brief and brief.count("against") == 1


async def test_two_beliefs_are_one_contradiction_until_a_resolution_keeps_both(asker: Asker) -> None:
    monday, friday = "The deploy day is Monday.", "The deploy day is Friday."
    for text in (monday, friday, monday):
        await asker.call("belief_create", content=text)
        await asker.node.running.has_reached("now", ("embed", "changes", "tensions"))
    brief = str(await asker.context("SessionStart", source="startup"))
    assert f"{monday} — against: {friday}" in brief and brief.count("against") == 1
    [tension] = (await asker.call("tension_list"))["tensions"]
    await asker.call("tension_resolve", tension_id=tension["id"], resolution="two services", action="keep_both")
    assert "against" not in str(await asker.context("SessionStart", source="startup"))


async def test_after_a_compaction_a_session_is_told_what_it_was_asked(asker: Asker) -> None:
    for number in range(5):
        await asker.context("UserPromptSubmit", prompt=f"Question number {number}?")
    text = str(await asker.context("SessionStart", source="compact"))
    assert [f"Question number {number}?" in text for number in range(5)] == [False, False, True, True, True]
    assert "Question" not in str(await asker.context("SessionStart", "s3", source="startup"))


async def test_what_is_not_found_in_time_is_not_given_and_not_recorded(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asker.decide()
    body = json.dumps({"session_id": "s2", "prompt": QUESTION}).encode()
    assert (await asker.raw("UserPromptSubmit", body, timeout_s=0.0))["context"] is None
    assert await asker.rows("SELECT * FROM injections") == []
    events = await asker.rows("SELECT session_id FROM session_events WHERE event_type = 'hook.UserPromptSubmit'")
    assert events == [("s2",)], "the hook's event is on the log all the same"


@pytest.mark.parametrize("body", [b"no JSON", b"[1]", b'{"session_id": ""}', b"x" * 200_000])
async def test_an_input_that_cannot_be_read_is_a_sentence_and_a_dead_letter_with_its_bytes(
    asker: Asker, body: bytes
) -> None:
    answer = await asker.raw("Stop", body)
    assert not answer["ok"] and answer["error"].startswith("The hook's input")
    await asker.node.running.has_reached("now")
    [(message, stage)] = await asker.rows("SELECT error_message, stage FROM dead_letters")
    assert message.startswith("hook Stop: ") and stage == "hook"
    await asker.raw("Stop", body)
    await asker.node.running.has_reached("now")
    assert await asker.rows("SELECT count(*) FROM dead_letters") == [(1,)], "the same input is the same letter"
    assert (await asker.raw("Stop", b""))["ok"] is False
    assert await asker.rows("SELECT count(*) FROM dead_letters") == [(1,)], "nothing came: there is nothing to keep"
