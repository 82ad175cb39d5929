"""A question says whose words it asks for and what the answer is to look like; its matter alone is looked for."""

from pathlib import Path

import numpy as np
import pytest

from processors.embedding.hashing import HashingEmbedder
from processors.embedding.model import encode_query
from storage.search.entries import DocumentEntry
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.question import asks_about_user, matter_of
from storage.search.ranking.weights import Evidence, score_parts, totals
from storage.search.records.filter import Filter
from storage.search.records.speakers import is_by_user
from storage.search.search import search
from tests.search.store import START, Store, label_of


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("When does my first sprint end?", True),
        ("Which database did we choose?", True),
        ("What did the user say about tabs?", True),
        ("How did you recommend that I structure the work?", False),
        ("What have you told me of Kafka?", False),
        ("Can you list what I ordered?", True),
        ("Where did Caroline go?", False),
        ("Which mystery did the ISS solve?", False),
    ],
)
def test_a_question_asks_for_the_user_by_the_first_person_unless_it_asks_what_the_agent_said(
    question: str, asks: bool
) -> None:
    assert asks_about_user(question) is asks


@pytest.mark.parametrize(
    ("question", "matter"),
    [
        (
            "Can you list the order in which I brought up different aspects of the parser throughout our chats, "
            "in order? Mention ONLY and ONLY five items.",
            "the parser ? .",
        ),
        ("Could you please give me a clear and full summary of how the parser grew?", "how the parser grew?"),
        ("Walk me through the order that we discussed the releases", "the releases"),
        ("Tell me about our conversations on tides", "about our conversations on tides"),
        ("Summarize our discussions", "our discussions"),
        ("Can you list the order in which I mentioned", "Can you list the order in which I mentioned"),
        (
            "What did we say in our sessions of the parser, in order?",
            "What did we say in our sessions of the parser, in order?",
        ),
        ("What is needed in order to release?", "What is needed in order to release?"),
        ("", ""),
    ],
)
def test_of_a_wish_the_matter_is_looked_for_and_not_the_form_of_the_answer(question: str, matter: str) -> None:
    assert matter_of(question) == matter


def test_words_vector_and_tokens_are_of_the_matter() -> None:
    wish, matter = "Can you list all parts of the parser?", "the parser?"
    asked: list[str] = []
    embedder = HashingEmbedder()
    # type: ignore[method-assign]
    embedder.encode = lambda texts: (asked.extend(texts), HashingEmbedder().encode(texts))[1]
    encode_query(embedder, wish)
    assert asked == [matter] == [Query(wish, None, Filter("a"), 5).matter]


@pytest.mark.parametrize(
    ("text", "role", "by_user"),
    [
        ("user: I use tabs.", None, True),
        ("  Human : I use tabs.", None, True),
        ("Users: 40 of them.", None, False),
        ("assistant: You use tabs.", None, False),
        ("I use tabs.", "user", True),
        ("I use tabs.", " User ", True),
        ("user: so it said", "assistant", False),
        ("I use tabs.", None, False),
    ],
)
def test_a_role_says_whose_words_they_are_and_without_one_the_label_of_the_text(
    text: str, role: str | None, by_user: bool
) -> None:
    assert is_by_user(text, role) is by_user


def test_what_is_by_user_counts_half_as_much_again_and_never_more_than_one() -> None:
    evidence = Evidence(3, keyword=np.zeros(3), is_by_user=np.array([True, True, False]))
    evidence.vector, evidence.background = np.array([0.0, 9.0, 0.0]), (0.0, 0.01)
    parts = score_parts(evidence, np.array([0.4, 1.0, 0.4]))
    assert totals(parts) == pytest.approx([0.3, 1.0, 0.2])
    assert np.isnan(parts["speaker"][2])


def test_a_request_of_the_user_loses_half_of_what_another_question_loses() -> None:
    evidence = Evidence(2, asking=np.ones(2), is_by_user=np.array([True, False]))
    parts = score_parts(evidence, np.full(2, 0.4))
    assert parts["asking"] == pytest.approx([-0.015, -0.03])
    assert totals(parts) == pytest.approx([1.5 * (0.2 - 0.015), 0.2 - 0.03])


def _applied(store: Store, indexes: IndexSet, record_id: str, text: str) -> None:
    store.write(record_id, text, session_id="s", created_at=START)
    indexes.apply([DocumentEntry(label_of(record_id), "a", text, "s", START)], [], store.positions)


def test_the_users_message_stands_before_the_answer_that_repeats_it_also_after_a_rebuild(tmp_path: Path) -> None:
    store = Store()
    indexes = store.open(tmp_path / "first", None)
    _applied(store, indexes, "answer", "assistant: Tabs for indentation, tabs for alignment, tabs everywhere.")
    _applied(store, indexes, "said", "user: For indentation choose tabs, as I said to all of the others before.")

    def first(question: str, searched: IndexSet) -> list[str]:
        query = Query(question, None, Filter("a"), 5)
        return [hit.record_id for hit in search(store.connection.cursor(), searched, query).hits]

    anew = store.open(tmp_path / "second", None)
    for searched in (indexes, anew):
        assert first("tabs for indentation", searched) == ["answer", "said"]
        assert first("Do I choose tabs for indentation?", searched) == ["said", "answer"]
    indexes.remove([label_of("said")])
    assert not indexes.records.user_records.among(np.array([label_of("said")])).any()
