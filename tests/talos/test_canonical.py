"""When two statements are the same statement."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.talos.rules.canonical import canonical_form, is_negated


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("  The Cache\tis  stale. ", "the cache is stale"),
        ("Straße", "strasse"),
        ("ﬁle ①", "file 1"),
        ("don't — ever!", "dont ever"),
        ("«A» / 'B'", "a b"),
        ("…", ""),
    ],
)
def test_the_canonical_form_folds_case_width_punctuation_and_whitespace(text: str, form: str) -> None:
    assert canonical_form(text) == form


def test_symbols_that_change_the_meaning_stay() -> None:
    assert canonical_form("a < b") != canonical_form("a > b")


@given(st.text())
def test_case_surrounding_space_and_full_stops_never_matter(text: str) -> None:
    assert canonical_form(f"  {text} . ") == canonical_form(text)


@pytest.mark.parametrize(
    "text", ["The cache is not stale", "It doesn’t hold", "NEVER again", "We can't", "without a lock", "I cannot"]
)
def test_a_negation_is_seen(text: str) -> None:
    assert is_negated(text)


@pytest.mark.parametrize("text", ["The cache is stale", "a knot", "nothingness aside", "The note"])
def test_a_word_that_only_looks_like_one_is_no_negation(text: str) -> None:
    assert not is_negated(text)
