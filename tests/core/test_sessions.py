"""sessions: those of every toolset in one list, and the course of each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.core.test_core import SAID
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

WORK = "2026-01-05-gateway"


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    node = EmbeddingNode(tmp_path)
    yield Agent(node)
    node.close()


async def worked(agent: Agent) -> str:
    """A session of the journal with one decision and one question, then a conversation; the latter's id."""
    await agent.call("session_open", session_id=WORK, goal="Mend the gateway")
    for kind in ("decision", "question"):
        agent.node.clock.time += timedelta(minutes=1)
        await agent.call("remember", text=SAID[kind])
    await agent.call("session_close", session_id=WORK, summary="It is mended.")
    agent.node.clock.time += timedelta(hours=1)
    talk = await agent.session(project_context="/home/ada/harbour")
    for role, text in (("user", "Which port does the crane use?"), ("assistant", "Port 7070, " + "as before. " * 40)):
        agent.node.clock.time += timedelta(minutes=1)
        await agent.say(talk, text, role)
    return talk


async def listed(agent: Agent, **arguments: Any) -> list[str]:
    return [row["id"] for row in (await agent.call("sessions", **arguments))["sessions"]]


async def test_sessions_of_every_toolset_are_listed_newest_first_with_what_happened_in_them(agent: Agent) -> None:
    talk = await worked(agent)
    answer = await agent.call("sessions")
    conversation, work = answer["sessions"]
    assert (conversation["id"], conversation["source"], conversation["turns"]) == (talk, "valence", 2)
    assert conversation["asked"] == "Which port does the crane use?" and "goal" not in conversation
    assert (work["id"], work["goal"], work["summary"], work["entries"]) == (
        WORK,
        "Mend the gateway",
        "It is mended.",
        2,
    )
    assert answer["total"] == 2 and "more" not in answer


async def test_a_list_is_narrowed_by_project_and_time_and_comes_in_pages(agent: Agent) -> None:
    talk = await worked(agent)
    assert await listed(agent, project="HARBOUR") == await listed(agent, since="2026-01-05T12:30:00Z") == [talk]
    assert await listed(agent, project="elsewhere") == await listed(agent, since="2026-01-06") == []
    first = await agent.call("sessions", limit=1)
    assert first["more"] is True and first["next"] == "Pass `offset`: 1."
    assert await listed(agent, limit=1, offset=1) == [WORK] and await listed(agent, offset=2) == []


async def test_a_query_lists_the_sessions_that_tell_of_it_the_best_first(agent: Agent) -> None:
    talk = await worked(agent)
    assert (await listed(agent, query="certificate of the gateway"))[0] == WORK
    assert (await listed(agent, query="port of the crane"))[0] == talk
    assert len(await listed(agent, query="port of the crane", limit=1)) == 1


async def test_the_course_of_a_session_is_what_was_asked_answered_and_written_down_in_its_order(agent: Agent) -> None:
    talk = await worked(agent)
    work = await agent.call("sessions", id=WORK)
    assert [(line["who"], line["text"]) for line in work["lines"]] == [
        ("decision", SAID["decision"]),
        ("question", SAID["question"]),
    ]
    assert all(line["id"].startswith("journal-") for line in work["lines"])
    said = await agent.call("sessions", id=f" {talk} ", limit=1, offset=1)
    [line] = said["lines"]
    assert line["who"] == "assistant" and len(line["text"]) <= 160 and line["text"].endswith("…")
    assert said["total"] == 2 and said["session"]["id"] == talk and "more" not in said


async def test_what_was_corrected_stands_in_the_course_as_it_reads_now(agent: Agent) -> None:
    await agent.call("session_open", session_id=WORK, goal="Mend the gateway")
    entry = (await agent.call("remember", text=SAID["decision"]))["id"]
    await agent.call("correct", id=entry, text="We decided to rest.")
    assert [line["text"] for line in (await agent.call("sessions", id=WORK))["lines"]] == ["We decided to rest."]


async def test_bad_input_gets_a_sentence(agent: Agent) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"id": "nobody"}, "There is no session 'nobody'"),
        ({"limit": 0}, "from 1 to 100"),
        ({"offset": -1}, "0 or more"),
        ({"since": "soon"}, "a date YYYY-MM-DD"),
        ({"query": " "}, "`query` is blank"),
        ({"query": "x", "project": "y"}, "not both"),
    ]
    for arguments, sentence in bad:
        answer = await agent.call("sessions", **arguments)
        assert answer["success"] is False and sentence in answer["message"], arguments
