"""The passage of a long text that is shown: what fits the query, between sentences, never inside a character."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_ingress.fitting.passage import best_passage, boundary, end_of_page

KEY = "The spare key of the boathouse hangs behind the blue barometer."
WINTER = [f"Truck {number} whines in winter until its gearbox is warm." for number in range(200)]
CLUSTERS = ["👩‍👩‍👧‍👦", "🇩🇪", "🇫🇷", "e\u0301", "👍🏽", "क्\u200dष", "\r\n", "각", "한", "🏴\U000e0067\U000e007f"]


def shown(text: str, query: str | None = None, near: tuple[int, int] | None = None, longest: int = 300) -> str:
    start, end = best_passage(text, longest, query, near)
    assert end - start <= longest
    return text[start:end]


@pytest.mark.parametrize("place", [0, 1, 100, 199, 200])
def test_the_sentence_with_the_words_of_the_query_is_shown_wherever_it_stands(place: int) -> None:
    text = " ".join([*WINTER[:place], KEY, *WINTER[place:]])
    assert KEY in shown(text, "Where is the boathouse's spare key?")
    assert KEY in shown(text, "keys of BOATHOUSES")


def test_a_word_that_is_rare_in_the_text_counts_more_than_common_ones() -> None:
    text = " ".join([*WINTER[:150], "The barometer fell.", *WINTER[150:]])
    assert "barometer" in shown(text, "truck gearbox winter barometer")


def test_a_passage_begins_and_ends_between_sentences_or_lines() -> None:
    text = " ".join([*WINTER[:100], KEY, *WINTER[100:]])
    passage = shown(text, "spare key")
    assert passage.startswith("T") and passage.endswith(".")
    code = "\n".join(f"step_{number} = start({number})" for number in range(300))
    lines = shown(code, "step_151").split("\n")
    assert set(lines) <= set(code.split("\n")) and "step_151 = start(151)" in lines


def test_what_is_found_has_context_on_both_sides() -> None:
    text = " ".join([*WINTER[:100], KEY, *WINTER[100:]])
    before, _, after = shown(text, "spare key").partition(KEY)
    assert before and after


def test_without_a_word_of_the_query_the_part_nearest_in_meaning_is_shown_and_else_the_beginning() -> None:
    text = " ".join([*WINTER[:100], KEY, *WINTER[100:]])
    place = text.index(KEY)
    assert KEY in shown(text, "zzz", (place, place + len(KEY)))
    assert shown(text, "zzz") == shown(text) == " ".join(WINTER)[: len(shown(text))]


def test_a_near_part_that_is_longer_than_a_passage_is_shown_from_its_start() -> None:
    text = " ".join(WINTER)
    start = text.index("Truck 77")
    assert shown(text, None, (start, start + 3000)).startswith("Truck 77")


def test_words_weigh_more_than_meaning_where_all_of_them_are_said() -> None:
    text = " ".join([*WINTER[:100], KEY, *WINTER[100:]])
    assert KEY in shown(text, "spare key boathouse", (0, 300))


def test_chinese_is_found_without_spaces_and_cut_at_its_full_stops() -> None:
    text = "齿轮在冬天会响。" * 100 + "备用钥匙挂在蓝色气压计后面。" + "齿轮在冬天会响。" * 100
    passage = shown(text, "备用钥匙在哪里？")
    assert "备用钥匙挂在蓝色气压计后面。" in passage and passage.endswith("。")


@given(st.lists(st.sampled_from([*CLUSTERS, "a", " ", "字", "."]), min_size=1, max_size=80), st.integers(12, 60))
@example([*"abcdefghijklmnopq", "\r\n", "z"], 18)
def test_no_passage_and_no_page_divides_a_character_as_it_is_read(parts: list[str], longest: int) -> None:
    text = "".join(parts)
    places = set(accumulate(map(len, parts), initial=0))
    # a sequence of flags or of Hangul is one only by its neighbours: the pieces must not join
    places = {place for place in places if place in (0, len(text)) or boundary(text, place) == place}
    start, end = best_passage(text, longest)
    assert {start, end} <= places and end - start <= longest
    assert end_of_page(text, 0, longest) in places


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_character_of_several_code_points_is_one(cluster: str) -> None:
    text = f"a{cluster}"
    assert [boundary(text, place) for place in range(1, len(text))] == [1] * len(cluster)
    assert boundary(text, len(text)) == len(text)


def test_flags_are_two_letters_each_however_many_stand_in_a_row() -> None:
    assert [boundary("🇩🇪🇫🇷🇨🇦", place) for place in range(2, 7)] == [2, 2, 4, 4, 6]


def test_a_text_that_is_one_word_or_nothing_but_marks_is_cut_all_the_same() -> None:
    assert len(shown("x" * 100_000, "x")) == 300
    assert len(shown("e" + "\u0301" * 5000)) == 300
    assert shown(" " * 5000)
