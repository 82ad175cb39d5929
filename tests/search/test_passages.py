"""Long texts are cut so that nothing is left out, and are found by any of their parts, with the place named."""

import re
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.memory.stages.embed import encode_texts
from processors.memory.vector_facts import decode_vector
from storage.search.entries import PassageOf, VectorEntry
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.records.passages import (
    EMBEDDED_PASSAGES,
    REST_CHARS,
    WINDOW,
    Passage,
    PassageIndex,
    passage_label,
    split_passages,
)
from storage.search.search import search
from storage.vector_codec import stored_vector
from tests.search.store import EMBEDDER, MODEL, Store, label_of

WORDS = st.sampled_from(["river", "bends", "a", "Donaudampfschifffahrt", "naïve", "東京都", "x_y", "—", "!", "42"])
TEXTS = st.lists(WORDS, min_size=1, max_size=900).map(" ".join)


@given(TEXTS)
def test_passages_cover_every_word_in_order_overlap_and_are_the_same_each_time(text: str) -> None:
    passages = split_passages(text)
    assert passages == split_passages(text)
    if not passages:
        return
    assert len(passages) > 1
    assert [passage.number for passage in passages] == list(range(len(passages)))
    covered: set[int] = set()
    for passage in passages:
        covered.update(range(passage.start, passage.end))
        assert 0 <= passage.start < passage.end <= len(text)
    assert all(index in covered for index, character in enumerate(text) if not character.isspace())
    for first, second in pairwise(passages):
        assert first.start < second.start < first.end < second.end


def test_the_passages_of_a_text_stand_in_its_order_whatever_comes_first() -> None:
    index = PassageIndex()
    for number in (2, 0, 1, 0):
        index.add(1, [Passage(number, number, number + 2)])
    assert index.parts(1) == tuple(passage_label(1, number) for number in range(3))


@given(st.text(alphabet="abc \n", max_size=WINDOW))
def test_what_cannot_be_longer_than_a_window_is_never_cut(text: str) -> None:
    assert split_passages(text) == []


@pytest.mark.parametrize("character", ["x", "京", "🦫"])
def test_a_word_longer_than_a_window_is_cut_into_passages_that_overlap(character: str) -> None:
    text = f"begin {character * (WINDOW * 20)} end"
    passages = split_passages(text)
    assert (passages[0].start, passages[-1].end) == (0, len(text))
    assert all(first.start < second.start < first.end for first, second in pairwise(passages))
    assert max(passage.end - passage.start for passage in passages) <= WINDOW * 7


@pytest.mark.parametrize(
    "unit", ["the river bends. ", "河水弯曲", "x", "🦫", '{"a": [1, 2]}, ', "if x:\n    return y_z\n"]
)
def test_of_a_book_the_first_passages_are_windows_and_the_rest_covers_every_word(unit: str) -> None:
    text = unit * (3 * 2**20 // len(unit.encode()))
    passages = split_passages(text)
    assert len(passages) > EMBEDDED_PASSAGES
    assert passages == split_passages(text)
    assert [passage.number for passage in passages] == list(range(len(passages)))
    assert (passages[0].start, passages[-1].end) == (0, len(text.rstrip()))
    assert all(first.start < second.start < first.end < second.end for first, second in pairwise(passages))
    assert max(passage.end - passage.start for passage in passages[EMBEDDED_PASSAGES:]) <= REST_CHARS + 100
    words = {match.span() for match in re.finditer(r"\w+", text[-100_000:]) if match.end() - match.start() < 100}
    starts = [passage.start for passage in passages]
    for start, end in words:  # each whole in some passage
        at = len(text) - 100_000 + start
        last = bisect_right(starts, at) - 1
        assert any(passages[number].end >= at + end - start for number in (last - 1, last)), text[at : at + end - start]


def test_allowed_documents_bring_their_passages_and_no_others() -> None:
    index = PassageIndex()
    text = "river " * 600
    index.add(7, split_passages(text))
    index.add(9, split_passages(text))
    widened = index.with_passages(np.array([3, 7], np.int64))
    assert widened is not None
    assert set(widened.tolist()) == {3, 7, *index.parts(7)}
    assert index.owner(index.parts(9)[1]) == 9
    assert sorted(index.remove([9])) == sorted(passage_label(9, passage.number) for passage in split_passages(text))
    assert len(index) == len(index.parts(7))


FILLER = "The committee discussed the minutes of the former meeting and adjourned until the following week. "


def write_long(store: Store, indexes: IndexSet, record_id: str, text: str) -> None:
    """As the stage and the materialiser do it."""
    made = encode_texts(EMBEDDER, [text])[text]
    label = store.write(record_id, text, vector=decode_vector(made["vector"]), to=indexes)
    entries = []
    for passage in made["first"]:
        vector, number = decode_vector(passage["vector"]), passage_label(label, passage["passage"]["number"])
        place = PassageOf(label, *passage["passage"].values())
        store.connection.execute(
            "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, 'a', 't', 0, 0, '')",
            [
                number,
                MODEL.space,
                label,
                record_id,
                place.number,
                place.start,
                place.end,
                MODEL.model_id,
                len(vector),
                stored_vector(vector),
            ],
        )
        entries.append(VectorEntry(number, vector, MODEL.space, MODEL.model_id, None, place))
    indexes.apply([], entries, store.positions)


def test_a_long_text_is_found_by_what_stands_at_its_end_and_the_hit_says_where(tmp_path: Path) -> None:
    store = Store()
    indexes = store.open(tmp_path)
    text = FILLER * 40 + "The heron ate every frog in the pond. " + FILLER
    write_long(store, indexes, "long", text)
    store.write("short", "frogs are green", to=indexes)
    question = "heron frog pond"
    for reopened in (indexes, store.open(tmp_path / "anew")):
        query = Query(question, EMBEDDER.encode([question])[0], Filter("a"), 5, min_cosine=0.0)
        found = search(store.connection.cursor(), reopened, query)
        [hit] = [hit for hit in found.hits if hit.record_id == "long"]
        assert hit.passage is not None
        assert "heron" in text[hit.passage.start : hit.passage.end]
        assert set(hit.sides) == {"vector", "keyword"}
        keywords, vectors = reopened.labels()
        assert keywords.tolist() == vectors.tolist() == sorted([label_of("long"), label_of("short")])


def test_a_removed_long_text_is_found_by_none_of_its_parts(tmp_path: Path) -> None:
    store = Store()
    indexes = store.open(tmp_path)
    write_long(store, indexes, "long", FILLER * 40 + "The heron ate every frog in the pond. ")
    indexes.remove([label_of("long")])
    cursor = store.connection.cursor()
    assert indexes.space().nearest(EMBEDDER.encode(["heron frog pond"])[0], 5).matches == []
    everything = indexes.records.allowed(cursor, Filter("a"))
    assert indexes.words.search(cursor, "heron committee", everything, 5).matches == []
    assert len(indexes.records.passages) == 0


def test_vectors_of_another_model_never_enter_though_they_are_as_long(tmp_path: Path) -> None:
    store = Store()
    indexes = store.open(tmp_path)
    label = store.write("r1", "the river bends")
    vector = EMBEDDER.encode(["the river bends"])[0]
    indexes.apply([(label, "a", "the river bends")], [VectorEntry(label, vector, "text/other", "other")])
    assert indexes.space().nearest(vector, 5).matches == []
    indexes.apply([], [VectorEntry(label, vector, MODEL.space, MODEL.model_id)])
    assert [found for found, _ in indexes.space().nearest(vector, 5).matches] == [label]
