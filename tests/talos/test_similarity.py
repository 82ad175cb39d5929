"""Which records say the same."""

from dataclasses import replace

import pytest

from processors.talos.rules.similarity import EntityRecord, Similar, similar_records

NEW = EntityRecord("new", "Friction", "The read tool truncates files", "tooling")
NEAR = EntityRecord("near", "Friction", "Reading a file cuts it off", "tooling", cosine=0.85)


def test_a_cosine_of_85_hundredths_is_enough_and_less_is_not() -> None:
    assert similar_records(NEW, [NEAR]) == [Similar("near", "cosine", 0.85)]
    assert similar_records(NEW, [replace(NEAR, cosine=0.8499)]) == []


def test_an_equal_canonical_form_needs_no_vector() -> None:
    same = EntityRecord("same", "Friction", "the READ tool truncates files.", "tooling")
    assert similar_records(NEW, [same]) == [Similar("same", "canonical_form")]


def test_a_statement_and_its_negation_are_not_the_same() -> None:
    negated = replace(NEAR, text="The read tool does not truncate files", cosine=0.97)
    assert similar_records(NEW, [negated]) == []
    both = replace(NEW, text="The read tool doesn't truncate files")
    assert similar_records(both, [negated]) == [Similar("near", "cosine", 0.97)]


def test_another_value_is_not_the_same_but_for_a_friction_that_happens_again() -> None:
    older = EntityRecord("older", "Observation", "The gateway listens on port 8080.", cosine=0.95)
    newer = EntityRecord("newer", "Observation", "The gateway listens on port 9090.")
    assert similar_records(newer, [older]) == []
    assert similar_records(replace(newer, text="Our gateway listens on port 8080."), [older]) != []
    frictions = [replace(one, label="Friction") for one in (newer, older)]
    assert similar_records(frictions[0], [frictions[1]]) == [Similar("older", "cosine", 0.95)]


@pytest.mark.parametrize(
    "other", [replace(NEAR, label="Insight"), replace(NEAR, category="process"), replace(NEAR, record_id="new")]
)
def test_another_label_another_category_and_the_record_itself_are_not_compared(other: EntityRecord) -> None:
    assert similar_records(NEW, [other]) == []


def test_only_frictions_are_told_apart_by_category() -> None:
    insight = EntityRecord("i", "Insight", "x", "a", cosine=0.9)
    assert similar_records(replace(insight, record_id="j", category="b"), [insight]) == [
        Similar("i", "canonical_form", 0.9)
    ]


def test_fifty_equal_characters_do_not_make_two_frictions_similar() -> None:
    start = "The build of the documentation fails on the machine of "
    first = EntityRecord("a", "Friction", start + "the release team", "tooling", cosine=0.6)
    assert similar_records(replace(NEW, text=start + "a contributor"), [first]) == []


def test_the_best_comes_first() -> None:
    candidates = [NEAR, replace(NEAR, record_id="b", cosine=0.9), replace(NEAR, record_id="a", cosine=0.9)]
    candidates.append(EntityRecord("same", "Friction", NEW.text, "tooling"))
    assert [found.record_id for found in similar_records(NEW, candidates)] == ["same", "a", "b", "near"]
