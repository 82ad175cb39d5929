"""Which facts are worth giving with a prompt that did not ask for them."""

from __future__ import annotations

import pytest

from processors.injection.rules.floor import (
    FLOOR,
    LEAD,
    MAX_FACTS,
    MIN_RARE,
    RARE_SHARE,
    UNREAD,
    CandidateFact,
    Fact,
    facts_above_floor,
    fit,
)
from storage.search.words.bm25 import rarity

PROMPT = "In which time zone does the billing service store its times?"
MANY = 1000


def hit(number: int, late: float | None, words: float, text: str = "Times are stored in UTC.") -> CandidateFact:
    """A record with this `late`, and with words of the prompt that count as this many words that one record has."""
    return CandidateFact(f"r{number}", text, MANY, late, words * rarity(MANY, 1) or None)


def candidate(number: int, fitting: float, text: str = "Times are stored in UTC.") -> CandidateFact:
    """A record with this fit, of which two rare words are a part."""
    return hit(number, fitting - 2 * RARE_SHARE, 2, text)


def given(candidates: list[CandidateFact], known: list[CandidateFact] | None = None, prompt: str = PROMPT) -> list[str]:
    return [fact.record_id for fact in facts_above_floor(prompt, candidates, known or [])]


def test_a_fact_is_given_from_the_floor_on_the_surest_first_and_none_below_it() -> None:
    assert given([candidate(1, FLOOR + 1e-9), candidate(2, 0.9), candidate(3, FLOOR - 0.001)]) == ["r2", "r1"]


def test_rare_words_that_a_fact_shares_with_the_prompt_make_up_for_meaning() -> None:
    missing = 0.2
    words = missing / RARE_SHARE
    assert given([hit(1, FLOOR - missing, words + 0.01)]) == ["r1"]
    assert given([hit(1, FLOOR - missing, words - 0.01)]) == []


def test_a_fact_without_a_rare_word_of_the_prompt_is_not_given_nor_in_sight_however_near_it_is() -> None:
    strange, near = hit(1, 0.9, MIN_RARE - 0.01), hit(2, 0.9, MIN_RARE + 0.01)
    assert given([strange, near]) == ["r2"]
    assert given([near], [strange]) == ["r2"]


def test_what_counts_as_rare_goes_by_the_size_of_the_store() -> None:
    small, large = (CandidateFact("r1", "text", size, 0.0, 3 * rarity(size, 1)) for size in (5, 100_000))
    assert fit(small) == pytest.approx(fit(large)) == pytest.approx(3 * RARE_SHARE)
    assert fit(CandidateFact("r1", "text", 0, 0.5)) == 0.5, "an empty store divides by no zero"


def test_without_token_vectors_words_alone_tell() -> None:
    words = (FLOOR - UNREAD) / RARE_SHARE
    assert given([hit(1, None, words + 0.01), hit(2, None, words - 0.01)]) == ["r1"]
    assert given([hit(1, None, 0)]) == []


def test_a_fact_leads_what_the_session_has_in_sight_or_is_not_given() -> None:
    known = [candidate(8, 0.75), candidate(9, 0.3)]
    assert given([candidate(1, 0.75 + LEAD - 0.001), candidate(2, 0.75 + LEAD + 0.001)], known) == ["r2"]
    assert given([candidate(1, 0.65)], [candidate(9, 0.5)]) == ["r1"], "what fits worse takes nothing away"


def test_what_the_session_has_is_never_given() -> None:
    assert given([], [candidate(1, 0.95)]) == []


@pytest.mark.parametrize(
    "prompt", ["yes", "continue", "sorry, continue", "commit this", "1", "", "/review", "why?", "and now?"]
)
def test_a_prompt_of_a_few_words_is_given_nothing(prompt: str) -> None:
    assert given([hit(1, 1.0, 5)], prompt=prompt) == []


@pytest.mark.parametrize("prompt", ["On which day do we deploy billing?", "How do we round totals?", "Welcher Port？"])
def test_a_question_of_two_terms_asks_for_a_fact(prompt: str) -> None:
    assert given([hit(1, 1.0, 5)], prompt=prompt) == ["r1"]
    assert given([hit(1, 1.0, 5)], prompt=prompt[:-1]) == [], "the same as an order says what to do next"


def test_the_prompt_itself_is_no_fact_and_hides_none() -> None:
    itself = candidate(7, 1.5, f"  {PROMPT.upper()}\n")
    assert given([itself, candidate(1, 0.7)]) == ["r1"], "the same prompt of another session tells nothing"
    assert given([candidate(1, 0.7)], [itself]) == ["r1"], "a prompt that is stored already meets all its own words"


def test_at_most_five_are_given_and_confidence_ends_at_one() -> None:
    candidates = [candidate(number, 0.7 + number / 20) for number in range(10)]
    facts = facts_above_floor(PROMPT, candidates, [])
    assert [fact.record_id for fact in facts] == ["r9", "r8", "r7", "r6", "r5"] and len(facts) == MAX_FACTS
    assert facts[0] == Fact("r9", 1.0) and facts[4].confidence == pytest.approx(0.95)


def test_equal_fits_stay_in_the_order_in_which_the_search_found_them() -> None:
    assert given([candidate(2, 0.8), candidate(1, 0.8)]) == ["r2", "r1"]
