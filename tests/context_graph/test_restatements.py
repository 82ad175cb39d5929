"""What tells two statements apart that hardly differ in their words, and what does not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from processors.context_graph.rules import near_pairs as module
from processors.context_graph.rules.near_pairs import BLOCK, near_pairs
from processors.context_graph.rules.restatements import ordinary_words, restate, said

PAIRS = tomllib.loads((Path(__file__).parents[1] / "fixtures" / "different_statements.toml").read_text())


def same(one: str, other: str, modality: str = "text", *texts: str) -> bool:
    ordinary = ordinary_words([one, other, *texts])
    return said(one, modality, ordinary) == said(other, modality, ordinary) and restate(one, other)


@pytest.mark.parametrize("kind", ["negation", "number", "name", "date", "owner"])
def test_no_pair_of_different_meaning_says_the_same(kind: str) -> None:
    pairs = PAIRS["development"][kind] + PAIRS["report"][kind]
    assert len(pairs) == 52
    assert [pair for pair in pairs if same(*pair)] == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I'm so happy with the new layout!", "I am happy with the new layout!"),
        ("We tried the ferry and it was great.", "We tried the ferry and it was wonderful."),
        ("Retry the upload, it often helps.", "Retry the upload; it frequently helps."),
        ("Anna: Wow, that looks good.", "Anna: Whoa, that looks good."),
        ("The deploy took 2 hours.", "The deploy took two hours."),
        ("Tides turn.", "tides turn"),
        ("He enjoys painting and loves walking.", "He enjoys painting and loves walks."),
        ("Let's keep the ferry at noon.", "Let us keep the ferry at noon."),
        ("The kids loved the harbour.", "The children loved the harbour."),
        ("Her photo hangs in the hall.", "Her picture hangs in the hall."),
        ("We bought the lamp at the store.", "We bought the lamp at the shop."),
        ("Movies are shown in the hall.", "Films are shown in the hall."),
        ("Wow, that's steep! Where do they land?", "Whoa, that is steep! Where do they moor?"),
        ("We're late, and it's raining. Who's rowing?", "We are late, and it is raining. Who is rowing?"),
        ("Mooring isn't just a trade, it's a place to rest.", "Mooring isn't just a trade, it's a spot to rest."),
        ("Hey Mel, yeah, the ferry is ok.", "Hi Mel, yes, the ferry is okay."),
        ("The harbour is really vital to us.", "The harbour is really dear to us."),
    ],
)
def test_words_that_mean_the_same_do_not_tell_texts_apart(one: str, other: str) -> None:
    assert same(one, other) and same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Let us keep the ferry.", "Let them keep the ferry."),
        ("The kids loved the harbour.", "The parents loved the harbour."),
        ("Whoa, what an experience! How did it make you feel?", "Whoa, did you make that? It looks real!"),
        (
            "That's awesome! Keep that positivity going and keep making a difference. Take care!",
            "Yep! That's why it's important to keep spreading positivity and making a difference.",
        ),
        (
            "Oh, Ana, this is a lovely harbour! What brought you to moor in a place like that?",
            "Oh, Ana! What brought you to join it?",
        ),
    ],
)
def test_texts_that_share_words_and_each_say_more_are_two(one: str, other: str) -> None:
    assert not same(one, other) and not same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We had a wonderful week by the sea, with walks.", "We had a terrible week by the sea, with walks."),
        ("The upload to the archive works.", "The upload to the archive fails."),
        ("They sing the old songs well.", "They sing the old songs badly."),
    ],
)
def test_praise_is_not_blame(one: str, other: str) -> None:
    assert not same(one, other) and not same(other, one)


@pytest.mark.parametrize(
    ("one", "other", "modality"),
    [
        ("def a(n): return n + 1", "def a(n): return n + 2", "code"),
        ("def total(n): return n", "def totals(n): return n", "code"),
        ('{"port": "open"}', '{"port": "closed"}', "structured"),
        ("cats.png", "dogs.png", "image"),
        ("shots/harbour at dawn.png", "shots/harbour at dusk.png", "image"),
    ],
)
def test_each_word_of_code_data_and_paths_tells(one: str, other: str, modality: str) -> None:
    assert not same(one, other, modality)


def test_white_space_tells_no_code_apart() -> None:
    assert same("def a(n):\n    return n", "def a(n):\n  return  n", "code")


def test_a_first_word_is_a_name_unless_it_is_written_small_somewhere() -> None:
    pair = "Running helps against stress.", "Jogging helps against stress."
    assert not same(*pair)
    assert same(*pair, "text", "I like running.", "She is jogging.")


def test_texts_that_differ_over_many_words_are_not_compared() -> None:
    filler = "well and so it goes on with more to see and hear in the hall of the old mill "
    assert not same(f"start {filler * 40} end", f"begin {filler[::-1] * 40} end")


@pytest.mark.parametrize("few", [0, 1_000])
def test_near_pairs_are_those_of_all_products(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(3)
    topics = chance.standard_normal((20, 384))
    rows = topics[chance.integers(0, 20, BLOCK * 2 + 40)] + 0.3 * chance.standard_normal((BLOCK * 2 + 40, 384))
    vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    whole = np.tril(vectors @ vectors.T, -1)
    monkeypatch.setattr(module, "FEW", few)
    for least in (0.85, 0.92, 0.99):
        blocks = list(near_pairs(vectors, least))
        found = {pair for block in blocks for pair in zip(block.first.tolist(), block.second.tolist(), strict=True)}
        assert blocks[-1].end == len(vectors)
        assert found == set(zip(*map(np.ndarray.tolist, np.nonzero(whole >= least)), strict=True))
    assert list(near_pairs(vectors[:0], 0.9)) == []
    assert [block.end for block in near_pairs(vectors[:1], 0.9)] == [1]
