"""consolidate: what the first memory of a day brings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mcp_ingress.toolsets.talos.queries import read_context
from processors.talos.read.significance_counts import count_significance
from processors.talos.rules.significance import SignificanceCounts
from processors.talos.stages.consolidate import consolidate
from streams.event_types.talos import ENTITIES_EXTRACTED, ENTITIES_PRUNED, PATTERN_DEPRECATED, SIGNIFICANCE_RATED
from streams.events import LoggedEvent
from streams.positions import Position
from streams.topics import DERIVED, MEMORY
from tests.processors.harness import NOW, Store, event, opened


def extracted(number: int, label: str, text: str, *, days_ago: int = 10, confidence: float = 0.9) -> Any:
    entity = {
        "id": f"{label}-{number}",
        "label": label,
        "text": text,
        "confidence": confidence,
        "properties": {"domain": "technical"},
    }
    data = {"source_event_id": f"s{number}", "session_id": "a", "entities": [entity], "relations": []}
    return event("talos.entities.extracted", data, id=f"x-{label}-{number}", time=NOW - timedelta(days=days_ago))


def merged(record_id: str, into: str, label: str) -> Any:
    data = {
        "record_id": record_id,
        "label": label,
        "similar": [{"record_id": into, "how": "canonical_form", "cosine": None}],
    }
    return event("memory.similar_found", data, id=f"m-{record_id}")


def day_begins(days: int = 0) -> LoggedEvent:
    memory = event(
        "talos.journal.written", {"content": "x", "category": "insight"}, id=f"d{days}", time=NOW + timedelta(days=days)
    )
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
    store.publish(
        extracted(1, "Observation", "Tests are slow"), extracted(2, "Observation", "tests are slow"), topic=DERIVED.name
    )
    store.publish(merged("Observation-2", "Observation-1", "Observation"), topic=DERIVED.name)
    found = run(store)[ENTITIES_EXTRACTED]
    [insight] = found["entities"]
    assert (insight["label"], insight["text"]) == ("Insight", "Observed repeatedly: Tests are slow")
    edges = store.sql(
        "SELECT from_label, from_id, to_id FROM graph_edges WHERE relation_type = 'CRYSTALLIZED_INTO' ORDER BY 2"
    )
    assert edges == [("Observation", "Observation-1", insight["id"]), ("Observation", "Observation-2", insight["id"])]
    assert ENTITIES_EXTRACTED not in run(store, 1)


def test_young_or_single_observations_do_not() -> None:
    store = Store()
    store.publish(
        extracted(1, "Observation", "Tests are slow"),
        extracted(2, "Observation", "tests are slow", days_ago=6),
        topic=DERIVED.name,
    )
    store.publish(merged("Observation-2", "Observation-1", "Observation"), topic=DERIVED.name)
    assert ENTITIES_EXTRACTED not in run(store)


def test_what_hardly_anybody_believes_is_hidden_but_kept() -> None:
    store = Store()
    store.publish(
        extracted(1, "Insight", "Maybe", confidence=0.29),
        extracted(2, "Insight", "Yes", confidence=0.3),
        topic=DERIVED.name,
    )
    assert run(store)[ENTITIES_PRUNED]["record_ids"] == ["Insight-1"]
    assert store.sql("SELECT entity_id FROM entities_live") == [("Insight-2",)]
    assert store.sql("SELECT count(*) FROM entities") == [(2,)]
    assert store.sql("SELECT properties->>'is_live' FROM graph_nodes WHERE node_id = 'Insight-1'") == [("false",)]
    assert store.sql("SELECT memory_id FROM memories WHERE is_live") == [("Insight-2",)]


def shown(store: Store, session_id: str, days: int) -> None:
    """A session of that day shows the pattern."""
    data = {"signal_id": "pattern-leak", "session_id": session_id, "description": "The leak"}
    store.publish(
        event("talos.pattern.signalled", data, id=f"s-{session_id}", time=NOW + timedelta(days=days)),
        topic=DERIVED.name,
    )


def worked(store: Store, session_id: str, days: int) -> None:
    """A session of that day that does not."""
    time = NOW + timedelta(days=days)
    store.publish(opened(session_id, time=time))
    store.publish(
        event("talos.session.closed", {"session_id": session_id}, id=f"c-{session_id}", time=time + timedelta(hours=1))
    )


def status_and_heirs(store: Store) -> tuple[str, list[str]]:
    """The pattern's status, and the sessions that inherited it."""
    [(status,)] = store.sql("SELECT status FROM patterns")
    return status, [
        name
        for (name,) in store.sql("SELECT session_id FROM session_inherited WHERE label = 'Pattern' ORDER BY session_id")
    ]


def test_a_pattern_that_does_not_occur_for_90_days_and_10_sessions_is_deprecated_until_it_does() -> None:
    store = Store()
    for number in range(3):
        shown(store, f"2025-01-0{number + 1}-a", number - 91)
    for number in range(9):
        worked(store, f"2026-01-0{number + 1}-b", -20 + number)
    assert PATTERN_DEPRECATED not in run(store), "too few sessions in which it could have occurred"
    assert status_and_heirs(store)[0] == "emerging"
    worked(store, "2026-02-01-c", 0)
    assert run(store, 1)[PATTERN_DEPRECATED]["pattern_id"] == "pattern-leak"
    assert PATTERN_DEPRECATED not in run(store, 2), "it is told once"
    worked(store, "2026-02-02-d", 3)
    status, heirs = status_and_heirs(store)
    assert status == "deprecated" and "2026-02-01-c" in heirs and "2026-02-02-d" not in heirs
    assert store.sql("SELECT properties->>'status' FROM graph_nodes WHERE label = 'Pattern'") == [("deprecated",)]
    context = read_context(store.database.cursor(), "default", "2026-02-02-d")
    assert context is not None and context.patterns == [], "it never matches"
    shown(store, "2026-02-02-d", 4)
    worked(store, "2026-02-05-e", 5)
    status, heirs = status_and_heirs(store)
    assert status == "emerging" and "2026-02-05-e" in heirs and "2026-02-02-d" not in heirs


def test_a_pattern_is_kept_where_nobody_worked() -> None:
    store = Store()
    for number in range(3):
        shown(store, f"2025-01-0{number + 1}-a", number - 400)
    assert PATTERN_DEPRECATED not in run(store)


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
        extracted(1, "Insight", "It is the cache"), extracted(2, "Insight", "It is not the cache"),
        extracted(3, "Question", "Is it?"), extracted(4, "Question", "Was it?"), topic=DERIVED.name,
    )  # fmt: skip
    relations = [
        {"type": "CONTRADICTS", "from": "Insight-1", "to": "Insight-2"},
        {"type": "RESOLVED_BY", "from": "Question-4", "to": "Insight-1"},
    ]
    data = {"source_event_id": "s", "entities": [], "relations": relations}
    store.publish(event("talos.entities.extracted", data, id="relations"), topic=DERIVED.name)
    assert count_significance(store.database.cursor(), "default") == SignificanceCounts(contradictions=1, questions=1)
    pruned = event("talos.entities.pruned", {"record_ids": ["Insight-2", "Question-3"], "reason": "doubt"}, id="p")
    store.publish(pruned, topic=DERIVED.name)
    assert count_significance(store.database.cursor(), "default") == SignificanceCounts()
