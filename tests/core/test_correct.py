"""correct: by whatever id a tool showed, the newest text is found, and the history keeps the rest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from processors.memory.rules.plain_kind import PLAIN_KINDS
from tests.core.test_core import SAID
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

NEW = "The gateway has other habits now."


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    node = EmbeddingNode(tmp_path)
    yield Agent(node)
    node.close()


async def kept(agent: Agent, kind: str) -> str:
    agent.node.clock.time += timedelta(hours=1)
    answer = await agent.call("remember", text=SAID[kind], kind=kind, about="gateway")
    agent.node.clock.time += timedelta(hours=1)
    return str(answer["id"])


async def recalled(agent: Agent, **arguments: Any) -> dict[str, str]:
    rows = (await agent.call("recall", query="gateway", **arguments))["results"]
    return {row["id"]: row["text"] for row in rows}


async def test_the_newest_text_alone_is_recalled_with_its_kind_and_what_it_is_about(agent: Agent) -> None:
    for kind in PLAIN_KINDS:
        old = await kept(agent, kind)
        answer = await agent.call("correct", id=old, text=NEW, reason="measured")
        assert answer["corrects"] == old != answer["id"] and not answer.get("pending")
        assert await recalled(agent) == await recalled(agent, kind=kind, about="gateway") == {answer["id"]: NEW}
        await agent.call("correct", id=answer["id"], retract=True)


async def test_what_was_corrected_disputes_nothing_any_more(agent: Agent) -> None:
    said = [f"The gateway listens on port {port}." for port in (8080, 8081, 8082)]
    ids = []
    for text in said[:2]:
        ids.append((await agent.call("remember", text=text, kind="fact"))["id"])
        agent.node.clock.time += timedelta(hours=1)
    newest = (await agent.call("correct", id=ids[1], text=said[2]))["id"]
    rows = {row["id"]: row for row in (await agent.call("recall", query="gateway port"))["results"]}
    assert list(rows) == [newest, ids[0]] and rows[ids[0]]["disputed_by"] == [newest]
    assert ids[0] in rows[newest]["earlier"]


@pytest.mark.parametrize("kind", ["fact", "goal"])
async def test_what_is_taken_back_is_recalled_no_more_but_as_of_then(agent: Agent, kind: str) -> None:
    identity, then = await kept(agent, kind), agent.node.clock.now().isoformat()
    agent.node.clock.time += timedelta(hours=1)
    answer = await agent.call("correct", id=identity, retract=True, reason="It was another gateway.")
    assert answer["retracted"] is True and answer["id"] == identity and not answer.get("pending")
    assert await recalled(agent) == {}
    assert await recalled(agent, as_of=then) == {identity: SAID[kind]}
    [row] = agent.node.store.sql("SELECT change, reason FROM corrections WHERE record_id = ?", identity)
    assert row == ("retracted", "It was another gateway.")


async def test_the_history_of_a_correction_is_in_sql_and_in_the_beliefs_chain(agent: Agent) -> None:
    entry, belief = await kept(agent, "lesson"), await kept(agent, "fact")
    for identity in (entry, belief):
        await agent.call("correct", id=identity, text=NEW + identity, reason="measured")
    rows = agent.node.store.sql("SELECT content, status, reason FROM journal_history ORDER BY created_at")
    assert rows == [(SAID["lesson"], "corrected", "measured"), (NEW + entry, "current", None)]
    chain = (await agent.call("belief_get", belief_id=belief, include_history=True))["belief"]
    assert chain["superseded_by_id"] and chain["status"] == "superseded"


async def test_a_tension_with_a_belief_that_is_taken_back_is_closed(agent: Agent) -> None:
    await agent.call("belief_create", content="The lamp is on", entities=[{"name": "lamp", "type": "tool"}])
    second = await agent.call(
        "belief_create", content="The lamp is not on", entities=[{"name": "lamp", "type": "tool"}]
    )
    assert second["tensions_detected"]
    await agent.call("correct", id=second["belief"]["id"], retract=True)
    [tension] = (await agent.call("tension_list"))["tensions"]
    assert tension["status"] == "resolved" and "archived" in tension["resolution"]
    told = "SELECT count(*) FROM events WHERE event_type = 'thalweg.valence.tension.closed.v1'"
    assert agent.node.store.sql(told) == [(1,)]


async def test_an_id_is_taken_as_any_tool_shows_it(agent: Agent) -> None:
    for shape in ("thalweg://memory/{}", "t:{}", " {} "):
        identity = await kept(agent, "decision")
        assert (await agent.call("correct", id=shape.format(identity), retract=True))["retracted"]
    identity = await kept(agent, "decision")
    [decision, *_] = agent.node.store.sql(
        "SELECT entity_id FROM entities WHERE label = 'Decision' ORDER BY created_at DESC"
    )
    assert (await agent.call("correct", id=decision[0], text=NEW))["corrects"] == identity


async def test_what_cannot_be_corrected_says_what_can_be_done(agent: Agent) -> None:
    async def refusal(**arguments: Any) -> str:
        answer = await agent.call("correct", **arguments)
        assert answer["success"] is False
        return str(answer["message"])

    entry, belief = await kept(agent, "decision"), await kept(agent, "fact")
    long = await agent.call(
        "journal_write", content="We decided to rest. I believe that rest helps.", category="observation"
    )
    [[part]] = agent.node.store.sql("SELECT entity_id FROM entities WHERE label = 'Belief'")
    session = await agent.session()
    turn = (await agent.say(session, "The gateway hums."))["exchange_id"]
    assert "Nothing is remembered under 'nobody'" in await refusal(id="nobody", text=NEW)
    assert "`text`" in await refusal(id=entry) and "not both" in await refusal(id=entry, text=NEW, retract=True)
    assert "is blank" in await refusal(id=entry, text=" ")
    assert f"It was found in {long['entry_id']}" in await refusal(id=part, text=NEW)
    assert "stands as it was said" in await refusal(id=turn, text=NEW)
    assert "says this already" in await refusal(id=entry, text=SAID["decision"])
    for identity in (entry, belief):
        new = (await agent.call("correct", id=identity, text=f"{NEW} {identity}"))["id"]
        assert new in await refusal(id=identity, text=NEW)
        await agent.call("correct", id=new, retract=True)
        assert "already" in await refusal(id=new, retract=True) or "was retracted" in await refusal(
            id=new, retract=True
        )


async def test_what_says_the_same_as_a_corrected_belief_is_named_and_stands_behind_what_is_right(agent: Agent) -> None:
    was, right = "The gateway keeps its tables in memory.", "Disk tables are what the gateway reads."
    old = (await agent.call("remember", text=was, kind="fact"))["id"]
    agent.node.clock.time += timedelta(seconds=1)
    entry = (await agent.call("journal_write", content=was, category="observation"))["entry_id"]
    agent.node.clock.time += timedelta(seconds=1)
    answer = await agent.call("correct", id=old, text=right)
    assert answer["also"] == [entry]
    newer, older = (await agent.call("recall", query="gateway tables in memory"))["results"]
    assert (newer["id"], newer["earlier"], older["id"], older["disputed_by"]) == (
        answer["id"],
        [entry],
        entry,
        [answer["id"]],
    )
    taken = await agent.call("correct", id=entry, retract=True)
    assert "also" not in taken, "the belief that said it has ended"
    assert list(await recalled(agent)) == [answer["id"]]


async def test_what_still_says_what_was_taken_back_is_named(agent: Agent) -> None:
    said = "The gateway restarts at night."
    entries = []
    for _ in range(2):
        entries.append((await agent.call("journal_write", content=said, category="observation"))["entry_id"])
        agent.node.clock.time += timedelta(seconds=1)
    belief = (await agent.call("remember", text=said, kind="fact"))["id"]
    answer = await agent.call("correct", id=entries[0], retract=True)
    assert set(answer["also"]) == {entries[1], belief}
    [row] = (await agent.call("recall", query="gateway"))["results"]
    assert (row["id"], row["also"]) == (belief, [entries[1]]), "not the entry that was taken back"
