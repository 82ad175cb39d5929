"""What a tension found, a search tells; and of what has ended, what holds now in its place."""

from __future__ import annotations

from typing import Any

import pytest

from processors.memory.read.live_search import search_live
from processors.memory.read.standing import read_successors
from storage.search.query import Query
from storage.search.records.filter import Filter
from tests.valence.conftest import BeliefNode, Believer

GOOD, BAD = "The old harbour crane is safe.", "The old harbour crane is not safe."


async def rows(agent: Believer, query: str = "old harbour crane", **more: Any) -> list[dict[str, Any]]:
    return list((await agent.call("belief_query", query=query, **more))["beliefs"])


async def test_each_of_two_beliefs_in_an_open_tension_names_the_other_and_the_tension(agent: Believer) -> None:
    good, bad = await agent.hold(GOOD), await agent.hold(BAD)
    tension = await agent.one_tension()
    named = {row["id"]: row.get("disputed_by") for row in await rows(agent)}
    newer, older = ({"kind": "Belief", "id": belief["id"], "tension": tension["id"]} for belief in (bad, good))
    assert named[good["id"]] == [newer]
    [row] = [row for row in await rows(agent) if row["id"] == bad["id"]]
    assert [*row.get("earlier", ()), *row.get("disputed_by", ())] == [older]


async def test_a_belief_that_changes_one_stated_twice_names_it_once(agent: Believer, node: BeliefNode) -> None:
    copies = [await agent.hold(f"The gateway listens on port 8080{end}") for end in (".", "")]
    newer = await agent.hold("The gateway listens on port 9090 now.")
    await agent.one_tension()
    cursor = node.store.database.cursor()
    query = Query("gateway listens port", None, Filter("default"), 10)
    found = {hit.record_id: hit for hit in search_live(cursor, node.indexes, query).hits}[newer["id"]]
    assert found.disputed_by == [] and len(found.earlier) == 1 and set(found.tensions) == set(found.earlier)
    [row] = [row for row in await rows(agent, "gateway listens port") if row["id"] == newer["id"]]
    [named] = row["earlier"]
    assert named["id"] in {belief["id"] for belief in copies} and named["tension"] and "disputed_by" not in row


async def test_a_tension_that_is_resolved_is_told_no_more(agent: Believer) -> None:
    await agent.hold("The ferry never sails on Sundays.")
    await agent.hold("The ferry always sails on Sundays.")
    tension = await agent.one_tension()
    assert any(row.get("disputed_by") for row in await rows(agent, "ferry sails on Sundays"))
    await agent.call("tension_resolve", tension_id=tension["id"], resolution="two ferries", action="keep_both")
    after = await rows(agent, "ferry sails on Sundays")
    assert len(after) == 2 and "tension" not in str([row.get("disputed_by") for row in after])


async def test_the_search_over_everything_tells_open_tensions_too(agent: Believer, node: BeliefNode) -> None:
    good, bad = await agent.hold(GOOD), await agent.hold(BAD)
    tension = await agent.one_tension()
    query = Query("old harbour crane safe", None, Filter("default"), 10)
    hits = {hit.record_id: hit for hit in search_live(node.store.database.cursor(), node.indexes, query).hits}
    assert hits[good["id"]].tensions == {("Belief", bad["id"]): tension["id"]}
    assert ("Belief", bad["id"]) in hits[good["id"]].disputed_by


async def test_a_superseded_belief_names_what_holds_now_at_the_end_of_its_line(agent: Believer) -> None:
    first = await agent.hold("The crane lifts two tons.")
    last = first
    for tons in ("three", "four"):
        content = f"The crane lifts {tons} tons."
        answer = await agent.call("belief_supersede", old_belief_id=last["id"], new_content=content, reason="rebuilt")
        last = answer["new_belief"]
    now = {"kind": "Belief", "id": last["id"]}
    shown = {row["id"]: row.get("superseded_by") for row in await rows(agent, "crane lifts", include_superseded=True)}
    assert len(shown) == 3 and shown[first["id"]] == now and shown[last["id"]] is None
    assert (await agent.call("belief_get", belief_id=first["id"]))["belief"]["superseded_by"] == now
    assert "superseded_by" not in (await agent.call("belief_get", belief_id=last["id"]))["belief"]


async def test_what_was_known_then_names_what_holds_now(agent: Believer, node: BeliefNode) -> None:
    old = await agent.hold("The crane lifts two tons.")
    then = node.clock.time
    await agent.call("exchange_list", session_id=await agent.session())
    answer = await agent.call(
        "belief_supersede", old_belief_id=old["id"], new_content="The crane lifts nine tons.", reason="rebuilt"
    )
    query = Query("crane lifts tons", None, Filter("default", valid_at=then, known_at=then), 10)
    [hit] = search_live(node.store.database.cursor(), node.indexes, query).hits
    assert hit.record_id == old["id"] and hit.superseded_by == ("Belief", answer["new_belief"]["id"])


async def test_a_corrected_entry_names_its_newest_text_and_a_retracted_one_nothing(node: BeliefNode) -> None:
    written = [await node.call("journal_write", content=f"Gull {n} nests.", category="insight") for n in range(2)]
    first, gone = (entry["entry_id"] for entry in written)
    last = first
    for content in ("Gull 0 nested.", "Gull 0 has flown."):
        last = node.request("talos.journal.corrected", entry_id=last, content=content)[2]["entry_id"]
    node.request("talos.journal.retracted", entry_id=gone)
    cursor, documents = node.store.database.cursor(), node.indexes.records.documents
    assert read_successors(cursor, documents, "default", [first, gone]) == {first: ("JournalEntry", last)}


async def test_the_total_counts_each_fact_once_also_beyond_the_pool(
    agent: Believer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.search.query.MIN_POOL", 3)
    for number in range(4):
        await agent.hold(f"Berth {number} is free.")
        await agent.hold(f"Berth {number} is free")
    answer = await agent.call("belief_query", query="berth", limit=1)
    assert answer["total_count"] == 4


async def test_tensions_between_beliefs_that_state_the_same_are_one_row(agent: Believer) -> None:
    for text in ("The ferry is safe.", "The ferry is safe", "The ferry is not safe."):
        await agent.hold(text, "ferry")
    for text in ("The mole is long.", "The mole is not long."):
        await agent.hold(text, "mole")
    answer = await agent.call("tension_list")
    latest, ferry = answer["tensions"]
    assert answer["total_count"] == 2 and "mole" in latest["belief_a_content"] and "also" not in latest
    assert ferry["times"] == 2 and [row["kind"] for row in ferry["also"]] == ["Tension"]
    ids = [ferry["id"], ferry["also"][0]["id"]]
    assert len(set(ids)) == 2 and "ferry" in ferry["belief_a_content"]
    await agent.call("tension_resolve", tension_id=ids[1], resolution="two ferries", action="keep_both")
    assert [row["status"] for row in (await agent.call("tension_list"))["tensions"]].count("detected") == 2


async def test_an_entity_names_what_was_merged_into_it(agent: Believer, node: BeliefNode) -> None:
    for name in ("Redis DB", "Redis-DB"):
        await agent.hold(f"{name} is fast", name)
    answer = await agent.call("entity_search", query="redis")
    [row] = answer["entities"]
    merged = node.store.sql("SELECT entity_id FROM entity_resolutions WHERE entity_id <> canonical_id")
    assert len(merged) == 1 and [(other,) for other in (named["id"] for named in row.get("also", ()))] == merged
    assert answer["total_count"] == 1
