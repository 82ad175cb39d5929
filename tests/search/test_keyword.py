"""The keyword index: whatever is stored is found, at once and after the commit, by its own words only."""

import random
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.search.files.sealed import MANIFEST
from storage.search.records.selection import Selection
from storage.search.words import keyword_index as keyword
from storage.search.words import posting_lists
from storage.search.words.analyzer import document_terms, query_terms
from storage.search.words.keyword_index import KeywordIndex
from storage.search.words.shard import shard_name
from storage.search.words.tantivy_schema import WORDS
from tests.examples import examples

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60).filter(str.strip)


@pytest.fixture
def index(tmp_path: Path) -> KeywordIndex:
    return KeywordIndex(tmp_path / "keywords")


def labels(found: list[tuple[int, float]]) -> list[int]:
    return [label for label, _ in found]


def test_a_document_is_found_before_and_after_the_commit(index: KeywordIndex) -> None:
    index.add([(1, "a", "The river carves its thalweg")])
    assert labels(index.search("thalweg", "a", 5)) == [1]
    assert index.commit() == 1
    assert index.waiting == 0
    assert labels(index.search("thalweg", "a", 5)) == [1]


@pytest.mark.parametrize("committed", [False, True])
def test_words_are_found_as_they_are_spelled_without_any_languages_rules(index: KeywordIndex, committed: bool) -> None:
    index.add([(1, "a", "The connections"), (2, "a", "the Connection"), (3, "a", "Straße zum Café")])
    if committed:
        index.commit()
    for query, found in (
        ("CONNECTION", [2]),
        ("connections", [1]),
        ("the", [1, 2]),
        ("STRASSE", [3]),
        ("café", [3]),
        ("cafe", []),
    ):
        assert labels(index.search(query, "a", 5, field=WORDS)) == found, query
    assert sorted(labels(index.search("connection", "a", 5))) == [1, 2]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Running quickly", "run"),
        ("the cafés of Orléans", "CAFE orleans"),
        ("東京タワーへ行く", "東京"),
        ("東京タワーへ行く", "タワー"),
        ("東京タワーへ行く", "塔 行"),
        ("สวัสดีครับ", "สวัสดี"),
        ("हिन्दी भाषा", "हिन्दी"),
        ("Straße", "STRASSE"),
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
        ("в начале было слово", "Слово"),
        ("مرحبا بالعالم", "مرحبا"),
        ("ﬁle ｆｕｌｌｗｉｄｔｈ", "file fullwidth"),
        ("call read_file_now()", "file"),
        ("only 🙂", "only"),
        ("🙂🙂", "🙂"),
        ("한국어 문장", "한국어"),
    ],
)
def test_words_are_found_in_any_script_and_form(index: KeywordIndex, text: str, query: str) -> None:
    index.add([(1, "a", text)])
    assert labels(index.search(query, "a", 5)) == [1]
    index.commit()
    assert labels(index.search(query, "a", 5)) == [1]


@settings(deadline=None)
@given(texts)
def test_the_terms_of_a_text_include_what_asking_for_it_looks_for(text: str) -> None:
    assert query_terms(text)
    assert set(query_terms(text)) <= set(document_terms(text))


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=5), st.data())
def test_each_word_of_a_text_finds_it(words: list[str], data: st.DataObject) -> None:
    text = " ".join(words)
    word = data.draw(st.sampled_from([word for word in text.split()]))
    if any(character.isalnum() for character in word):
        assert set(query_terms(word)) & set(document_terms(text))


@settings(max_examples=examples(5, 25), deadline=None)
@given(st.lists(texts, min_size=1, max_size=8))
def test_whatever_is_stored_is_found_by_its_own_text(
    tmp_path_factory: pytest.TempPathFactory, stored: list[str]
) -> None:
    index = KeywordIndex(tmp_path_factory.mktemp("keywords"))
    index.add([(number, "a", text) for number, text in enumerate(stored)])
    for _ in range(2):
        for number, text in enumerate(stored):
            assert number in labels(index.search(text, "a", len(stored)))
        index.commit()
    index.close()


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "text:river",
        "a AND",
        "river OR (",
        "[a TO z]",
        "river^9",
        "~",
        "-river",
        "*",
        "\\",
        "namespace:b river",
        "/r.*/",
    ],
)
def test_no_text_is_query_syntax(index: KeywordIndex, query: str) -> None:
    index.add([(1, "a", "river bank"), (2, "b", "river bed")])
    index.commit()
    assert 2 not in labels(index.search(query, "a", 5))
    if "river" in query:
        assert labels(index.search(query, "a", 5)) == [1]


def test_matches_never_leave_the_namespace(index: KeywordIndex) -> None:
    index.add([(1, "a", "river"), (2, "b", "river")])
    assert labels(index.search("river", "b", 5)) == [2]
    index.commit()
    assert labels(index.search("river", "b", 5)) == [2]


def test_a_filter_of_any_selectivity_loses_nothing(index: KeywordIndex) -> None:
    index.add([(number, "a", "river " + "and other words " * (number % 97)) for number in range(3000)])
    index.commit()
    ranked = labels(index.search("river", "a", 3000))
    for allowed_count in (0, 1, 50, 1500, 2900):
        worst = ranked[3000 - allowed_count :]  # so that filtering what was found first would find none
        found = index.search("river", "a", 20, np.sort(np.array(worst, np.int64)))
        assert len(found) == min(20, allowed_count)
        assert set(labels(found)) <= set(worst)


def test_the_overlay_scores_as_the_index_does(index: KeywordIndex) -> None:
    documents = [
        (number, "a", f"river w{number % 7} w{number % 5} w{number % 3} " * (1 + number % 4)) for number in range(200)
    ]
    index.add(documents)
    before = dict(index.search("river w1 w2", "a", 200))
    index.commit()
    after = dict(index.search("river w1 w2", "a", 200))
    assert before.keys() == after.keys()
    assert all(before[label] == pytest.approx(after[label], rel=0.1) for label in after)


def test_a_rarer_word_counts_more(index: KeywordIndex) -> None:
    index.add([(1, "a", "common rare"), *((number, "a", "common thing") for number in range(2, 30))])
    assert labels(index.search("common rare", "a", 3))[0] == 1
    index.commit()
    assert labels(index.search("common rare", "a", 3))[0] == 1


def test_a_label_keeps_its_first_text(index: KeywordIndex) -> None:
    index.add([(1, "a", "first")])
    index.add([(1, "a", "second")])
    index.commit()
    index.add([(1, "a", "third")])
    index.commit()
    assert len(index) == 1
    assert labels(index.search("first", "a", 5)) == [1]
    assert index.search("second third", "a", 5) == []


def test_removed_labels_are_not_found_and_may_come_back(index: KeywordIndex) -> None:
    index.add([(1, "a", "river"), (2, "a", "river")])
    index.commit()
    index.add([(3, "a", "river")])
    index.remove([1, 3, 99])
    assert labels(index.search("river", "a", 5)) == [2]
    assert index.labels().tolist() == [2]
    index.add([(1, "a", "river")])
    index.commit()
    assert sorted(labels(index.search("river", "a", 5))) == [1, 2]


def test_a_document_is_findable_at_every_moment_of_a_commit(index: KeywordIndex) -> None:
    index.add([(number, "a", "river") for number in range(50)])
    done, missed = threading.Event(), []

    def search() -> None:
        while not done.is_set():
            count = len(index.search("river", "a", 1000))
            if count < 50:
                missed.append(count)

    searcher = threading.Thread(target=search)
    searcher.start()
    for start in range(50, 350, 50):
        index.add([(number, "a", "river") for number in range(start, start + 50)])
        index.commit()
    done.set()
    searcher.join(30)
    assert not searcher.is_alive() and not missed
    assert index.labels().tolist() == list(range(350))


def test_a_saved_index_is_loaded_with_everything_in_it(index: KeywordIndex, tmp_path: Path) -> None:
    for start in range(0, 300, 20):  # several segments, some of them merged
        index.add([(number, "a", f"river {number}") for number in range(start, start + 20)])
        index.commit()
    index.save({"t/0": 300})
    index.add([(999, "a", "after the snapshot")])
    index.commit()
    index.close()
    loaded = KeywordIndex.load(tmp_path / "keywords")
    assert loaded is not None
    assert loaded.labels().tolist() == list(range(300))
    assert labels(loaded.search("river 17", "a", 1)) == [17]
    loaded.add([(1000, "a", "goes on")])
    loaded.save({})
    assert len(loaded) == 301


def test_which_documents_hold_a_word_is_remembered_and_stays_true(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is added, committed and removed in between, and however little is remembered."""
    monkeypatch.setattr(posting_lists, "MAX_NUMBERS", 12)
    monkeypatch.setattr(keyword, "FREQUENT", 5)
    index, chance = KeywordIndex(tmp_path), random.Random(4)
    words, there, members = (
        ["river", "bends", "oak", "falls", "stone"],
        dict[int, set[str]](),
        Selection(np.arange(0, 120, 2)),
    )
    for number in range(120):
        held = set(chance.sample(words, 2))
        there[number] = held
        index.add([(number, "default", " ".join(held))])
        if number % 7 == 0:
            index.commit()
            index.cache_frequent(lambda: True, lambda: False, lambda: None)
        if number % 31 == 30:
            gone = chance.sample(sorted(there), 3)
            index.remove(gone)
            there = {label: held for label, held in there.items() if label not in gone}
        if number % 10 == 9:  # the members grow too
            members = members.joined(np.searchsorted(members.labels, [number]), np.array([number]))
        asked = set(chance.sample(words, 2))
        expected = [bool(there.get(label, set()) & asked) for label in members.labels.tolist()]
        assert index.contained_in(" ".join(asked), "default", members).tolist() == expected
    index.close()


def test_a_save_writes_only_the_files_of_namespaces_that_have_changed(index: KeywordIndex, tmp_path: Path) -> None:
    """Each file is linked or copied once, and synced then: fifty namespaces cost what the one that changed costs."""

    def sealed() -> dict[str, set[tuple[str, int]]]:
        paths = [path for path in (tmp_path / "keywords").iterdir() if path.is_file() and path.name != MANIFEST]
        return {name: {(p.name, p.stat().st_ino) for p in paths if shard_name(name) in p.name} for name in "ab"}

    index.add([(1, "a", "river"), (2, "b", "delta")])
    index.save({"t/0": 1})
    first = sealed()
    index.add([(3, "a", "river bed")])
    index.save({"t/0": 2})
    second = sealed()
    assert second["b"] == first["b"] and second["a"] != first["a"]
    index.close()
    loaded = KeywordIndex.load(tmp_path / "keywords")
    assert loaded is not None and labels(loaded.search("river", "a", 5)) == [1, 3]
    assert labels(loaded.search("delta", "b", 5)) == [2]
    loaded.save({"t/0": 3})
    assert sealed()["b"] == first["b"], "also after a restart"
    loaded.close()


def test_a_file_that_went_missing_is_written_again_by_the_next_save(index: KeywordIndex, tmp_path: Path) -> None:
    index.add([(1, "a", "river")])
    index.save({"t/0": 1})
    for path in (tmp_path / "keywords").glob("*-*"):
        path.unlink()
    index.save({"t/0": 2})
    index.close()
    loaded = KeywordIndex.load(tmp_path / "keywords")
    assert loaded is not None and labels(loaded.search("river", "a", 5)) == [1]
    loaded.close()


def test_a_namespace_that_comes_and_goes_is_kept_apart_from_the_other(index: KeywordIndex) -> None:
    index.build([(number, "a", f"the river {number}") for number in range(5)])
    assert sorted(labels(index.search("river", "a", 9))) == [0, 1, 2, 3, 4] and index.search("river", "b", 9) == []
    index.add([(7, "b", "a river")])
    index.commit()
    assert sorted(labels(index.search("river", "a", 9))) == [0, 1, 2, 3, 4] and labels(
        index.search("river", "b", 9)
    ) == [7]
    index.remove([7])
    assert sorted(labels(index.search("river", "a", 9))) == [0, 1, 2, 3, 4] and index.search("river", "b", 9) == []
