"""What the Talos tools ask of the store."""

from __future__ import annotations

from typing import Any

from mcp_ingress.toolsets.talos.queries import MAX_RELATED, count_session, find_recurrence, find_related, session_exists
from processors.talos.rules.identifiers import goal_id
from processors.talos.rules.ontology import domain_id
from storage.search.records.hits import SearchHit
from tests.talos.node import SmallNode

SESSION = "2026-01-05-ontology-design"


def related(node: SmallNode, record_id: str, namespace: str = "default") -> list[tuple[str, str]]:
    cursor = node.store.database.cursor()
    rows = cursor.execute(
        "SELECT label, record_id, kind, toolset, session_id, domain, text, created_at, event_id FROM documents "
        "WHERE record_id = ?",
        [record_id],
    ).fetchall()
    hits = [SearchHit(*row) for row in rows]
    found = find_related(cursor, node.indexes, namespace, hits, node.services.may_hold)
    return [(neighbour["type"], neighbour["id"]) for neighbour in found[record_id]]


def ids(answer: dict[str, Any], label: str) -> list[str]:
    return [entity["id"] for entity in answer["extracted_entities"] if entity["type"] == label]


async def test_related_are_the_session_first_and_then_what_an_edge_joins(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal="Learn")
    answer = await node.call(
        "journal_write",
        content="This connects to the principle of one writer.",
        category="insight",
        session_id=SESSION,
        domain="technical",
    )
    [insight], [belief] = ids(answer, "Insight"), ids(answer, "Belief")
    assert related(node, insight) == [("Session", SESSION), ("Belief", belief), ("Domain", domain_id("technical"))]
    assert related(node, belief) == [("Session", SESSION), ("Insight", insight)]
    assert related(node, answer["entry_id"]) == [("Session", SESSION), ("Belief", belief), ("Insight", insight)]
    assert related(node, goal_id("Learn")) == [("Session", SESSION)]


async def test_a_session_that_was_never_opened_is_no_neighbour(node: SmallNode) -> None:
    answer = await node.call("journal_write", content="Caches lie.", category="insight", session_id=SESSION)
    assert related(node, ids(answer, "Insight")[0]) == []


async def test_a_session_is_a_neighbour_as_soon_as_it_was_opened(node: SmallNode) -> None:
    answer = await node.call("journal_write", content="Caches lie.", category="insight", session_id=SESSION)
    assert "Session" not in dict(related(node, answer["entry_id"]))
    await node.call("journal_write", content="Queues grow.", category="insight")
    assert "Session" not in dict(related(node, answer["entry_id"]))
    await node.call("session_open", session_id=SESSION, goal="Learn")
    assert [related(node, answer["entry_id"])[0] for _ in range(2)] == [("Session", SESSION)] * 2


async def test_a_merged_record_stands_for_its_cluster(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal="Learn")
    first = await node.call("journal_write", content="Caches lie.", category="insight")
    second = await node.call("journal_write", content="caches lie", category="insight", session_id=SESSION)
    [kept], [merged] = ids(first, "Insight"), ids(second, "Insight")
    assert related(node, second["entry_id"]) == [("Session", SESSION), ("Insight", kept)]
    assert related(node, kept) == [("Session", SESSION)]
    assert kept != merged


async def test_at_most_ten_are_listed(node: SmallNode) -> None:
    content = "".join(f"I learned fact {number}.\n" for number in range(30))
    answer = await node.call("journal_write", content=content, category="observation")
    assert len(related(node, answer["entry_id"])) == MAX_RELATED


async def test_nothing_of_another_namespace_is_seen(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal="Learn")
    answer = await node.call("friction_log", description="Slow", category="tooling", session_id=SESSION)
    cursor = node.store.database.cursor()
    assert not session_exists(cursor, "another", SESSION)
    assert find_recurrence(cursor, "another", answer["friction_id"]) is None
    assert related(node, answer["friction_id"]) and related(node, answer["friction_id"], "another") == []
    assert count_session(cursor, "another", SESSION).frictions_logged == 0


async def test_no_ids_have_no_neighbours(node: SmallNode) -> None:
    assert find_related(node.store.database.cursor(), node.indexes, "default", []) == {}
