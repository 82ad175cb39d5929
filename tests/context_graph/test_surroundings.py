"""What stands around a memory: the text, the vector that a dream makes of it, and what a search makes of that."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mcp_ingress.door import Visitor
from mcp_ingress.toolsets.context_graph import search_graph
from processors.context_graph.read.surroundings import WIDE_POOL, is_repeated, widened
from processors.context_graph.rules.co_recall import FULL_RECALLS, asked_again
from processors.context_graph.rules.memories import query_vector_id
from processors.context_graph.rules.surroundings import BESIDE_PIECES, OWN_PIECES, surroundings_text
from processors.embedding.hashing import HashingEmbedder
from processors.embedding.model import encode_documents
from processors.memory.vector_facts import encode_vector
from storage.search.query import Query
from storage.search.ranking.weights import MOST_DEVIATIONS, SURROUNDINGS_SHARE, WHOLE, Evidence, score_parts, totals
from storage.search.records.filter import Filter
from storage.search.records.passages import is_long
from storage.search.records.surroundings import SurroundingsFollower
from storage.vector_codec import read_vector
from streams.event_types.context_surroundings import QUESTIONS_REPEATED, SURROUNDINGS_EMBEDDED
from streams.events import Event
from streams.ids import document_label
from streams.topics import DERIVED
from tests.context_graph.test_co_recall import recalls
from tests.context_graph.test_dreams import Sleeper
from tests.patience import SOON_S
from tests.processors.harness import Store, event

CHAT = ("Where shall we meet?", "At the old harbour.", "When does the tide turn?", "At nine.", "Then I bring bread.")


def test_the_text_of_surroundings_is_what_was_said_in_its_order() -> None:
    earlier, later = ["When does the tide turn?", "At the old harbour."], ["Then I bring bread."]
    expected = "At the old harbour.\nWhen does the tide turn?\nAt nine.\nThen I bring bread."
    assert surroundings_text("At nine.", earlier, later) == expected
    assert surroundings_text("At nine.", [], []) == "At nine."


def test_the_nearest_go_first_into_the_window_of_a_model_and_a_long_text_leaves_them_room() -> None:
    near, far = "near " * 30, "far " * 200
    text = surroundings_text("own " * 1000, [near, far], ["after " * 20])
    assert text.startswith(near) and "after" in text and "far" not in text
    assert text.count("own") <= OWN_PIECES and not is_long(text)
    wide = surroundings_text("own", ["字" * 1000, "字" * 1000], ["字" * 1000])
    assert BESIDE_PIECES // 2 < wide.count("字") <= 3 * BESIDE_PIECES and not is_long(wide), "as many as fit"


def test_a_question_is_asked_again_and_again_from_the_fifth_time_on() -> None:
    asked = [*recalls("ab", FULL_RECALLS, "often"), *recalls("ab", FULL_RECALLS - 1, "less"), *recalls("b", 9, "known")]
    assert asked_again(asked) == ["known", "often"]
    assert asked_again(reversed(asked), {"known"}) == ["often"], "what a dream has told already"


def evidence() -> Evidence:
    rows = np.array([[0.9, 0.4], [0.7, 0.5], [0.6, 0.2]])
    vector = np.array([0.5, 0.4, 0.3])
    return Evidence(3, rows=rows, is_read=np.ones(3, bool), weights=np.array([0.6, 0.4]), vector=vector)


def test_surroundings_add_what_they_stand_out_more_than_the_record_itself() -> None:
    late = np.array([0.7, 0.62, 0.44])
    before = score_parts(evidence(), late)
    bare = replace(evidence(), surroundings=np.full(3, np.nan))
    assert "surroundings" not in before and totals(score_parts(bare, late)).tolist() == totals(before).tolist()
    known = replace(evidence(), background=(0.2, 0.1), surroundings=np.array([0.3, 0.9, np.nan]))
    parts = score_parts(replace(known, among_surroundings=(0.3, 0.15)), late)
    more = 4 - 2  # standard deviations of the surroundings, and of the record
    assert parts["surroundings"][1] == pytest.approx(SURROUNDINGS_SHARE * more / WHOLE)
    assert np.isnan(parts["surroundings"][[0, 2]]).all(), "they stand out less, and no dream has made them"
    far = score_parts(replace(known, among_surroundings=(0.2, 0.001)), late)
    assert far["surroundings"][1] == pytest.approx(SURROUNDINGS_SHARE * (MOST_DEVIATIONS - 2) / WHOLE)


def embedded(memory_id: str, vector: np.ndarray, dream_id: str = "d", space: str = "s") -> Event:
    item = {"memory_id": memory_id, "vector": encode_vector(vector)}
    data = {"dream_id": dream_id, "space": space, "dim": len(vector), "surroundings": [item]}
    return event("context.surroundings.embedded", data, id=f"{dream_id}-{memory_id}-{space}-{vector[0]}")


def unit(*numbers: float) -> np.ndarray:
    vector = np.array(numbers, np.float32)
    return vector / np.linalg.norm(vector)


def test_the_first_vector_of_a_memory_in_a_space_stays_and_a_replay_decides_the_same() -> None:
    events = [
        embedded("a", unit(1, 0), "first"),
        embedded("a", unit(0, 1), "second"),
        embedded("a", unit(0, 1), "second", "another"),
        embedded("b", unit(1, 1), "second"),
        event("context.questions.repeated", {"dream_id": "first", "query_vector_ids": ["q", "p"]}, id="r1"),
        event("context.questions.repeated", {"dream_id": "second", "query_vector_ids": ["q", "o"]}, id="r2"),
    ]
    live, replayed = Store(), Store()
    for one in events:
        live.publish(one, topic=DERIVED.name)
    replayed.publish(*events, *events, topic=DERIVED.name)
    kept = "SELECT memory_id, space, vector, dream_id, label FROM context_surroundings ORDER BY 1, 2"
    rows = live.sql(kept)
    assert [(*row[:2], read_vector(row[2]).tolist(), row[3]) for row in rows] == [
        ("a", "another", unit(0, 1).tolist(), "second"),
        ("a", "s", unit(1, 0).tolist(), "first"),
        ("b", "s", unit(1, 1).tolist(), "second"),
    ]
    assert rows[0][4] == document_label("default", "a")
    asked = "SELECT query_vector_id, dream_id FROM context_repeated_questions ORDER BY 1"
    assert live.sql(asked) == [("o", "second"), ("p", "first"), ("q", "first")]
    assert (replayed.sql(kept), replayed.sql(asked)) == (rows, live.sql(asked))


@pytest.mark.parametrize("vector", [unit(1, 0, 0), np.array([np.nan, 1], np.float32)])
def test_what_is_not_a_vector_of_that_length_is_buried(vector: np.ndarray) -> None:
    store, wrong = Store(), embedded("a", vector)
    wrong = wrong.changed(data={**wrong.data, "dim": 2})
    assert len(store.publish(wrong, topic=DERIVED.name).buried) == 1
    assert store.sql("SELECT count(*) FROM context_surroundings") == [(0,)]


def test_the_vectors_in_memory_follow_the_table_space_by_space() -> None:
    store, follower = Store(), SurroundingsFollower()
    labels = np.sort([document_label("default", one) for one in "abc"])
    query, cursor = unit(1, 0.5, 0), store.database.cursor()
    known = {"a": unit(1, 0, 0), "b": unit(0.2, 1, 0.3)}
    for memory_id, vector in known.items():
        store.publish(embedded(memory_id, vector), topic=DERIVED.name)
        view = follower.view(cursor, "default")
    store.publish(embedded("a", unit(0, 0, 1, 0), "later", "wide"), topic=DERIVED.name)
    for view in (follower.view(cursor, "default"), SurroundingsFollower().view(cursor, "default")):
        cosines = dict(zip(labels.tolist(), view["s"].similarities(query, labels), strict=True))
        for memory_id, vector in known.items():
            assert cosines[document_label("default", memory_id)] == pytest.approx(float(vector @ query), abs=0.02)
        assert np.isnan(cosines[document_label("default", "c")]), "no dream has made it"
        assert np.isnan(view["wide"].similarities(query, labels)).all(), "the query is of another model"
    assert follower.view(cursor, "elsewhere") == {}


MADE = "SELECT memory_id, dream_id, vector FROM context_surroundings ORDER BY memory_id"


async def told_vectors(sleeper: Sleeper) -> list[str]:
    """The memories whose surroundings are on the log, in its order."""
    events = await sleeper.logged(SURROUNDINGS_EMBEDDED)
    return [one["memory_id"] for each in events for one in each.data["surroundings"]]


async def test_a_dream_makes_the_vector_of_each_memory_with_what_stands_around_it_once(sleeper: Sleeper) -> None:
    ids = await sleeper.remember(*CHAT)
    report = (await sleeper.call("trigger_dream", force=True))["report"]
    assert report["rem_report"]["surroundings_embedded"] == len(CHAT)
    assert await told_vectors(sleeper) == ids[::-1], "the newest first"
    vectors = {memory_id: read_vector(vector) for memory_id, _, vector in await sleeper.rows(MADE)}
    around = encode_documents(HashingEmbedder(), ["\n".join(CHAT[:4]), "\n".join(CHAT)])
    assert vectors[ids[1]] == pytest.approx(around[0], abs=1e-6) and vectors[ids[2]] == pytest.approx(
        around[1], abs=1e-6
    )
    [late] = await sleeper.remember("And I bring salt.")
    report = (await sleeper.call("trigger_dream", force=True))["report"]
    assert report["rem_report"]["surroundings_embedded"] == 1, "those whose neighbours changed are not made again"
    assert await told_vectors(sleeper) == [*ids[::-1], late]
    assert (await sleeper.call("trigger_dream", force=True))["report"]["rem_report"]["surroundings_embedded"] == 0


async def test_what_has_ended_has_no_surroundings_and_is_in_nobody_elses(sleeper: Sleeper) -> None:
    ids = await sleeper.remember("The build of the shop is green.", "the build of the shop is green", "Oslo is far.")
    report = (await sleeper.call("trigger_dream", force=True))["report"]
    assert (report["nrem_report"]["memories_merged"], report["rem_report"]["surroundings_embedded"]) == (1, 2)
    [(head,)] = await sleeper.rows("SELECT DISTINCT merged_into FROM context_ends")
    vectors = {memory_id: read_vector(vector) for memory_id, _, vector in await sleeper.rows(MADE)}
    assert set(vectors) == {head, ids[2]}
    [(content,)] = await sleeper.rows(f"SELECT text FROM documents WHERE record_id = '{head}'")
    [expected] = encode_documents(HashingEmbedder(), [f"{content}\nOslo is far."])
    assert vectors[head] == pytest.approx(expected, abs=1e-6) and vectors[ids[2]] == pytest.approx(expected, abs=1e-6)


async def test_a_dream_that_is_woken_leaves_the_rest_to_the_next(
    sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await sleeper.remember(*(f"memory {number} of the harbour" for number in range(12)))
    monkeypatch.setattr("thalweg.dreams.cycle.SURROUNDED", 1)
    monkeypatch.setattr("thalweg.dreams.dreamer.LEAST_REST_S", 0.02)
    asked = asyncio.ensure_future(sleeper.call("trigger_dream", force=True))
    async with asyncio.timeout(SOON_S):
        while not await sleeper.rows("SELECT 1 FROM context_surroundings LIMIT 1"):
            await asyncio.sleep(0.005)
    sleeper.visitor = Visitor(sleeper.node.running.door.local)
    aborted = await sleeper.call("abort_dream")
    assert aborted["mandate_met"] and (await asked)["report"]["wake_reason"] == "manual_abort"
    first = await told_vectors(sleeper)
    assert aborted["report"]["rem_report"]["surroundings_embedded"] == len(first)
    assert 0 < len(first) < len(ids) and first == ids[::-1][: len(first)]
    monkeypatch.undo()
    report = (await sleeper.call("trigger_dream", force=True))["report"]
    assert report["rem_report"]["surroundings_embedded"] == len(ids) - len(first)
    assert await told_vectors(sleeper) == ids[::-1]


async def test_a_question_that_was_asked_again_and_again_is_looked_for_further_after_a_dream(
    sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sleeper.remember(*CHAT)
    pools, look_up = list[int](), search_graph.search

    def noted(cursor: Any, indexes: Any, query: Query, *rest: Any) -> Any:
        pools.append(query.pool_size)
        return look_up(cursor, indexes, query, *rest)

    monkeypatch.setattr(search_graph, "search", noted)
    for number in range(FULL_RECALLS):
        for query in ("when does the tide turn", "who brings bread")[: 1 if number else 2]:
            await sleeper.call("search_graph", query=query)
    query_id = query_vector_id("default", "when does the tide turn")
    recalled = f"SELECT count(DISTINCT event_id) FROM context_recalls WHERE query_vector_id = '{query_id}'"
    async with asyncio.timeout(SOON_S):  # they are left in the background
        while await sleeper.rows(recalled) != [(FULL_RECALLS,)]:
            await asyncio.sleep(0.01)
    usual = Query("", None, Filter("default"), 10).pool_size
    assert set(pools) == {usual}
    await sleeper.call("trigger_dream", force=True)
    assert [one.data["query_vector_ids"] for one in await sleeper.logged(QUESTIONS_REPEATED)] == [[query_id]]
    pools.clear()
    for query in ("when does the tide turn", "who brings bread", "When does the tide turn"):
        await sleeper.call("search_graph", query=query)
    assert pools == [WIDE_POOL, usual, usual], "the same words alone"
    await sleeper.call("trigger_dream", force=True)
    assert len(await sleeper.logged(QUESTIONS_REPEATED)) == 1, "it is told once"


def test_a_question_is_widened_and_never_narrowed() -> None:
    query = Query("tide", None, Filter("default"), 10)
    assert widened(query).pool_size == WIDE_POOL and widened(replace(query, limit=200)).pool_size == 600
    store = Store()
    store.publish(
        event("context.questions.repeated", {"dream_id": "d", "query_vector_ids": [query_vector_id("n", "tide")]}),
        topic=DERIVED.name,
    )
    cursor = store.database.cursor()
    assert not is_repeated(cursor, "n", "tide", lambda table, key: False), "the store is not asked"
    assert not is_repeated(cursor, "n", "tide", store.writer.may_hold), "it was told of another namespace"
    moved = event("context.questions.repeated", {"dream_id": "d", "query_vector_ids": [query_vector_id("n", "tide")]},
                  id="e2", namespace="n")  # fmt: skip
    store.publish(moved, topic=DERIVED.name)
    assert is_repeated(cursor, "n", "tide", store.writer.may_hold)
    assert not is_repeated(cursor, "n", "tides", store.writer.may_hold)
