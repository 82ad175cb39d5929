"""Where two checks keep namespaces apart, each does so by itself.

The same ids in two namespaces, asked one level below the tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pytest

from mcp_ingress.inventory import find_tools
from mcp_ingress.toolsets.cognitive_memory.queries import Conditions, select
from mcp_ingress.toolsets.cognitive_memory.retrieval import insights
from mcp_ingress.toolsets.memory.resources.memory import find_text
from mcp_ingress.toolsets.talos.queries import read_context, session_exists
from mcp_ingress.toolsets.valence.belief_queries import find_canonical, find_entity
from mcp_ingress.toolsets.valence.kb_queries import (
    find_pattern,
    find_session,
    last_exchanges,
    list_exchanges,
    list_patterns,
)
from processors.talos.read.graph_source import read_graph
from storage.reader import find_outcome
from storage.search.records.hits import DocumentRows
from storage.valence.belief_follower import BeliefFollower
from streams.ids import document_label
from tests.processors.harness import Store
from tests.sql.rows import insert

MOMENT = datetime(2026, 1, 5, 10)
NOW = MOMENT.replace(tzinfo=UTC)
OWN, OTHER = "south", "north"
FROM = {"source_event_id": "e", "created_at": MOMENT}


@pytest.fixture(scope="module")
def cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """The same ids in both; each text is the name of its namespace. What only the other has is called `theirs`."""
    store = Store()
    cursor = store.database.cursor()
    for namespace in (OTHER, OWN):
        for name in ("same", "theirs") if namespace == OTHER else ("same",):
            _insert_all(cursor, namespace, name)
    noted = {"label": "Friction", "text": OWN, "canonical_form": OWN, "session_id": "theirs", **FROM}
    insert(cursor, "entities", namespace=OWN, entity_id="noted-elsewhere", **noted)
    yield cursor
    store.database.close()


def _insert_all(cursor: duckdb.DuckDBPyConnection, namespace: str, name: str) -> None:
    label, spine = document_label(namespace, name), {"namespace": namespace}
    insert(cursor, "outcomes", request_id=name, status="applied", message=namespace, decided_at=MOMENT, **spine)
    opened = {"goal": namespace, "goal_id": f"goal-{name}", "status": "active", "started_at": MOMENT}
    insert(cursor, "talos_sessions", session_id=name, **opened, **spine)
    found = {"label": "Insight", "text": namespace, "canonical_form": namespace, **FROM}
    for end in (name, f"{name}-2"):
        insert(cursor, "entities", entity_id=end, **found, **spine)
    insert(
        cursor, "entities", entity_id=f"noted-{name}", **(found | {"label": "Friction", "session_id": name}), **spine
    )
    related = {"from_id": name, "to_id": f"{name}-2"} if namespace == OWN else {"from_id": f"{name}-2", "to_id": name}
    insert(cursor, "relations", relation_id=name, relation_type="LED_TO", **related, **FROM, **spine)
    text = {"toolset": "talos", "kind": "Insight", "text": namespace, "created_at": MOMENT}
    insert(cursor, "documents", label=label, record_id=name, **text, **spine)
    known = {"name": namespace, "name_key": namespace, "type": "tool", "form": namespace, "link_count": 0}
    known |= {"description": namespace}
    insert(cursor, "valence_entities", entity_id=name, **known, created_at=MOMENT, modified_at=MOMENT, **spine)
    begun = {
        "platform": "api",
        "project_context": namespace,
        "status": "active",
        "started_at": MOMENT,
        "source_id": name,
    }
    begun |= {"exchange_count": 1, "insight_count": 0, "summary": namespace}
    insert(cursor, "vkb_sessions", session_id=name, **begun, **spine)
    said = {
        "exchange_id": name,
        "sequence": 1,
        "role": "user",
        "content": namespace,
        "created_at": MOMENT,
        "tokens_approx": 1,
    }
    insert(cursor, "vkb_exchanges", session_id=name, **said, **spine)
    met = {
        "type": "habit",
        "evidence": "[]",
        "description": namespace,
        "status": "emerging",
        "occurrence_count": 1,
        "confidence": 0.5,
    }
    met |= {"first_observed_at": MOMENT, "last_observed_at": MOMENT}
    insert(cursor, "vkb_patterns", pattern_id=name, **met, **spine)


Ask = Callable[[duckdb.DuckDBPyConnection, str], Any]
ASKS: dict[str, Ask] = {
    "outcome": lambda cursor, name: find_outcome(cursor, OWN, name),
    "session": lambda cursor, name: find_session(cursor, OWN, name),
    "exchanges": lambda cursor, name: last_exchanges(cursor, OWN, name, 5),
    "page of exchanges": lambda cursor, name: list_exchanges(cursor, OWN, name, 5, 0)[0],
    "pattern": lambda cursor, name: find_pattern(cursor, OWN, name, NOW),
    "memories": lambda cursor, name: select(
        "SELECT text FROM documents", Conditions(OWN).add("record_id = ?", name), ""
    )(cursor),
    "canonical": lambda cursor, name: find_canonical(cursor, OWN, name),
    "about": lambda cursor, name: read_context(cursor, OWN, name),
    "whole text": lambda cursor, name: find_text(cursor, OWN, name, "content"),
    "whole summary": lambda cursor, name: find_text(cursor, OWN, name, "summary"),
    "whole description": lambda cursor, name: find_text(cursor, OWN, name, "description"),
}


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_a_query_finds_the_row_of_its_own_namespace_under_an_id_that_another_has_too(
    cursor: duckdb.DuckDBPyConnection, ask: Ask
) -> None:
    found = str(ask(cursor, "same"))
    assert OTHER not in found and found not in ("None", "[]")
    assert not ask(cursor, "theirs"), "what only another namespace has"


def test_patterns_are_listed_and_counted_in_one_namespace(cursor: duckdb.DuckDBPyConnection) -> None:
    rows, total = list_patterns(cursor, OWN, NOW, kind=None, status=None, min_confidence=0.0, limit=5)
    assert ([row["description"] for row in rows], total) == ([OWN], 1)


def test_every_text_that_can_be_read_whole_is_asked_for_in_one_namespace() -> None:
    declared = [
        statement for toolset in find_tools().toolsets.values() for some in toolset.texts.values() for statement in some
    ]
    assert len(declared) > 5 and all(" WHERE namespace = $namespace AND " in statement for statement in declared)


def test_insights_are_searched_in_the_namespace_of_the_caller() -> None:
    assert insights(OWN).namespace == OWN


def test_an_entity_is_read_in_its_own_namespace_also_by_who_knows_that_it_is_there(
    cursor: duckdb.DuckDBPyConnection,
) -> None:
    assert find_entity(cursor, OWN, "same")["name"] == OWN


def test_a_friction_in_a_session_of_another_namespace_does_not_make_that_session_known(
    cursor: duckdb.DuckDBPyConnection,
) -> None:
    assert not session_exists(cursor, OWN, "theirs") and read_context(cursor, OWN, "theirs") is None


def test_the_edges_of_a_graph_are_those_of_its_namespace_where_both_have_the_ends(
    cursor: duckdb.DuckDBPyConnection,
) -> None:
    graph = read_graph(cursor, OWN)
    [edge] = graph["edges"]["LED_TO Insight Insight"]
    assert (edge["from"], edge["to"]) == ("same", "same-2")
    assert OTHER not in str(graph)


def test_a_label_of_another_namespace_is_no_hit(cursor: duckdb.DuckDBPyConnection) -> None:
    """An index that gives it, or a filter that restricts nothing, cannot bring it into an answer."""
    labels = [document_label(OTHER, "same"), document_label(OWN, "same")]
    assert [hit.text for hit in DocumentRows().hits(cursor, OWN, labels).values()] == [OWN]


def state(cursor: duckdb.DuckDBPyConnection, namespace: str, name: str, **changes: Any) -> None:
    """A belief, and that it has changed."""
    row = {
        "content": namespace,
        "status": "active",
        "overall": 0.5,
        "overall_origin": "caller",
        "created_at": MOMENT,
        "modified_at": MOMENT,
    }
    row |= {
        "corroboration_count": 1,
        "extraction_method": "stated",
        "content_hash": name,
        "links": "[]",
        "domain_path": [],
    }
    row |= {"label": document_label(namespace, name), "doubt": 1.0, "created_event_id": name} | changes
    insert(cursor, "valence_beliefs", namespace=namespace, belief_id=name, **row)
    told = {name: row[name] for name in ("content", "overall", "corroboration_count", "status")}
    insert(
        cursor,
        "valence_belief_changes",
        namespace=namespace,
        belief_id=name,
        change="stated",
        valid_from=MOMENT,
        changed_at=MOMENT,
        **told,
    )


def test_beliefs_in_memory_are_those_of_one_namespace_and_another_ones_change_nothing() -> None:
    store = Store()
    cursor = store.database.cursor()
    for namespace in (OTHER, OWN):
        state(cursor, namespace, "first")
    follower = BeliefFollower()
    before = follower.view(cursor, OWN)
    assert before.labels.tolist() == [document_label(OWN, "first")]
    state(cursor, OTHER, "second")
    assert follower.view(cursor, OWN) is before, "nothing of this namespace is read again"
    state(cursor, OWN, "second")
    assert sorted(follower.view(cursor, OWN).labels.tolist()) == sorted(
        document_label(OWN, name) for name in ("first", "second")
    )
    store.database.close()


def test_a_belief_holds_until_the_very_moment_at_which_it_ends_and_from_that_at_which_it_begins() -> None:
    store = Store()
    cursor = store.database.cursor()
    state(cursor, OWN, "ending", valid_from=MOMENT, valid_until=MOMENT + timedelta(days=1))
    beliefs = BeliefFollower().view(cursor, OWN)
    begin, moment, tick = (
        MOMENT.replace(tzinfo=UTC),
        (MOMENT + timedelta(days=1)).replace(tzinfo=UTC),
        timedelta(microseconds=1),
    )
    asked = [begin - tick, begin, moment - tick, moment]
    assert [bool(beliefs.valid_at(at, include_superseded=False)[0]) for at in asked] == [False, True, True, False]
    assert [bool(beliefs.valid_at(at, include_superseded=True)[0]) for at in asked] == [False, True, True, True]
    store.database.close()
