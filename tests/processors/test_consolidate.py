"""consolidate: what the first memory of a day brings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from processors.significance_counts import count_significance
from processors.stages.consolidate import consolidate
from processors.talos.significance import Counts
from streams.event_types.derived import ENTITIES_EXTRACTED, ENTITIES_PRUNED, SIGNIFICANCE_RATED
from streams.events import LoggedEvent
from streams.positions import Position
from streams.topics import DERIVED, MEMORY
from tests.processors.harness import NOW, Store, event


def extracted(number: int, label: str, text: str, *, days_ago: int = 10, confidence: float = 0.9) -> Any:
    entity = {"id": f"{label}-{number}", "label": label, "text": text, "confidence": confidence, "properties": {"domain": "technical"}}
    data = {"source_event_id": f"s{number}", "session_id": "a", "entities": [entity], "relations": []}
    return event("talos.entities.extracted", data, id=f"x-{label}-{number}", time=NOW - timedelta(days=days_ago))


def merged(record_id: str, into: str, label: str) -> Any:
    data = {"record_id": record_id, "label": label, "similar": [{"record_id": into, "how": "canonical_form", "cosine": None}]}
    return event("memory.similar_found", data, id=f"m-{record_id}")


def day_begins(days: int = 0) -> LoggedEvent:
    memory = event("talos.journal.written", {"content": "x", "category": "insight"}, id=f"d{days}", time=NOW + timedelta(days=days))
    return LoggedEvent(memory, Position(MEMORY.name, 0, 0), 0, 0, memory.key)


def run(store: Store, days: int = 0) -> dict[str, dict[str, Any]]:
    """What is found, published too."""
    facts = consolidate(store.database.cursor(), day_begins(days))
    for kind, identity, data in facts:
        short = kind.removeprefix("thalweg.").removesuffix(".v1")
        store.publish(event(short, data, id=f"{identity}-{days}", time=NOW + timedelta(days=days)), topic=DERIVED.name)
    return {kind: data for kind, _, data in facts}


def test_observations_that_repeat_for_a_week_become_one_insight() -> None:
    store = Store()
    store.publish(extracted(1, "Observation", "Tests are slow"), extracted(2, "Observation", "tests are slow"), topic=DERIVED.name)
    store.publish(merged("Observation-2", "Observation-1", "Observation"), topic=DERIVED.name)
    found = run(store)[ENTITIES_EXTRACTED]
    [insight] = found["entities"]
    assert (insight["label"], insight["text"]) == ("Insight", "Observed repeatedly: Tests are slow")
    edges = store.sql("SELECT from_label, from_id, to_id FROM graph_edges WHERE relation_type = 'CRYSTALLIZED_INTO' ORDER BY 2")
    assert edges == [("Observation", "Observation-1", insight["id"]), ("Observation", "Observation-2", insight["id"])]
    assert ENTITIES_EXTRACTED not in run(store, 1)


def test_young_or_single_observations_do_not() -> None:
    store = Store()
    store.publish(
        extracted(1, "Observation", "Tests are slow"), extracted(2, "Observation", "tests are slow", days_ago=6), topic=DERIVED.name
    )
    store.publish(merged("Observation-2", "Observation-1", "Observation"), topic=DERIVED.name)
    assert ENTITIES_EXTRACTED not in run(store)


def test_what_hardly_anybody_believes_is_hidden_but_kept() -> None:
    store = Store()
    store.publish(extracted(1, "Insight", "Maybe", confidence=0.29), extracted(2, "Insight", "Yes", confidence=0.3), topic=DERIVED.name)
    assert run(store)[ENTITIES_PRUNED]["record_ids"] == ["Insight-1"]
    assert store.sql("SELECT entity_id FROM entities_live") == [("Insight-2",)]
    assert store.sql("SELECT count(*) FROM entities") == [(2,)]
    assert store.sql("SELECT properties->>'is_live' FROM graph_nodes WHERE node_id = 'Insight-1'") == [("false",)]


def test_a_day_is_rated_once() -> None:
    store = Store()
    assert run(store)[SIGNIFICANCE_RATED]["level"] == "STABLE"
    assert run(store) == {}
    assert store.sql("SELECT day::VARCHAR, score, level FROM significance") == [("2026-01-04", 0, "STABLE")]
    run(store, 1)
    assert store.sql("SELECT count(*) FROM significance") == [(2,)]


def test_contradictions_and_open_questions_count_while_they_are_live() -> None:
    store = Store()
    store.publish(
        extracted(1, "Insight", "It is the cache"), extracted(2, "Insight", "It is not the cache"), extracted(3, "Question", "Is it?"),
        extracted(4, "Question", "Was it?"), topic=DERIVED.name,
    )  # fmt: skip
    relations = [
        {"type": "CONTRADICTS", "from": "Insight-1", "to": "Insight-2"},
        {"type": "RESOLVED_BY", "from": "Question-4", "to": "Insight-1"},
    ]
    data = {"source_event_id": "s", "entities": [], "relations": relations}
    store.publish(event("talos.entities.extracted", data, id="relations"), topic=DERIVED.name)
    assert count_significance(store.database.cursor(), "default") == Counts(contradictions=1, questions=1)
    pruned = event("talos.entities.pruned", {"record_ids": ["Insight-2", "Question-3"], "reason": "doubt"}, id="p")
    store.publish(pruned, topic=DERIVED.name)
    assert count_significance(store.database.cursor(), "default") == Counts()
