"""docs/cypher.md: each of its twelve queries runs as printed and finds something in a story that has it all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from processors.talos.rules.ontology import LABELS, PRELOADED, RELATIONS, STATES
from storage.graph.projection import Projections
from storage.graph.run import checked_parameters, run_cypher
from streams.codec import encode
from streams.topics import MEMORY
from tests.talos.making import make_event
from tests.talos.node import SmallNode

PAGE = (Path(__file__).parents[2] / "docs" / "cypher.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"^## (\d+\. [^\n]+)\n.*?```cypher\n(.*?)```", PAGE, flags=re.MULTILINE | re.DOTALL)


async def tell_story(node: SmallNode) -> None:
    """Three sessions with the same friction in two domains, decisions, states, and an operator's import."""
    entities = [
        {"label": "Belief", "text": "Measure what matters"},
        {"label": "Belief", "text": "Measure everything"},
        {"label": "Sutra", "text": "Begin at the centre", "properties": {"cardinal_point": "CENTER", "number": 1}},
        {"label": "Limitation", "text": "Cannot see the clock"},
    ]
    relations = [
        {"type": "EVOLVED_FROM", "from": "Measure what matters", "to": "Measure everything"},
        {"type": "ACTIVATED", "from": "2026-01-05-s1", "to": "Begin at the centre"},
        {"type": "USED", "from": "Measure everything", "to": "Begin at the centre"},
    ]
    data = {"entities": entities, "relations": relations}
    imported = make_event(
        "talos.knowledge.imported", data, event_id="import", time=node.clock.time, namespace="default"
    )
    node.process([node.store.record(encode(MEMORY.name, imported))])
    for number, domain in enumerate(("technical", "operational", "technical"), start=1):
        session_id = f"2026-01-05-s{number}"
        await node.call("session_open", session_id=session_id, goal="Ship it")
        node.observe("session.state_change", session__id=session_id, to="momentum", category="flow")
        write = {"session_id": session_id, "domain": domain}
        await node.call("journal_write", content="Slow builds", category="friction", **write)
        await node.call(
            "journal_write", content="I decided to cache. I learned that wheels help.", category="decision", **write
        )
        await node.call(
            "journal_write", content="The outage revealed that nobody can't page.", category="experience", **write
        )
        await node.call(
            "journal_write", content="The queue jams, so I learned to drain it.", category="friction", **write
        )
        linked = f"I realized step {number} connects to the principle of flow {number}."
        await node.call("journal_write", content=f"Thinking {number}. {linked}", category="insight", **write)
        await node.call("session_close", session_id=session_id)


def test_there_are_the_twelve_queries_of_the_specification() -> None:
    assert [int(title.split(".")[0]) for title, _ in QUERIES] == list(range(1, 13))


@pytest.mark.process
async def test_each_query_runs_as_printed_and_finds_something(node: SmallNode) -> None:
    await tell_story(node)
    projections = node.services.parts[Projections]
    wanted = projections.find(node.store.database.cursor(), "default", node.connection.last_writes)
    file = projections.build(wanted)
    now = node.clock.time.isoformat()
    empty = []
    for title, cypher in QUERIES:
        found = run_cypher(file, cypher, checked_parameters(cypher, {"now": now}))
        if not found.rows or all(value is None for row in found.rows for value in row):
            empty.append(title)
    assert empty == []


def test_the_ontology_has_20_labels_24_relations_and_its_preloads_in_the_store(node: SmallNode) -> None:
    assert (len(LABELS), len(RELATIONS)) == (20, 24)
    rows = node.store.sql("SELECT node_id, label, name, category FROM preloaded_nodes")
    assert {(node_id, label, name) for node_id, label, name, _ in rows} == {
        (key, *value) for key, value in PRELOADED.items()
    }
    categories = {name: category for category, names in STATES.items() for name in names}
    assert {name: category for _, label, name, category in rows if label == "OperationalState"} == categories


@pytest.mark.parametrize("relation", ["USED", "SERVES"])
async def test_an_imported_relation_between_labels_that_the_ontology_does_not_join_is_left_out(
    node: SmallNode, relation: str
) -> None:
    data = {
        "entities": [
            {"label": "Belief", "text": "a"},
            {"label": "Sutra", "text": "b"},
            {"label": "Nonsense", "text": "c"},
        ],
        "relations": [{"type": relation, "from": "a", "to": "b"}],
    }
    imported = make_event(
        "talos.knowledge.imported", data, event_id="import", time=node.clock.time, namespace="default"
    )
    node.process([node.store.record(encode(MEMORY.name, imported))])
    assert node.store.sql("SELECT label FROM entities ORDER BY label") == [("Belief",), ("Sutra",)]
    assert node.store.sql("SELECT * FROM relations") == []
    assert node.store.sql("SELECT result->>'relations_left_out' FROM outcomes") == [("1",)]
