"""Ranking by evidence: packed tokens, weights, neighbours, parts that add up, what the real model finds."""

from collections.abc import Iterator
from dataclasses import astuple
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from processors.embedding.loader import MINILM, load_embedder
from processors.embedding.model import Embedder, encode_query
from processors.memory.stages.embed import encode_texts
from processors.memory.vector_facts import decode_vector
from storage.search.entries import DocumentEntry, PassageOf, VectorEntry
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.ranking.background import background, sample_of
from storage.search.ranking.weights import Evidence, keyword_scores, late_scores, score_parts, totals
from storage.search.records.filter import Filter
from storage.search.records.hits import SearchResult
from storage.search.records.passages import passage_label, split_passages
from storage.search.records.question_share import question_share
from storage.search.records.timeline import Neighbours, Timelines
from storage.search.search import search
from storage.search.sessions import search_sessions
from storage.search.vectors.dense_space import READ_PASSAGES
from storage.search.vectors.token_store import TokenStore
from storage.search.vectors.token_vectors import WIDTH, Tokens, pack, reduce_tokens, unpack
from tests.search.store import MODEL, START, Store, label_of, unit_rows


def tokens(*ids: int, content: bool = True) -> Tokens:
    """Each id has a direction of its own."""
    return Tokens(np.array(ids, np.uint16), np.eye(WIDTH, dtype=np.float32)[list(ids)], np.full(len(ids), content))


def test_the_projection_keeps_cosines() -> None:
    rows = unit_rows(200, 384)
    near = rows + 0.5 * unit_rows(200, 384, seed=1)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    before, after = (rows * near).sum(1), (reduce_tokens(rows) * reduce_tokens(near)).sum(1)
    assert np.abs(before - after).mean() < 0.05


def test_packed_tokens_come_back_to_a_hundredth_and_only_those_with_content() -> None:
    vectors = reduce_tokens(unit_rows(6, 384))
    content = np.array([True, False, True, True, False, True])
    ids, codes = unpack(pack(Tokens(np.arange(6, dtype=np.uint16), vectors, content)))
    assert ids.tolist() == [0, 2, 3, 5]
    assert np.abs(codes * (5 / WIDTH**0.5 / 127) - vectors[content]).max() < 0.01
    with pytest.raises(ValueError, match="not token vectors"):
        unpack("AAAA")


def test_rare_tokens_weigh_more_and_what_was_removed_counts_no_more(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens", "space", "model")
    store.add([(1, pack(tokens(5, 6))), (2, pack(tokens(5))), (3, pack(tokens(5)))])
    common, rare = store.weights(tokens(5, 6)).tolist()
    assert common < rare
    assert common + rare == pytest.approx(1.0)
    known, rows = store.similarities(tokens(5, 6), np.array([1, 2, 9]))
    assert known.tolist() == [True, True, False]
    assert rows.shape == (2, 2)
    assert rows[0, 1] > rows[1, 1]
    store.remove([1])
    assert not store.similarities(tokens(6), np.array([1]))[0].any()
    assert (len(store), store.lengths(np.array([1, 2])).tolist()) == (2, [0, 1])


def test_a_neighbour_lends_what_it_says_at_a_discount_and_a_record_of_the_same_moment_nothing() -> None:
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    near = Neighbours(np.array([0, 2, 2, 3]), np.array([1, 0, 1, 0]), np.array([1, 2, 0, 1]))
    is_read = np.array([True, True, True, False])
    scores = late_scores(Evidence(4, rows, is_read, weights=np.array([0.5, 0.5]), neighbours=near))
    assert scores == pytest.approx([0.5 + 0.425, 0.5, 0.375, np.nan], nan_ok=True)


def test_of_a_text_of_many_passages_a_near_one_says_less() -> None:
    rows, is_read = np.full((3, 1), 0.8), np.ones(3, bool)
    evidence = Evidence(3, rows, is_read, weights=np.ones(1), passages=np.array([1, 2, 7]))
    assert late_scores(evidence) == pytest.approx([0.8, 0.8 * (1 - 0.05 * np.log(2)), 0.8 * (1 - 0.05 * np.log(7))])


def test_a_short_text_takes_keywords_from_its_neighbours_and_a_long_one_has_enough_of_its_own() -> None:
    near = Neighbours(np.array([1, 2]), np.array([0, 0]), np.array([1, 2]))
    evidence = Evidence(3, keyword=np.array([0.5, 0.1, 0.1]), neighbours=near, passages=np.array([1, 1, 4]))
    assert keyword_scores(evidence) == pytest.approx([0.5, 0.1 + 0.6 * 0.5, 0.1])


def test_a_long_text_matches_by_one_passage_and_its_beginning_and_whole_share_its_cosine(tmp_path: Path) -> None:
    store = Store()
    indexes = store.open(tmp_path)
    words = " ".join(f"word{number}" for number in range(400))
    first, second = split_passages(words)[:2]
    whole, best = (unit_rows(1, MODEL.dim, seed=seed)[0] for seed in range(2))
    beginning = -best
    entries = [
        VectorEntry(label_of("long"), whole, MODEL.space, MODEL.model_id),
        VectorEntry(passage_label(label_of("long"), 1), best, MODEL.space, MODEL.model_id, pack(tokens(5, 6))),
        VectorEntry(passage_label(label_of("long"), 0), beginning, MODEL.space, MODEL.model_id, pack(tokens(7))),
    ]
    places = (None, second, first)
    entries = [
        entry._replace(passage=None if place is None else PassageOf(label_of("long"), *astuple(place)))
        for entry, place in zip(entries, places, strict=True)
    ]
    indexes.apply([DocumentEntry(label_of("long"), "a", words)], entries, store.positions)
    labels, space = np.array([label_of("long")]), indexes.space()
    found = space.match_tokens(tokens(5, 6, 7), best, labels)
    assert found is not None
    assert found.rows[0] == pytest.approx([0.44, 0.44, 0], abs=0.02), "not the third, which another passage has"
    assert found.fits.tolist() == [passage_label(label_of("long"), 1)]
    assert found.passages.tolist() == [len(split_passages(words))]
    expected = 0.25 * whole @ best + 0.5 - 0.25
    assert space.document_similarities(best, labels) == pytest.approx([expected], abs=1e-6)
    roughly = space.document_similarities(best, labels, roughly=True)
    assert roughly == pytest.approx([expected], abs=0.02) and roughly != pytest.approx([expected], abs=1e-6)


def test_of_a_long_text_the_passages_nearest_to_the_question_are_read_of_those_that_have_token_vectors(
    tmp_path: Path,
) -> None:
    store = Store()
    indexes = store.open(tmp_path)
    words = " ".join(f"word{number}" for number in range(1_200))
    passages, label, rows = split_passages(words), label_of("long"), np.eye(MODEL.dim, dtype=np.float32)
    assert len(passages) > READ_PASSAGES + 2
    asked = sum((number + 1) * rows[number] for number in range(len(passages)))
    entries = [
        VectorEntry(
            passage_label(label, passage.number),
            rows[passage.number],
            MODEL.space,
            MODEL.model_id,
            None if passage.number == len(passages) - 1 else pack(tokens(passage.number)),
            PassageOf(label, *astuple(passage)),
        )
        for passage in passages
    ]
    indexes.apply([DocumentEntry(label, "a", words)], entries, store.positions)
    ids = range(len(passages))
    found = indexes.space().match_tokens(tokens(*ids), asked / np.linalg.norm(asked), np.array([label]))
    assert found is not None
    assert found.is_read.all() and found.lengths.tolist() == [len(passages) - 1]
    read = [passage_label(label, number) for number in ids][-1 - READ_PASSAGES : -1]
    assert (
        found.fits.tolist()[0] in read
        and np.flatnonzero(found.rows[0] > 0.3).tolist()[0] in ids[-1 - READ_PASSAGES : -1]
    )


def test_the_parts_add_up_and_a_relation_lifts_to_half_of_its_parent() -> None:
    full = Evidence(
        2,
        keyword=np.array([1.0, 0.0]),
        vector=np.array([9.0, 0.1]),
        dates=np.array([1.0, 0.0]),
        parents=np.array([-1, 0]),
    )
    parts = score_parts(full, np.array([1.0, 0.0]))
    first = {side: values[0] for side, values in parts.items() if not np.isnan(values[0])}
    assert first == pytest.approx({"late": 0.5, "keyword": 0.15, "vector": 0.135, "date": 0.1})
    whole, related = totals(parts)
    assert related == pytest.approx(whole / 2)
    assert parts["graph"][1] > 0


def test_a_cosine_counts_by_how_far_it_stands_out_from_the_others() -> None:
    close = Evidence(1, vector=np.array([0.5]), background=(0.4, 0.05))
    wide = Evidence(3, vector=np.array([0.5, 0.1, np.nan]), background=(0.3, 0.1))
    assert score_parts(close, np.zeros(1))["vector"] == pytest.approx([2 * 0.045 / 2])
    assert score_parts(wide, np.zeros(3))["vector"] == pytest.approx([2 * 0.045 / 2, 0, 0])


@pytest.mark.parametrize(
    ("best", "mean", "keyword", "trust"),
    [
        (0.6, 0.3, 0.3, 1),
        (0.6, 0.1, 0.3, 2),
        (0.425, 0.2, 0.15, 1.5),
        (0.3, 0.25, 0.0, 2),
        (0.3, 0.15, 0.0, 3.5),
        (0.3, 0.0, 0.0, 5),
    ],
)
def test_keywords_fade_and_the_vector_is_trusted_where_words_are_nowhere_and_where_texts_lie_apart_from_the_query(
    best: float, mean: float, keyword: float, trust: float
) -> None:
    rows, is_read = np.array([[best], [0.1], [0.0]]), np.array([True, True, False])
    evidence = Evidence(3, rows, is_read, np.array([1.0]), background=(mean, 0.1))
    evidence.keyword, evidence.vector = np.array([0.0, 1.0, 1.0]), np.array([np.nan, mean + 0.1, np.nan])
    parts = score_parts(evidence, np.array([best, 0.0, np.nan]))
    assert parts["keyword"][1] == pytest.approx(keyword / 2)
    assert parts["vector"][1] == pytest.approx(trust * 0.045 / 2)
    assert parts["keyword"][2] == pytest.approx(0.15), "a record that is not embedded yet is found by its words"


def test_a_record_that_only_asks_loses_a_part_and_says_so() -> None:
    parts = score_parts(Evidence(3, asking=np.array([1.0, 0.5, 0.0])), np.full(3, 0.8))
    assert totals(parts) == pytest.approx([0.4 * 0.85, 0.4 * 0.925, 0.4])
    assert np.isnan(parts["asking"][2])


def test_the_share_that_asks_is_counted_in_characters_of_sentences() -> None:
    assert question_share("What did she cook? Soup, soup and soup.") == pytest.approx(18 / 38)
    assert question_share("See https://a.example/?q=1 for more.") == 0
    assert question_share("何時ですか？") == 1


def test_the_background_of_few_texts_is_mostly_what_is_believed_of_any() -> None:
    sample = sample_of(np.arange(2_000, dtype=np.int64))
    assert 400 < len(sample) <= 512 and len(sample_of(sample[:5])) == 5
    mean, deviation = background(np.where(sample % 8, 0.5, 0.7))
    assert (mean, deviation) == pytest.approx((0.55, 0.12), abs=0.05)
    assert background(np.full(5, np.nan)) == pytest.approx((0.2, 0.1))
    mean, deviation = background(np.full(2, 0.9))
    assert (mean, deviation) == pytest.approx((0.244, 0.195), abs=0.001)


def test_neighbours_are_those_of_the_session_by_moments() -> None:
    timelines = Timelines()
    for label, (session, minute) in enumerate([("s", 0), ("s", 1), ("s", 1), ("s", 2), ("s", 3), ("t", 1)]):
        timelines.add([DocumentEntry(label, "a", "", session, START + timedelta(minutes=minute))])
    timelines.add([DocumentEntry(9, "a", "", None, START)])
    rows, labels, far = timelines.around([0, 5, 9, 4])
    assert rows.tolist() == [0, 0, 0, 3, 3, 3], "nothing is next to what stands alone"
    assert sorted(zip(labels[:3].tolist(), far[:3].tolist(), strict=True)) == [(1, 1), (2, 1), (3, 2)]
    assert sorted(zip(labels[3:].tolist(), far[3:].tolist(), strict=True)) == [(1, 2), (2, 2), (3, 1)]
    timelines.remove([1, 2])
    _, labels, far = timelines.around([0])
    assert sorted(zip(labels.tolist(), far.tolist(), strict=True)) == [(3, 1), (4, 2)]


SAID = {
    "garage": [
        "Nora: The car would not start again this morning, so I took the tram.",
        "Ben: Did you ever find out what it was?",
        "Nora: The alternator. They replaced it on Thursday for three hundred and ten.",
    ],
    "kitchen": [
        "Ben: We are having the neighbours over for dinner on Saturday.",
        "Nora: Lovely! What will you make?",
        "Ben: A risotto with porcini, and the lemon tart that my sister taught me.",
    ],
    "holiday": [
        "Nora: I booked the flat in Lisbon for the second week of May.",
        "Ben: With the balcony over the river?",
        "Nora: Yes, and there is room for your bicycle too.",
    ],
}
ASKED = [
    ("What was wrong with Nora's vehicle?", "garage", 2),
    ("How much did the repair cost?", "garage", 2),
    ("Which dessert does Ben prepare for his guests?", "kitchen", 2),
    ("Where is Nora going on vacation, and when?", "holiday", 0),
]


@pytest.fixture(scope="module")
def embedder(model_cache: Path) -> Embedder:
    loaded = load_embedder("minilm", cache_dir=model_cache)
    assert loaded is not None
    return loaded


@pytest.fixture
def spoken(tmp_path: Path, embedder: Embedder) -> Iterator[tuple[Store, IndexSet]]:
    store = Store()
    indexes = store.open(tmp_path, MINILM)
    moment = START
    for session, turns in SAID.items():
        for number, text in enumerate(turns):
            moment += timedelta(minutes=1)
            made = encode_texts(embedder, [text])[text]
            record_id = f"{session}:{number}"
            vector, label = decode_vector(made["vector"]), label_of(record_id)
            store.write(record_id, text, session_id=session, created_at=moment, vector=vector, model_id=MINILM.model_id)
            store.connection.execute(
                "UPDATE embeddings SET space = ?, tokens = ? WHERE record_id = ?",
                [MINILM.space, made["tokens"], record_id],
            )
            entry = VectorEntry(label, vector, MINILM.space, MINILM.model_id, made["tokens"])
            indexes.apply([DocumentEntry(label, "a", text, session, moment)], [entry], store.positions)
    yield store, indexes
    indexes.close(save=False)


def ask(spoken: tuple[Store, IndexSet], embedder: Embedder, text: str, filter: Filter = Filter("a")) -> SearchResult:
    vector, found = encode_query(embedder, text)
    return search(spoken[0].connection.cursor(), spoken[1], Query(text, vector, filter, 5, found))


def ranks(spoken: tuple[Store, IndexSet], embedder: Embedder) -> list[list[tuple[str, float]]]:
    """For each question the records that are found, best first, with their scores."""
    answers = [ask(spoken, embedder, question).hits for question, *_ in ASKED]
    return [[(hit.record_id, round(hit.score, 6)) for hit in hits] for hits in answers]


@pytest.mark.parametrize(("question", "session", "turn"), ASKED)
def test_the_turn_that_answers_is_among_the_first_and_its_session_first(
    spoken: tuple[Store, IndexSet], embedder: Embedder, question: str, session: str, turn: int
) -> None:
    hits = ask(spoken, embedder, question).hits
    assert f"{session}:{turn}" in [hit.record_id for hit in hits[:2]]
    vector, found = encode_query(embedder, question)
    query = Query(question, vector, Filter("a"), 3, found)
    best = search_sessions(spoken[0].connection.cursor(), spoken[1], query).sessions
    assert best[0].session_id == session
    assert best[0].score == pytest.approx(sum(best[0].parts.values()))


def test_every_hit_says_what_each_side_adds_and_the_sum_is_its_score(
    spoken: tuple[Store, IndexSet], embedder: Embedder
) -> None:
    found = ask(spoken, embedder, "Who replaced the alternator?")
    assert found.hits[0].record_id == "garage:2"
    assert set(found.hits[0].sides) == {"late", "vector", "keyword"}
    for hit in found.hits:
        assert sum(hit.parts.values()) == pytest.approx(hit.score)
        assert 0 <= hit.score <= 1
        assert hit.text


def test_a_date_in_the_question_leads_to_what_was_said_then(spoken: tuple[Store, IndexSet], embedder: Embedder) -> None:
    day = f"{START:%d %B %Y}"
    found = ask(spoken, embedder, f"What was said about the trip on {day}?")
    assert all(hit.parts["date"] == pytest.approx(0.1) and hit.sides["date"][1] == 1.0 for hit in found.hits)
    off = ask(spoken, embedder, f"What was said about the trip in {START.year - 2}?")
    assert all("date" not in hit.sides and "date" not in hit.parts for hit in off.hits)


def test_a_filter_holds_for_neighbours_too(spoken: tuple[Store, IndexSet], embedder: Embedder) -> None:
    hits = ask(spoken, embedder, "What was wrong with the car?", Filter("a", session_ids=("kitchen",))).hits
    assert {hit.session_id for hit in hits} <= {"kitchen"}
    assert ask(spoken, embedder, "What was wrong with the car?", Filter("b")).hits == []


def test_what_is_loaded_from_the_tables_ranks_as_what_was_applied(
    spoken: tuple[Store, IndexSet], embedder: Embedder, tmp_path: Path
) -> None:
    anew = spoken[0].open(tmp_path / "anew", MINILM)
    assert ranks((spoken[0], anew), embedder) == ranks(spoken, embedder)
    anew.close(save=False)


def test_what_a_connection_wrote_ranks_as_a_session_would_and_not_as_what_stands_alone(
    spoken: tuple[Store, IndexSet], embedder: Embedder, tmp_path: Path
) -> None:
    in_sessions = ranks(spoken, embedder)
    spoken[0].connection.execute("UPDATE documents SET connection = session_id, session_id = NULL")
    over_connections = spoken[0].open(tmp_path / "connections", MINILM)
    assert ranks((spoken[0], over_connections), embedder) == in_sessions
    spoken[0].connection.execute("UPDATE documents SET connection = NULL")
    alone = spoken[0].open(tmp_path / "alone", MINILM)
    assert ranks((spoken[0], alone), embedder) != in_sessions
    over_connections.close(save=False)
    alone.close(save=False)
