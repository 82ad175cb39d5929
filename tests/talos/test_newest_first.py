"""Of statements about the same thing the newer stands first and says what it changes, whatever kinds they are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.services import Limits
from processors.memory.read.earlier import Memory, changed_by, texts_to_compare
from tests.patience import PATIENCE_S
from tests.talos.embedding_node import EmbeddingNode as Node
from tests.talos.making import NOON, make_event
from tests.valence.conftest import Believer

OLD, NEW = "The gateway of the harbour listens on port 8080.", "The gateway of the harbour listens on port 8443."
ASKED = "gateway harbour port 8080"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path)
    yield node
    node.close()


async def rows(node: Node, query: str = ASKED, **more: Any) -> list[dict[str, Any]]:
    return list((await node.call("journal_query", query=query, **more))["results"])


async def test_the_newer_statement_stands_before_the_older_one_which_fits_the_question_better(node: Node) -> None:
    await node.call("journal_write", content=OLD, category="insight")
    await node.call("journal_write", content="The harbour opens at dawn.", category="observation")
    [before, *_] = await rows(node)
    assert before["content"] == OLD and "disputed_by" not in before
    await node.call("journal_write", content=NEW, category="observation")
    newer, older, *_ = await rows(node)
    assert (newer["content"], older["content"]) == (NEW, OLD)
    assert newer["score"] == older["score"]
    assert older["disputed_by"] == [{"kind": newer["entity_type"], "id": newer["id"]}]
    assert newer["earlier"] == [{"kind": older["entity_type"], "id": older["id"]}]


async def test_a_question_that_names_the_old_value_is_answered_by_the_new_one(node: Node) -> None:
    node.services.limits = Limits(0.05, 1.0, vector_wait_s=PATIENCE_S)
    await node.call("journal_write", content="The regatta meeting is on Tuesday.", category="insight")
    for number in range(9):
        await node.call("journal_write", content=f"Still on Tuesday: errand {number}, on Tuesday.", category="insight")
    moved = "The regatta meeting was moved to Thursday."
    newer = await node.call("journal_write", content=moved, category="insight")
    assert [row["text"] for row in newer["contradicts"]] == ["The regatta meeting is on Tuesday."]
    for limit in (1, 2, 10):
        found = await rows(node, "Is the regatta still on Tuesday?", limit=limit)
        at = next(place for place, row in enumerate(found) if row["content"] == moved)
        assert at == 0 and all(row["score"] <= found[0]["score"] for row in found)


async def test_what_changes_a_row_is_found_though_the_query_has_nothing_of_it(node: Node) -> None:
    await node.call("journal_write", content=OLD, category="insight")
    newer = "A higher number took over."
    stored = await node.call("journal_write", content=newer, category="observation")
    [old] = node.store.sql("SELECT record_id FROM documents WHERE text = ? AND kind <> 'JournalEntry'", OLD)
    [entity] = stored["extracted_entities"]
    older = {"record_id": old[0], "cosine": 0.5}
    data = {"record_id": entity["id"], "older": [older], "model_id": "hashing-384"}
    node._keep(make_event("memory.change_found", data, event_id="told", namespace="default"))
    assert [row["content"] for row in await rows(node, "gateway harbour port 8080 listens")] == [newer, OLD]
    assert [row["content"] for row in await rows(node, "gateway harbour", entity_types=["Insight"])] == [OLD]


async def test_what_is_told_late_of_an_earlier_time_changes_nothing(node: Node) -> None:
    await node.call("journal_write", content=NEW, category="insight")
    told = {"content": OLD, "category": "insight"}
    late = make_event(
        "talos.journal.written", told, event_id="late", time=NOON - timedelta(days=1), namespace="default"
    )
    node.tell(late)
    assert node.store.sql("FROM memory_changes") == []


async def test_a_change_is_found_beside_fifty_namespaces_that_say_the_same(node: Node) -> None:
    await node.call("journal_write", content=OLD, category="insight")
    for number in range(50):
        said = {"content": NEW, "category": "insight"}
        node.tell(make_event("talos.journal.written", said, event_id=f"said-{number}", namespace=f"of-{number}"))
    await node.call("journal_write", content=NEW, category="insight")
    found = node.store.sql("SELECT DISTINCT namespace FROM memory_changes")
    assert found == [("default",)]


async def test_what_is_added_disputes_nothing(node: Node) -> None:
    await node.call("journal_write", content=OLD, category="insight")
    await node.call("journal_write", content="The gateway of the harbour has two cores.", category="insight")
    assert not any({"earlier", "disputed_by"} & row.keys() for row in await rows(node))
    assert node.store.sql("FROM memory_changes") == []


@pytest.mark.parametrize("long", [{"older"}, {"newer"}, {"older", "newer"}])
def test_a_text_of_several_passages_changes_nothing_and_is_not_changed(long: set[str]) -> None:
    advice = " Keep each paragraph to one thought, and let a friend read it aloud before the evening ends." * 14
    older, newer = (said + advice * (name in long) for said, name in ((OLD, "older"), (NEW, "newer")))
    earlier = Memory(1, "earlier", "Insight", older, datetime(2026, 1, 1))
    assert changed_by(newer, datetime(2026, 1, 2), [earlier], ()) == []
    assert changed_by(NEW, datetime(2026, 1, 2), [earlier._replace(text=OLD)], ()) != []


async def test_a_chain_of_changes_is_listed_newest_first(node: Node) -> None:
    texts = [f"The gateway of the harbour listens on port {port}." for port in (8080, 8081, 8082)]
    for text in texts:
        await node.call("journal_write", content=text, category="insight")
    found = await rows(node)
    assert [row["content"] for row in found] == texts[::-1]
    assert [each["id"] for each in found[0]["earlier"]] == [row["id"] for row in found[1:]]
    await node.call("journal_write", content=texts[1], category="insight")
    found = await rows(node)
    assert [row["content"] for row in found] == [texts[1], texts[2], texts[0]]
    assert [each["id"] for each in found[0]["earlier"]] == [row["id"] for row in found[1:]]


async def test_what_is_said_again_after_it_was_changed_holds_again(node: Node) -> None:
    for text in (OLD, NEW, OLD):
        last = await node.call("journal_write", content=text, category="insight")
    assert [row["text"] for row in last["contradicts"]] == [NEW]
    holds, changed = found = await rows(node)
    assert (holds["content"], holds["times"], changed["content"]) == (OLD, 2, NEW)
    assert [row["id"] for row in holds["earlier"]] == [changed["id"]] and "disputed_by" not in holds
    assert [row["id"] for row in changed["disputed_by"]] == [holds["id"]] and "earlier" not in changed
    node.indexes.records.clear_caches()
    assert await rows(node) == found
    await node.call("journal_write", content=NEW, category="insight")
    assert [row["content"] for row in await rows(node)] == [NEW, OLD]


async def test_a_belief_that_is_stated_again_after_it_was_changed_holds_again(node: Node) -> None:
    agent = Believer(node)
    old = await agent.hold(OLD)
    new = await node.call("journal_write", content=NEW, category="observation")
    again = await agent.call("belief_create", content=OLD)
    assert again["deduplicated"] and [row["text"] for row in again["contradicts"]] == [NEW]
    [belief] = (await agent.call("belief_query", query=ASKED))["beliefs"]
    assert belief["id"] == old["id"] and "disputed_by" not in belief
    assert {"kind": "Observation", "id": new["extracted_entities"][0]["id"]} in belief["earlier"]


async def test_a_correction_names_what_it_corrects(node: Node) -> None:
    old = (await node.call("journal_write", content=OLD, category="insight"))["entry_id"]
    new = node.request("talos.journal.corrected", entry_id=old, content=NEW)[2]["entry_id"]
    [row] = await rows(node)
    assert row["id"] == new and row["earlier"] == [{"kind": "JournalEntry", "id": old}]


async def test_what_was_retracted_disputes_nothing(node: Node) -> None:
    await node.call("journal_write", content=OLD, category="insight")
    new = (await node.call("journal_write", content=NEW, category="insight"))["entry_id"]
    node.request("talos.journal.retracted", entry_id=new)
    [row] = await rows(node)
    assert row["content"] == OLD and "disputed_by" not in row


async def test_the_order_is_the_same_after_the_indexes_are_built_anew(node: Node, tmp_path: Path) -> None:
    await node.call("journal_write", content=OLD, category="insight")
    await node.call("journal_write", content=NEW, category="observation")
    before = await rows(node)
    node.indexes.records.clear_caches()
    assert await rows(node) == before


async def test_a_belief_and_an_entry_of_the_journal_dispute_each_other(node: Node) -> None:
    agent = Believer(node)
    belief = await agent.hold(OLD)
    [before] = (await agent.call("belief_query", query=ASKED))["beliefs"]
    assert before["id"] == belief["id"] and "disputed_by" not in before
    entry = await node.call("journal_write", content=NEW, category="observation")
    [after] = (await agent.call("belief_query", query=ASKED))["beliefs"]
    [said] = entry["extracted_entities"]
    assert after["disputed_by"] == [{"kind": said["type"], "id": said["id"]}]
    assert {"kind": "Belief", "id": belief["id"]} in (await rows(node))[0]["earlier"]


async def test_the_newer_of_two_beliefs_stands_first_though_it_is_less_sure(node: Node) -> None:
    agent = Believer(node)
    await agent.hold(OLD, confidence={"overall": 0.95})
    await agent.hold(NEW, confidence={"overall": 0.3})
    newer, older = (await agent.call("belief_query", query=ASKED))["beliefs"]
    assert (newer["content"], older["content"]) == (NEW, OLD)
    [tension] = (await agent.call("tension_list"))["tensions"]
    assert newer["earlier"] == [{"kind": "Belief", "id": older["id"], "tension": tension["id"]}]
    assert older["disputed_by"] == [{"kind": "Belief", "id": newer["id"], "tension": tension["id"]}]


async def test_two_beliefs_that_a_resolution_keeps_dispute_each_other_no_longer_nor_does_what_says_the_same(
    node: Node,
) -> None:
    agent = Believer(node)
    await agent.hold(OLD)
    await agent.hold(NEW)
    await node.call("journal_write", content=NEW, category="observation")
    assert [belief["content"] for belief in (await agent.call("belief_query", query=ASKED))["beliefs"]] != [OLD, NEW]
    [tension] = (await agent.call("tension_list"))["tensions"]
    await agent.call("tension_resolve", tension_id=tension["id"], resolution="two gateways", action="keep_both")
    for _ in range(2):
        beliefs = (await agent.call("belief_query", query=ASKED))["beliefs"]
        assert [belief["content"] for belief in beliefs] == [OLD, NEW], "by how well they fit"
        assert all(not {"earlier", "disputed_by"} & row.keys() for row in (*beliefs, *await rows(node)))
        node.indexes.records.clear_caches()
    await agent.hold("The gateway of the harbour listens on port 9000.")
    newest, *others = (await agent.call("belief_query", query=ASKED))["beliefs"]
    assert len(newest["earlier"]) == 2 and all(len(row["disputed_by"]) == 1 for row in others)


def test_a_chinese_entry_is_compared_too() -> None:
    said = {"content": "\u4f1a\u8bae\u5728\u5468\u4e8c\u3002", "category": "insight"}
    event = make_event("talos.journal.written", said, event_id="said", namespace="default")
    assert set(texts_to_compare(event).values()) == {said["content"]}
