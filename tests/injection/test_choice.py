"""Which hits of a search are worth to be given with a prompt that did not ask for them."""

from __future__ import annotations

from processors.injection.rules.choice import MIN_COSINE, MOST, ScoredHit, chosen

PROMPT = "In which time zone do we store the times?"


def hit(number: int, cosine: float | None) -> ScoredHit:
    return ScoredHit(f"r{number}", "Times are stored in UTC.", cosine)


def test_what_is_above_the_floor_is_given_the_surest_first() -> None:
    hits = [hit(1, MIN_COSINE), hit(2, 0.9), hit(3, MIN_COSINE - 0.001), hit(4, None)]
    assert [one.record_id for one in chosen(PROMPT, hits, trained=True)] == ["r2", "r1"]


def test_at_most_five_are_given() -> None:
    given = chosen(PROMPT, [hit(number, 0.6 + number / 100) for number in range(20)], trained=True)
    assert [one.record_id for one in given] == ["r19", "r18", "r17", "r16", "r15"] and len(given) == MOST


def test_a_prompt_of_two_words_and_a_model_without_learned_meaning_are_given_nothing() -> None:
    assert chosen("yes please", [hit(1, 0.9)], trained=True) == []
    assert chosen(PROMPT, [hit(1, 0.9)], trained=False) == []
    assert chosen("", [hit(1, 0.9)], trained=True) == []
