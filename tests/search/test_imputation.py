"""What is not embedded yet stands among what is where its words put it: words alone at first, every vector at last."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.embedding.loader import MINILM, load_embedder
from processors.embedding.model import Embedder, encode_query
from processors.memory.stages.embed import encode_texts
from processors.memory.vector_facts import decode_vector
from storage.search.entries import DocumentEntry, VectorEntry
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.ranking.fusion import imputed_order
from storage.search.ranking.weights import Evidence, imputed_scores, keyword_scores, score_parts, totals
from storage.search.records.filter import Filter
from storage.search.records.timeline import Neighbours
from storage.search.search import search
from tests.search.store import EMBEDDER, START, Store, label_of

shares = st.integers(0, 6).map(lambda tenths: tenths / 10)
texts = st.lists(st.tuples(shares, st.floats(0.01, 1), st.booleans()), min_size=1, max_size=12)


@given(texts)
def test_embedded_texts_keep_their_order_the_others_that_of_the_words_and_each_stands_behind_as_many_as_by_words(
    drawn: list[tuple[float, float, bool]],
) -> None:
    """With each text that is embedded, more pairs are ordered by everything, fewer by words, and no pair otherwise."""
    said, scores, is_embedded = (np.array(column) for column in zip(*drawn, strict=True))
    found = imputed_scores(said, scores, is_embedded)
    assert found[is_embedded].tolist() == scores[is_embedded].tolist()
    for one in np.flatnonzero(~is_embedded & (said > 0)):
        ahead = int(np.sum(said[is_embedded] > said[one]))
        assert np.sum(found[is_embedded] > found[one]) <= ahead
        if found[one] > said[one]:  # else its words alone say more than its place
            assert np.sum(found[is_embedded] >= found[one]) >= ahead
        for other in np.flatnonzero(~is_embedded):
            if said[one] > said[other]:
                assert found[one] > found[other] or found[one] == pytest.approx(found[other], abs=1e-12)
            elif said[one] == said[other]:
                assert found[one] == found[other]


def test_with_no_vector_at_all_words_and_dates_rank_and_a_question_loses_nothing() -> None:
    evidence = Evidence(3, keyword=np.array([0.2, 0.6, 0.0]), dates=np.array([1.0, 0.0, 0.0]), asking=np.ones(3))
    parts = score_parts(evidence, np.full(3, np.nan))
    assert totals(parts) == pytest.approx([0.03 + 0.1, 0.09, 0.0])
    assert np.isnan(parts["asking"]).all()


def test_a_text_without_a_vector_stands_where_its_words_put_it_and_the_parts_still_add_up() -> None:
    evidence = Evidence(4, keyword=np.array([0.9, 0.6, 0.3, 0.5]), vector=np.array([0.2, 0.9, 0.5, np.nan]))
    late = np.array([0.3, 0.8, 0.5, np.nan])
    parts = score_parts(evidence, late)
    scores = totals(parts)
    assert np.argsort(-scores).tolist() == [1, 2, 3, 0] or np.argsort(-scores).tolist() == [1, 3, 2, 0]
    ranked = np.sort(scores[:3])[::-1]
    assert ranked[1] > scores[3] > ranked[2], "two embedded texts say more of its words"
    assert parts["imputed"][3] == pytest.approx(scores[3] - parts["keyword"][3])
    assert np.isnan(parts["imputed"][:3]).all()


def test_a_record_has_its_own_words_and_a_share_of_those_of_its_best_neighbour() -> None:
    near = Neighbours(np.array([0, 0, 1, 2]), np.array([1, 2, 0, 0]), np.array([1, 2, 1, 2]))
    assert keyword_scores(Evidence(3, keyword=np.array([0.5, 0.1, 0.9]), neighbours=near)) == pytest.approx(
        [0.905, 0.4, 1.0]
    )


def test_on_the_vector_side_of_a_fusion_of_ranks_it_has_the_place_that_its_words_give_it() -> None:
    assert imputed_order([1, 2, 3], [9, 2, 8, 3, 7], {1, 2, 3}) == [9, 1, 8, 2, 7, 3]
    assert imputed_order([1], [5, 6, 7, 9, 8], {1, 5, 6, 7}) == [1], "more embedded texts say it than meaning has found"
    assert imputed_order([], [], set()) == []


def test_a_fusion_of_ranks_does_not_put_what_is_not_embedded_yet_behind_all_that_is(tmp_path: Path) -> None:
    store = Store()
    indexes = store.open(tmp_path)
    for number in range(30):
        store.write(f"r{number}", f"river bend {number} of the long water", to=indexes)
    newest = label_of("newest")
    store.connection.execute(
        "INSERT INTO documents VALUES (?, 'newest', 'talos', 'Insight', NULL, NULL, 'heron', ?, 'a', "
        "'thalweg.memory.v1', 0, 99, 'e99', NULL)",
        [newest, START],
    )
    indexes.apply([(newest, "a", "heron")], [], store.positions)
    asked = "river heron"
    found = search(store.connection.cursor(), indexes, Query(asked, EMBEDDER.encode([asked])[0], Filter("a"), 5))
    assert found.hits[0].record_id == "newest"
    assert "vector" not in found.hits[0].sides, "its cosine is not known"
    assert sum(found.hits[0].parts.values()) == pytest.approx(found.hits[0].score)
    assert indexes.space().embedded([newest, label_of("r3")]) == {label_of("r3")}
    indexes.close(save=False)


SAID = [
    "The alternator was replaced on Thursday for three hundred and ten.",
    "The car would not start again this morning, so I took the tram.",
    "A risotto with porcini, and the lemon tart that my sister taught me.",
    "I booked the flat in Lisbon for the second week of May.",
    "The neighbours come over for dinner on Saturday.",
    "There is room for your bicycle too, and a balcony over the river.",
]
ASKED = "Why did the automobile not start on Thursday morning?"


@pytest.fixture(scope="module")
def embedder(model_cache: Path) -> Iterator[Embedder]:
    loaded = load_embedder("minilm", cache_dir=model_cache)
    assert loaded is not None
    yield loaded


def test_as_embedding_proceeds_the_order_goes_from_that_of_the_words_to_that_of_everything(
    tmp_path: Path, embedder: Embedder
) -> None:
    made = encode_texts(embedder, SAID)
    vector, tokens = encode_query(embedder, ASKED)

    def order(embedded: int, text: str = ASKED) -> list[str]:
        store = Store()
        indexes: IndexSet = store.open(tmp_path / f"{embedded}", MINILM)
        for number, said in enumerate(SAID):
            label, moment = label_of(str(number)), START + timedelta(minutes=number)
            store.connection.execute(
                "INSERT INTO documents VALUES (?, ?, 't', 'k', NULL, NULL, ?, ?, 'a', 'm', 0, ?, 'e', NULL)",
                [label, str(number), said, moment, number],
            )
            numbers = made[said]
            entry = VectorEntry(
                label, decode_vector(numbers["vector"]), MINILM.space, MINILM.model_id, numbers["tokens"]
            )
            indexes.apply(
                [DocumentEntry(label, "a", said, None, moment)], [entry] if number < embedded else [], store.positions
            )
        query = Query(text, vector, Filter("a"), 6, tokens, min_cosine=-1.0)
        hits = search(store.connection.cursor(), indexes, query).hits
        indexes.close(save=False)
        return [hit.record_id for hit in hits]

    words, everything = order(0), order(len(SAID))
    assert words[:2] == ["1", "0"]
    assert set(words) < set(everything) == {str(number) for number in range(len(SAID))}
    for embedded in range(1, len(SAID)):
        some = order(embedded)
        seen = {str(number) for number in range(embedded)}
        assert [one for one in some if one in seen] == [one for one in everything if one in seen]
        assert [one for one in some if one in words and one not in seen] == [one for one in words if one not in seen]
        for one in set(words) - seen:
            assert len(seen.intersection(some[: some.index(one)])) == len(seen.intersection(words[: words.index(one)]))
