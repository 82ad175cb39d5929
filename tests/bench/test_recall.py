"""The recall bench: its bundled sets hold together, foreign formats are read, and a run reports every way of
searching."""

from pathlib import Path

import orjson
import pytest

from processors.embedding.hashing import HashingEmbedder
from streams.errors import Refused
from thalweg.bench.recall import measure_recall, score
from thalweg.bench.recall_sets import read_set

LOCOMO = {
    "conversation": {
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "the river bends"},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "so it does"},
        ],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "a lake now", "blip_caption": "a photo of a lake"}],
        "session_2_date_time": "unknown",
    },
    "qa": [
        {"question": "What bends?", "category": 4, "evidence": ["D1:01; D2:1"]},
        {"question": "nothing?", "category": 1, "evidence": ["D"]},
    ],
}
LONG_MEM_EVAL = [
    {
        "question": "What bends?",
        "question_type": "single-session-user",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 02:21"],
        "haystack_session_ids": ["answer_1", "other"],
        "haystack_sessions": [
            [{"role": "user", "content": "the river bends", "has_answer": True}],
            [{"role": "user", "content": "hello"}],
        ],
        "answer_session_ids": ["answer_1"],
    }
]


@pytest.mark.parametrize("name", ["messages", "notes"])
def test_the_bundled_sets_are_the_same_each_time_and_their_gold_exists(name: str) -> None:
    [conversation] = read_set(name)
    assert [conversation] == list(read_set(name))
    known = {turn.turn_id for turn in conversation.turns}
    assert len(known) == len(conversation.turns) > 90
    assert len(conversation.questions) == 108
    assert all(question.turns and question.turns <= known for question in conversation.questions)


def test_the_two_public_formats_are_read(tmp_path: Path) -> None:
    (tmp_path / "locomo.json").write_bytes(orjson.dumps([LOCOMO]))
    (tmp_path / "long.json").write_bytes(orjson.dumps(LONG_MEM_EVAL))
    first, second = read_set(str(tmp_path))
    assert [turn.text for turn in first.turns] == [
        "Ann: the river bends",
        "Bo: so it does",
        "Ann: a lake now a photo of a lake",
    ]
    assert first.turns[0].at.isoformat() == "2023-05-08T13:56:00+00:00"
    [question] = first.questions
    assert (question.kind, question.turns, question.sessions) == ("single-hop", {"D1:1", "D2:1"}, {"D1", "D2"})
    assert (second.questions[0].turns, second.questions[0].sessions) == ({"0:0"}, {"0/answer_1"})


CHAT = {
    "messages": [
        {"id": 1, "role": "user", "content": "The river bends at the mill.", "session": "a"},
        {"id": 2, "role": "assistant", "content": "So it does.", "session": "a", "time": "2026-03-01T10:00:00+02:00"},
        {"id": 3, "role": "user", "content": "The lake froze in March."},
    ],
    "questions": [
        {"question": "Where does the river bend?", "messages": [1, 9]},
        {"question": "When did the lake freeze?", "kind": "when", "messages": [3]},
        {"question": "Who built the mill?", "messages": []},
    ],
}


def test_chats_of_ones_own_are_read_with_role_session_and_time(tmp_path: Path) -> None:
    (tmp_path / "chat.json").write_bytes(orjson.dumps(CHAT))
    [chat] = read_set(str(tmp_path))
    assert [turn.text for turn in chat.turns][1:] == ["assistant: So it does.", "user: The lake froze in March."]
    assert [turn.session for turn in chat.turns] == ["a", "a", None]
    assert chat.turns[1].at.isoformat() == "2026-03-01T10:00:00+02:00"
    river, lake = chat.questions
    assert (river.kind, river.turns, river.sessions) == ("other", {"1"}, {"a"})
    assert (lake.kind, lake.turns, lake.sessions) == ("when", {"3"}, frozenset())


def test_what_is_no_data_set_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="neither a file"):
        list(read_set(str(tmp_path / "nothing")))
    (tmp_path / "bad.json").write_text('{"a": 1}')
    with pytest.raises(Refused, match="is not a data set of LoCoMo"):
        list(read_set(str(tmp_path)))


def test_recall_is_a_share_of_the_gold_and_the_rank_is_of_the_first() -> None:
    ranked = [f"r{number}" for number in range(1, 11)]
    assert score(ranked, frozenset({"r2", "r7", "away"})) == pytest.approx((1 / 3, 2 / 3, 1 / 2))


def test_a_run_reports_every_way_of_searching_by_kind_of_question(tmp_path: Path) -> None:
    (tmp_path / "locomo.json").write_bytes(orjson.dumps([LOCOMO]))
    figures = measure_recall(str(tmp_path), HashingEmbedder(), "hashing").figures
    for way in ("thalweg", "bm25", "dense"):
        assert {f"{way}_turn_all_r10", f"{way}_session_single-hop_r5", f"{way}_turn_all_mrr"} <= set(figures)
    assert figures["bm25_turn_all_r10"].value == 50.0
    assert figures["questions"].value == 1
    assert figures["query_p95_ms"].target is not None


@pytest.mark.parametrize(("embedded", "vectors"), [(0.0, 0), (0.5, 1), (1.0, 3)])
def test_recall_can_be_measured_while_texts_have_no_vectors_yet(tmp_path: Path, embedded: float, vectors: int) -> None:
    (tmp_path / "locomo.json").write_bytes(orjson.dumps([LOCOMO]))
    embedder = HashingEmbedder()
    asked: list[str] = []
    # type: ignore[method-assign]
    embedder.encode = lambda texts: (asked.extend(texts), HashingEmbedder().encode(texts))[1]
    report = measure_recall(str(tmp_path), embedder, "hashing", embedded=embedded)
    assert len([text for text in asked if text != "What bends?"]) == vectors
    assert report.figures["thalweg_turn_all_r10"].value >= report.figures["bm25_turn_all_r10"].value == 50.0
