"""The ontology has what the specification counts."""

from processors.talos.rules.ontology import (
    CATEGORY_LABELS,
    DOMAINS,
    LABELS,
    PRELOADED,
    RELATIONS,
    STATES,
    TOOLS,
    is_known_domain,
    is_legal,
)
from streams.event_types.talos import CATEGORIES


def test_there_are_twenty_labels_and_twenty_four_relations() -> None:
    assert (len(LABELS), len(RELATIONS)) == (20, 24)


def test_every_endpoint_is_a_label() -> None:
    assert {label for pairs in RELATIONS.values() for pair in pairs for label in pair} <= set(LABELS)


def test_every_category_of_the_journal_has_its_label() -> None:
    assert set(CATEGORY_LABELS) == set(CATEGORIES)
    assert set(CATEGORY_LABELS.values()) <= set(LABELS)


def test_a_session_produces_every_category() -> None:
    assert all(
        is_legal("PRODUCED", "Session", label) for label in (*CATEGORY_LABELS.values(), "Belief", "Pattern", "Question")
    )


def test_eleven_states_ten_domains_and_ten_tools_are_preloaded() -> None:
    assert (sum(map(len, STATES.values())), len(DOMAINS), len(TOOLS)) == (11, 10, 10)
    assert len(PRELOADED) == 31


def test_a_domain_is_known_in_any_spelling_of_its_case() -> None:
    assert is_known_domain("Meta-Cognitive") and not is_known_domain("gardening") and not is_known_domain(" ")


def test_merging_and_superseding_keep_the_label() -> None:
    assert all(
        from_label == to_label
        for name in ("MERGED_INTO", "SUPERSEDES", "EVOLVED_FROM")
        for from_label, to_label in RELATIONS[name]
    )
