"""What is found in a text: by rule, purely, with the same ids every time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.talos.rules.extraction import MAX_ENTITIES, Entity, Extraction, extract, texts_to_embed
from processors.talos.rules.identifiers import entry_id, named_id
from processors.talos.rules.ontology import CATEGORY_LABELS, PRELOADED, is_legal
from streams.event_types.talos import CATEGORIES
from tests.talos.making import SEED_ENTRY, entry, friction, make_event

SESSION = "2026-01-05-ontology-design"


def labels(extraction: Extraction) -> list[str]:
    return [entity.label for entity in extraction.entities]


def edges(extraction: Extraction) -> set[tuple[str, str, str]]:
    """Relations as (type, from label, to label)."""
    known = {entity.id: entity.label for entity in extraction.entities} | {SESSION: "Session"}
    known |= {identity: label for identity, (label, _) in PRELOADED.items()}
    return {(relation.type, known[relation.from_id], known[relation.to_id]) for relation in extraction.relations}


def only(extraction: Extraction, label: str) -> Entity:
    [found] = [entity for entity in extraction.entities if entity.label == label]
    return found


def test_the_references_example_yields_an_insight_a_belief_and_led_to() -> None:
    found = extract(entry(SEED_ENTRY, session_id=SESSION, domain="meta-cognitive", confidence=0.85))
    main, belief = found.entities[0], only(found, "Belief")
    assert (main.label, main.text, main.confidence) == ("Insight", SEED_ENTRY, 0.85)
    assert belief.text == "the epistemic humility principle—model what you can verify"
    assert ("LED_TO", main.id, belief.id) in {(r.type, r.from_id, r.to_id) for r in found.relations}


@pytest.mark.parametrize("category", CATEGORIES)
def test_the_categorys_entity_is_always_made_and_comes_first(category: str) -> None:
    [main] = extract(entry("The build is green.", category)).entities
    assert (main.label, main.text, main.confidence) == (CATEGORY_LABELS[category], "The build is green.", 0.9)


@pytest.mark.parametrize(
    ("sentence", "label"),
    [
        ("I believe in small steps.", "Belief"),
        ("My belief is that tests pay.", "Belief"),
        ("The principle is explicit errors.", "Belief"),
        ("We decided to use DuckDB.", "Decision"),
        ("The decision stands.", "Decision"),
        ("I realised it late.", "Insight"),
        ("I learned to wait.", "Insight"),
        ("What an insight!", "Insight"),
        ("Does it scale?", "Question"),
    ],
)
def test_a_cue_word_makes_an_entity_of_its_sentence(sentence: str, label: str) -> None:
    found = only(extract(entry(f"Work went on. {sentence}", "observation")), label)
    assert found.text.rstrip(".!?") == sentence.rstrip(".!?")
    assert found.confidence == 0.9


def test_a_cue_counts_as_a_whole_word_only() -> None:
    assert labels(extract(entry("Unbelievable. The indecision of the principled.", "observation"))) == ["Observation"]


def test_a_sentence_that_is_the_whole_entry_makes_no_second_entity_of_its_category() -> None:
    assert labels(extract(entry("I learned to wait.", "insight"))) == ["Insight"]
    assert labels(extract(entry("I learned to wait.", "observation"))) == ["Observation", "Insight"]


@pytest.mark.parametrize(
    ("content", "category", "edge"),
    [
        ("A long outage led to the decision to use two brokers.", "experience", ("LED_TO", "Experience", "Decision")),
        ("The cache was cold, so I learned to warm it.", "experience", ("LED_TO", "Experience", "Insight")),
        ("I decided to stop because I learned that it was late.", "experience", ("LED_TO", "Insight", "Decision")),
        ("This connects to the principle of least surprise.", "insight", ("LED_TO", "Insight", "Belief")),
        ("This contradicts my belief in caches.", "insight", ("CONTRADICTS", "Insight", "Belief")),
        (
            "I realized it is fast, but I thought the belief in C held.",
            "observation",
            ("CONTRADICTS", "Insight", "Belief"),
        ),
        ("This refines the principle of one writer.", "insight", ("REFINES", "Insight", "Belief")),
        ("This clarifies the principle of one writer.", "insight", ("REFINES", "Insight", "Belief")),
        ("The outage revealed that we cannot fail over.", "experience", ("REVEALED", "Experience", "Limitation")),
        ("The outage revealed how quick we are.", "friction", ("REVEALED", "Friction", "Capability")),
    ],
)
def test_a_connective_makes_an_edge(content: str, category: str, edge: tuple[str, str, str]) -> None:
    assert edge in edges(extract(entry(content, category)))


def test_the_kind_of_an_edge_follows_its_connective() -> None:
    def properties(content: str) -> list[object]:
        return [dict(relation.properties) for relation in extract(entry(content, "insight")).relations]

    assert properties("This led to the principle of one writer.") == [{"contribution": "direct"}]
    assert properties("This connects to the principle of one writer.") == [{"contribution": "contextual"}]
    assert properties("This refines the principle of one writer.") == [{"kind": "clarification"}]


def test_pairs_that_the_ontology_does_not_have_are_dropped() -> None:
    assert edges(extract(entry("This led to the principle of one writer.", "observation"))) == set()
    assert labels(extract(entry("The profile revealed three hot loops.", "insight"))) == ["Insight"]


@pytest.mark.parametrize(
    ("content", "precision"),
    [
        ("The gauge fell over on 3 June 2023, two weeks ago.", None),
        ("I may march on with around 3 parsers, since the cache is cold.", None),
        ("Last week the gauge fell over.", "period"),
        ("The gauge fell over in March.", "period"),
        ("The gauge has drifted since 2019.", "period"),
        ("It has drifted since 3 June 2023.", "period"),
        ("Nobody looked for three weeks.", "period"),
        ("The gauge fell over around March.", "approximate"),
        ("The gauge fell over about 3 June 2023.", "approximate"),
        ("Circa 2019 nobody looked.", "approximate"),
        ("Late June was wet.", "approximate"),
        ("Two years ago, or a few days ago?", "approximate"),
        ("Recently, in March, it drifted.", "approximate"),
    ],
)
def test_what_is_known_says_how_precisely_it_says_when(content: str, precision: str | None) -> None:
    main = extract(entry(content, category="experience", domain="technical")).entities[0]
    assert main.properties.get("temporal_precision") == precision
    named = {"label": "Goal", "text": content}, {"label": "Limitation", "text": content}
    imported = extract(make_event("talos.knowledge.imported", {"entities": [*named]})).entities
    assert [one.properties.get("temporal_precision") for one in imported] == [None, precision], "a goal is no knowledge"


def test_a_purpose_is_no_consequence() -> None:
    assert edges(extract(entry("I wait, so that the principle of order holds.", "insight"))) == set()


def test_what_is_only_implied_is_less_certain() -> None:
    assert only(extract(entry("It revealed how quick we are.", "experience")), "Capability").confidence == 0.7
    assert only(extract(entry("It revealed a limit of the cache.", "experience")), "Limitation").confidence == 0.9


def test_the_given_confidence_is_that_of_the_insight_only() -> None:
    found = extract(entry("A thought. I believe in tests.", "insight", confidence=0.4))
    assert (only(found, "Insight").confidence, only(found, "Belief").confidence) == (0.4, 0.9)


def test_a_session_produces_what_is_found_in_its_entry() -> None:
    found = extract(entry("I believe in tests.", "insight", session_id=SESSION))
    assert edges(found) == {("PRODUCED", "Session", "Insight"), ("PRODUCED", "Session", "Belief")}


def test_an_unknown_domain_becomes_a_domain_and_a_known_one_is_linked_only() -> None:
    unknown = extract(entry("A thought.", domain="gardening", session_id=SESSION))
    domain = only(unknown, "Domain")
    assert (domain.text, domain.properties["depth"]) == ("gardening", "surface")
    assert {("OPERATES_IN", "Insight", "Domain"), ("OPERATES_IN", "Session", "Domain")} <= edges(unknown)
    known = extract(entry("A thought.", domain="Technical"))
    assert labels(known) == ["Insight"]
    assert [relation.to_id for relation in known.relations] == [named_id("domain", "technical")]


def test_a_logged_friction_is_a_friction_with_its_category() -> None:
    found = extract(friction("Read truncates. I learned it late.", "tooling", session_id=SESSION))
    assert labels(found) == ["Friction"]
    assert dict(found.entities[0].properties) == {"category": "tooling", "blocking": False}
    assert edges(found) == {("PRODUCED", "Session", "Friction")}


def test_a_blocking_friction_blocks_its_session() -> None:
    found = extract(friction("No network.", "environmental", session_id=SESSION, blocking=True))
    [blocked] = [relation for relation in found.relations if relation.type == "BLOCKED_BY"]
    assert (blocked.from_id, blocked.to_id, blocked.properties) == (
        SESSION,
        found.entities[0].id,
        {"severity": "blocking"},
    )


@pytest.mark.parametrize("short_type", ["talos.session.opened", "talos.session.closed"])
def test_opening_and_closing_yield_nothing(short_type: str) -> None:
    event = make_event(short_type, {"session_id": SESSION, "goal": "I believe in goals."})
    assert extract(event) == Extraction()
    assert texts_to_embed(event) == []


def test_the_entry_and_its_entities_are_embedded_but_no_domain() -> None:
    event = entry("A thought. I believe in tests.", domain="gardening")
    insight, belief = only(extract(event), "Insight"), only(extract(event), "Belief")
    assert texts_to_embed(event) == [
        (entry_id(event), event.data["content"]),
        (insight.id, insight.text),
        (belief.id, belief.text),
    ]


def test_the_same_belief_in_two_entries_is_one_entity() -> None:
    first = only(extract(entry("I believe in tests.", "observation")), "Belief")
    second = only(extract(entry("So it went. I believe in TESTS!", "insight", event_id="event-2")), "Belief")
    assert first.id == second.id


def test_one_entry_yields_a_bounded_number_of_entities() -> None:
    found = extract(entry("".join(f"I learned fact {number}.\n" for number in range(500)), "observation"))
    assert len(found.entities) == MAX_ENTITIES


# fmt: off
WORDS = st.sampled_from([
    "I", "believe", "decided", "realized", "learned", "principle", "because", ", so", "led to", "connects to",
    "contradicts", "but I thought", "refines", "revealed", "cannot", "limit", "cache", "?", ".", "!", "你好", "—", "\n",
])
# fmt: on
TEXTS = st.one_of(st.text(min_size=1), st.lists(WORDS, min_size=1, max_size=40).map(" ".join))


@given(
    TEXTS,
    st.sampled_from(CATEGORIES),
    st.sampled_from([None, SESSION]),
    st.sampled_from([None, "technical", "Gardening", "?"]),
)
def test_extraction_is_total_and_deterministic_and_every_edge_is_legal(
    content: str, category: str, session_id: str | None, domain: str | None
) -> None:
    event = entry(content, category, session_id=session_id, domain=domain)
    found = extract(event)
    assert found == extract(event.changed(data=dict(event.data)))
    assert bool(found.entities) == bool(content.strip())
    assert len({entity.id for entity in found.entities}) == len(found.entities)
    assert all(entity.text and 0 <= entity.confidence <= 1 for entity in found.entities)
    if found.entities:
        assert found.entities[0].label == CATEGORY_LABELS[category]
    known = {entity.id: entity.label for entity in found.entities} | {
        SESSION: "Session",
        named_id("domain", "technical"): "Domain",
    }
    for relation in found.relations:
        assert relation.from_id != relation.to_id
        assert is_legal(relation.type, known[relation.from_id], known[relation.to_id])


@given(TEXTS)
def test_the_ids_do_not_depend_on_what_is_said_of_the_entry(content: str) -> None:
    plain, placed = entry(content), entry(content, session_id=SESSION, domain="technical", confidence=0.3)
    assert [entity.id for entity in extract(plain).entities] == [entity.id for entity in extract(placed).entities]


def test_what_is_remembered_of_an_event_is_not_given_for_another_under_its_id() -> None:
    first = entry("We decided to keep the cache small.")
    other = first.changed(data={**first.data, "content": "The parser stalled again."})
    assert extract(first) is extract(first.changed())
    assert extract(other).entities != extract(first).entities
    assert extract(first.changed(time=first.time + timedelta(days=1))).entities[0].id != extract(first).entities[0].id
