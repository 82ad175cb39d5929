"""Thirteen views of a text: what each of them is for, seen on texts that differ in that only."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from processors.context_graph.rules.views.alignment import alignments, view_alignments
from processors.context_graph.rules.views.catalogue import VIEWS, views_with
from processors.context_graph.rules.views.centre import centre
from processors.context_graph.rules.views.code import split_name
from processors.context_graph.rules.views.fingerprint import (
    MAX_CHARS,
    Fingerprint,
    fingerprint,
    text_features,
    token_features,
)
from processors.context_graph.rules.views.lexical import MOST_PIECES, Rarity, pieces_of, pieces_of_each, term_number
from processors.context_graph.rules.views.outputs import COMMON_DIM, common, outputs
from processors.context_graph.rules.views.spans import CAUSE, EFFECT, HEAD, TAIL, spans_of
from processors.context_graph.rules.views.times import DAY, HOUR, Moment
from processors.embedding.hashing import HashingEmbedder
from processors.embedding.loader import load_embedder
from processors.embedding.model import TokenEmbedder
from storage.search.vectors.token_vectors import pack, unpack
from thalweg.bench.views import with_typos

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()
Print = Callable[..., Fingerprint]
TEXTS = [
    "The build failed because the cache was stale.",
    "the of and",
    "",
    " \n\t ",
    "?!… 🙂",
    "x" * 100_000,
    "word and worry " * 6_000,
    "机器学习因为数据多所以有效。",
    "السلام عليكم ورحمة الله",
    "func ParseConfigFile(path string) (*Config, error) { return nil, nil }",
    '{"a": [1, 2, {"b": null}]}',
    "\x00\ud800 half a character",
]


@pytest.fixture(scope="module")
def model(model_cache: Path) -> TokenEmbedder:
    loaded = load_embedder("minilm", cache_dir=model_cache)
    assert isinstance(loaded, TokenEmbedder)
    return loaded


@pytest.fixture(scope="module")
def seen(model: TokenEmbedder) -> Print:
    """Makes the fingerprint of a text as it is stored; `moment` and `modality` may be given."""

    def made(text: str, modality: str = "text", moment: Moment | None = None, **parts: object) -> Fingerprint:
        clean = text[:2_000].encode(errors="replace").decode()
        encoded = model.encode_tokens([clean])
        features = text_features(text, modality)
        tokens = None
        if len(encoded.tokens[0].ids):
            ids, codes = unpack(pack(encoded.tokens[0]))
            [pieces] = model.piece_starts([clean])
            tokens = token_features(ids, codes, pieces.starts, features.spans)
        about = {"vector": encoded.vectors[0], "tokens": tokens, **parts}
        return fingerprint(features, moment or Moment(NOON), **about)  # type: ignore[arg-type]

    return made


def column(number: int, query: Fingerprint, *memories: Fingerprint) -> list[float]:
    """The alignments of one view, E`number`."""
    found: list[float] = alignments(query, memories)[:, number - 1].tolist()
    return found


def test_no_text_gives_a_number_out_of_bounds_and_what_is_missing_is_only_what_a_text_without_tokens_lacks(
    seen: Print,
) -> None:
    prints = [seen(text) for text in TEXTS]
    for query in prints:
        found = alignments(query, prints)
        assert found.shape == (len(TEXTS), 13) and found.dtype == np.float32
        assert np.nanmin(found) >= -1 and np.nanmax(found) <= 1
        for place, one in enumerate(prints):
            missing = {number + 1 for number in np.flatnonzero(np.isnan(found[place]))}
            without = query.tokens is None or one.tokens is None
            assert missing - {7, 13} == ({4, 5, 6, 11, 12} if without else {4}), (TEXTS[place][:20], missing)


def test_a_text_aligns_wholly_with_itself_in_every_view(seen: Print) -> None:
    moment = Moment(NOON, "s", 3, 40)
    for text in (TEXTS[0], TEXTS[7], TEXTS[9], TEXTS[6]):
        [row] = alignments(seen(text, moment=moment), [seen(text, moment=moment)])
        assert row.min() > 0.94, text[:20]
        assert np.delete(row, 11).min() == pytest.approx(1, abs=1e-3), "int8 rows of E12 are not quite of length 1"


def test_memories_are_aligned_together_as_each_would_be_alone(seen: Print) -> None:
    prints = [seen(text, moment=Moment(NOON + 777 * place, "s", place, place)) for place, text in enumerate(TEXTS)]
    for query in prints:
        alone = np.concatenate([alignments(query, [one]) for one in prints])
        assert np.allclose(alignments(query, prints), alone, atol=1e-6, equal_nan=True)
        for number in range(1, 14):
            assert np.array_equal(
                view_alignments(number, query, prints), alignments(query, prints)[:, number - 1], True
            )


def test_no_memories_align_with_nothing(seen: Print) -> None:
    assert alignments(seen("a text"), []).shape == (0, 13)


def test_freshness_falls_by_the_hour_the_week_and_then_hardly() -> None:
    of = [print_at(NOON - age) for age in (0, HOUR, 7 * DAY, 365 * DAY, 3650 * DAY)]
    assert column(2, print_at(NOON), *of) == pytest.approx([1, 0.971, 0.688, 0.5, 0.5], abs=2e-3)


def test_the_same_hour_of_another_day_is_nearer_than_another_hour_of_the_same() -> None:
    ten_minutes, six_hours, tomorrow, in_a_week = column(
        3, print_at(NOON), *(print_at(NOON + gap) for gap in (600, 6 * HOUR, DAY, 7 * DAY))
    )
    assert tomorrow > six_hours and in_a_week > tomorrow - 0.1
    assert column(3, print_at(NOON), print_at(NOON + DAY + 600))[0] > 0.6, "ten minutes are no other hour"
    assert ten_minutes > 0.8


def test_order_is_by_the_place_in_the_session_and_by_the_logarithm_of_the_position() -> None:
    query = print_at(NOON, session="s", place=10, position=1000)
    places = [
        print_at(NOON, session="s", place=9, position=999),
        print_at(NOON, session="s", place=5, position=995),
        print_at(NOON, session="s", place=0, position=990),
    ]
    assert column(4, query, *places) == sorted(column(4, query, *places), reverse=True)
    [other] = column(4, query, print_at(NOON, session="t", place=500, position=990))
    assert other > 0.99, "a place in another session says nothing"
    late, early = column(4, query, print_at(NOON, position=900), print_at(NOON, position=3))
    assert late > early
    assert math.isnan(column(4, query, print_at(NOON))[0])


def print_at(at: float, **place: object) -> Fingerprint:
    return fingerprint(text_features("a text"), Moment(at, **place))  # type: ignore[arg-type]


def test_cause_and_effect_are_told_apart(seen: Print) -> None:
    told, reversed_ = "The build failed because the cache was stale.", "The cache was stale because the build failed."
    same, turned = column(5, seen(told), seen(told), seen(reversed_))
    assert same > 0.99 and turned < same - 0.3
    assert column(1, seen(told), seen(reversed_))[0] > 0.85, "the whole text's vector hardly sees it"


@pytest.mark.parametrize(
    ("text", "cause", "effect"),
    [
        ("The build failed because the cache was stale.", "the cache was stale", "The build failed"),
        ("A stale cache led to the failed build.", "A stale cache", "the failed build"),
        ("If the cache is stale, the build fails.", "the cache is stale", "the build fails"),
        ("Der Bau brach ab, weil der Speicher alt war.", "der Speicher alt war", "Der Bau brach ab"),
        ("机器学习因为数据多", "数据多", "机器学习"),
    ],
)
def test_markers_say_what_is_cause_and_what_effect(text: str, cause: str, effect: str) -> None:
    ranges = spans_of(text).ranges
    for kind, wanted in ((CAUSE, cause), (EFFECT, effect)):
        [(start, end)] = ranges[kind]
        assert wanted in text[start:end] and (cause + effect).replace(wanted, "") not in text[start:end]


def test_a_question_for_a_cause_finds_what_names_the_effect(seen: Print) -> None:
    names_the_effect, names_it_as_cause, names_no_cause = column(
        5,
        seen("Why did the build fail?"),
        seen("The build failed because the disk of the runner was full."),
        seen("The disk of the runner was full because the build failed."),
        seen("The build failed on the runner with the disk."),
    )
    assert names_the_effect > names_it_as_cause and names_the_effect > names_no_cause
    [unmarked] = column(5, seen("Why did the build fail?"), seen("did the build fail"))
    assert unmarked <= 0.9, "it names no cause, whatever its words"
    follows = spans_of("What happens if the disk is full?")
    assert follows.asked == EFFECT and follows.ranges[CAUSE] and not follows.ranges[EFFECT]


def test_head_and_tail_of_a_relation_are_told_apart(seen: Print) -> None:
    same, turned = column(11, seen("Anna manages Bert."), seen("Anna manages Bert."), seen("Bert manages Anna."))
    assert same > 0.99 and turned < same - 0.1
    [(start, end)] = spans_of("Anna manages Bert.").ranges[HEAD]
    assert "Anna manages Bert."[start:end].strip() == "Anna" and spans_of("Anna manages Bert.").ranges[TAIL]


def test_a_rare_word_piece_counts_more_than_a_frequent_one(seen: Print) -> None:
    query = seen("the quokka server")
    memories = seen("a quokka sleeps"), seen("a server sleeps")
    even = column(6, query, *memories)
    server = seen("server").tokens
    assert server is not None
    rarity = np.ones(65_536, np.float32)
    rarity[server.ids] = 0.1
    rare, frequent = column(6, seen("the quokka server", rarity=Rarity(rarity.__getitem__)), *memories)
    assert rare > frequent and rare - frequent > even[0] - even[1]
    assert column(6, seen("the quokka server", rarity=Rarity(rarity.__getitem__)), seen("server quokka")) == [
        pytest.approx(1)
    ]
    assert len(pieces_of(np.arange(5_000, dtype=np.uint16)).numbers) == MOST_PIECES


def test_the_word_pieces_of_several_texts_are_those_of_each_alone() -> None:
    texts = [[7, 3, 7], [], [65_535, 0, 0, 65_535, 12], list(range(5_000)), [1]]
    ids = [np.array(each, np.uint16) for each in texts]
    for each, alone in zip(pieces_of_each(ids), map(pieces_of, ids), strict=True):
        assert each.numbers.tolist() == alone.numbers.tolist() and each.weights.tolist() == alone.weights.tolist()
    assert pieces_of_each([]) == []


def test_a_renamed_symbol_and_its_words_are_near_to_the_code(seen: Print) -> None:
    code = "func ParseConfigFile(path string) (*Config, error) {\n\treturn readFile(path)\n}"
    other = "func CloseSession(id string) error {\n\treturn store.Close(id)\n}"
    for query in ("parse config file", "parse_config_file(path)", "parseConfigFile"):
        mine, others = column(7, seen(query), seen(code), seen(other))
        assert mine > others + 0.3, query
    renamed = code.replace("path", "name")
    assert column(7, seen(code), seen(renamed))[0] > 0.8
    in_order, turned = column(7, seen("parse config"), seen("x.parse_config()"), seen("x.config_parse()"))
    assert in_order > turned + 0.05
    assert split_name("parseHTTPHeader_v2") == ["parse", "http", "header", "v", "2"]


def test_a_declared_name_counts_more_than_one_that_is_called(seen: Print) -> None:
    declares, calls = column(
        7, seen("load plan"), seen("def load_plan(x): return check(x)"), seen("def check(x): return load_plan(x)")
    )
    assert declares > calls


def test_neighbours_pull_a_text_towards_what_is_around_it(seen: Print) -> None:
    near = seen("A river bends around a hill of clay.")
    query = seen("clay")
    pulled = seen("clay", neighbours=near.vector)
    assert column(8, query, near) == column(1, query, near), "a text that stands alone is as its vector"
    assert column(8, pulled, near)[0] > column(1, query, near)[0] + 0.1


def test_wrong_letters_hardly_change_the_view_of_characters(seen: Print) -> None:
    text = "The Kuramoto model describes synchronization of coupled oscillators"
    others = [seen(other) for other in ("Bears sleep through the whole winter in caves", "the of and", TEXTS[9])]
    mistyped, *rest = column(9, seen(with_typos(text)), seen(text), *others)
    assert with_typos(text) != text and mistyped > 0.4 and mistyped > max(rest) + 0.3
    assert column(9, seen(text), seen(text.upper().replace(" ", "  "))) == [1.0]


def test_what_a_memory_is_counts_beside_what_it_says(seen: Print) -> None:
    text = "The login flow, drawn by hand."
    picture, plain = column(10, seen("an image of the login flow"), seen(text, "image"), seen(text))
    assert picture > plain
    short, long = column(10, seen("the notes"), seen("the notes"), seen("the notes " * 300))
    assert short > long


def test_late_interaction_sees_one_matching_token_in_a_long_text(seen: Print) -> None:
    long = "We talked about lunch, the weather, trains and the new office plants. " * 3
    with_it, without = seen(long + "Anna keeps a quokka."), seen(long + "Anna keeps a garden.")
    fine, coarse = (column(number, seen("quokka"), with_it, without) for number in (12, 1))
    assert fine[0] - fine[1] > coarse[0] - coarse[1]


def test_keywords_are_ranked_as_bm25_ranks_them(seen: Print) -> None:
    rarity = Rarity(terms={term_number("rocket"): 5.0, term_number("plan"): 0.5}, mean_length=5)
    rare, frequent, both, none = column(
        13,
        seen("rocket plan", rarity=rarity),
        seen("a rocket was seen today"),
        seen("a plan was seen today"),
        seen("the rocket plan of today"),
        seen("nothing else was here"),
    )
    assert both > rare > frequent > none == 0


def test_other_models_give_the_views_that_they_can(seen: Print) -> None:
    hashing = HashingEmbedder()
    texts = ["The cache was stale", "The build failed"]
    prints = [
        fingerprint(text_features(text), Moment(NOON, position=place), vector=vector)
        for place, (text, vector) in enumerate(zip(texts, hashing.encode(texts), strict=True))
    ]
    missing = np.flatnonzero(np.isnan(alignments(prints[0], prints)).any(0)) + 1
    made = views_with("hashing-384", "numpy", trained=False, dimension=384, has_tokens=False)
    assert missing.tolist() == [view.embedder for view in made if not view.available] == [5, 11, 12]
    assert all(view.unavailable_because for view in made if not view.available)
    assert not any(view.trained for view in made)
    none = views_with(None, None, trained=False, dimension=0, has_tokens=False)
    assert [view.embedder for view in none if view.available] == [2, 3, 4, 6, 7, 9, 13]
    stems = prints[0]
    assert math.isnan(column(6, stems, seen(texts[0]))[0]), "stems are not compared with word pieces"


def test_the_catalogue_says_what_a_view_really_is(seen: Print) -> None:
    moment = Moment(NOON, "s", 0, 0)
    made = outputs(seen("func Open(path string) error: a text with a relation is here", moment=moment), NOON)
    for view, output in zip(VIEWS, made, strict=True):
        assert output is not None and int(output.numbers.max()) < view.native_dimension, view.label
        assert np.linalg.norm(output.weights) == pytest.approx(1, abs=1e-5)
        assert view.quantization == "sparse" or view.trained or len(output.numbers) <= view.native_dimension
        assert view.trained == (view.provider == "onnxruntime")
        if view.trained:
            assert view.stands_in_for is not None, "no learned view is the published model"
    assert [view.embedder for view in VIEWS] == list(range(1, 14))
    dense = {view.embedder for view in VIEWS if view.quantization != "sparse" and view.embedder != 7}
    for number in dense:
        output = made[number - 1]
        assert output is not None and len(output.numbers) == VIEWS[number - 1].native_dimension


def test_the_common_space_keeps_what_is_alike_near(seen: Print) -> None:
    one, same, other = (seen(text) for text in (TEXTS[0], TEXTS[0] + " Indeed.", "Bears sleep in caves."))
    rows = [common(print_, NOON) for print_ in (one, same, other)]
    assert rows[0].shape == (13, COMMON_DIM)
    assert np.allclose(np.linalg.norm(rows[0], axis=1), [0 if number == 3 else 1 for number in range(13)], atol=1e-5)
    for number in (0, 5, 6, 8, 11, 12):
        assert rows[0][number] @ rows[1][number] > rows[0][number] @ rows[2][number] + 0.2


def test_the_centre_of_memories_is_nearer_to_each_than_a_stranger_is(seen: Print) -> None:
    texts = [f"The cache of build {number} was stale, so the build failed again." for number in range(5)]
    memories = [seen(text, moment=Moment(NOON + place, None, None, place)) for place, text in enumerate(texts)]
    stranger = seen("Bears sleep in caves.", moment=Moment(NOON + 90 * DAY, None, None, 4000))
    [*own, other] = alignments(centre(memories), [*memories, stranger])
    assert np.isfinite(own).all()
    for number in (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13):
        assert min(row[number - 1] for row in own) > other[number - 1], f"E{number}"
    [alone] = alignments(centre(memories[:1]), memories[:1])
    assert np.delete(alone, [3, 4, 10, 11]) == pytest.approx(1, abs=1e-3)


def test_only_the_beginning_of_a_very_long_text_is_read_for_its_words(seen: Print) -> None:
    begin, whole = text_features("word " * MAX_CHARS), text_features("word " * (MAX_CHARS // 5))
    assert begin.terms.length == pytest.approx(whole.terms.length, abs=1)
    assert begin.bits.tolist() == whole.bits.tolist()
