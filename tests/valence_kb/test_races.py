"""Races are decided in the order of the log: one winner, and the loser is told who won."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from processors.valence.rules.identifiers import EXCHANGE, PATTERN, SESSION, object_id
from streams.events import Event
from tests.examples import examples
from tests.processors.harness import Store, event
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent


async def test_fifty_parallel_exchanges_get_the_numbers_one_to_fifty(agent: Agent) -> None:
    session_id = await agent.session()
    answers = await asyncio.gather(*(agent.say(session_id, f"turn {number}") for number in range(50)))
    assert sorted(answer["sequence"] for answer in answers) == list(range(1, 51))
    listed = (await agent.call("exchange_list", session_id=session_id))["exchanges"]
    assert {exchange["id"]: exchange["sequence"] for exchange in listed} == {
        a["exchange_id"]: a["sequence"] for a in answers
    }


async def test_the_same_exchange_twice_is_one_and_both_are_answered_with_it(agent: Agent) -> None:
    session_id = await agent.session()
    first, second = await asyncio.gather(*(agent.say(session_id, "once", request_id="r1") for _ in range(2)))
    assert (first["exchange_id"], first["sequence"]) == (second["exchange_id"], second["sequence"])
    assert (await agent.call("exchange_list", session_id=session_id))["total_count"] == 1


async def test_another_exchange_under_a_used_request_id_is_told_which_one_stands(agent: Agent) -> None:
    session_id = await agent.session()
    winner = await agent.say(session_id, "first", request_id="r1")
    loser = await agent.say(session_id, "second", request_id="r1")
    assert (
        loser["error_code"] == "INVALID_PARAMS" and loser["details"]["allowed"]["exchange_id"] == winner["exchange_id"]
    )
    assert (await agent.call("session_get", session_id=session_id))["session"]["exchange_count"] == 1


async def test_of_parallel_reinforcements_with_one_session_one_counts_and_the_others_are_told(agent: Agent) -> None:
    session_id = await agent.session()
    pattern_id = (await agent.call("pattern_record", type="t", description="d"))["pattern_id"]
    calls = (agent.call("pattern_reinforce", pattern_id=pattern_id, session_id=session_id) for _ in range(8))
    answers = await asyncio.gather(*calls)
    assert sorted(answer["already_counted"] for answer in answers) == [False] + [True] * 7
    assert {answer["pattern"]["occurrence_count"] for answer in answers} == {2}


async def test_an_answer_shows_the_pattern_as_its_own_request_left_it(agent: Agent, node: SmallNode) -> None:
    pattern_id = (await agent.call("pattern_record", type="t", description="d"))["pattern_id"]
    sessions = [await agent.session() for _ in range(4)]
    answers = await asyncio.gather(
        *(agent.call("pattern_reinforce", pattern_id=pattern_id, session_id=s) for s in sessions)
    )
    seen = {answer["pattern"]["occurrence_count"]: answer["pattern"] for answer in answers}
    assert sorted(seen) == [2, 3, 4, 5]
    assert [len(seen[count]["evidence"]) for count in (2, 3, 4, 5)] == [1, 2, 3, 4]
    assert [seen[count]["status"] for count in (4, 5)] == ["emerging", "established"]


async def test_of_parallel_ends_one_sets_the_time(agent: Agent) -> None:
    session_id = await agent.session()
    answers = await asyncio.gather(
        *(agent.call("session_end", session_id=session_id, summary=str(n)) for n in range(5))
    )
    assert sorted(answer["already_ended"] for answer in answers) == [False] + [True] * 4


START = event("valence.session.started", {"platform": "api"}, id="start")
SESSION_ID = object_id(START, SESSION)
RECORD = event("valence.pattern.recorded", {"type": "t", "description": "d"}, id="record")
PATTERN_ID = object_id(RECORD, PATTERN)


def _requests() -> list[Event]:
    adds = [
        event("valence.exchange.added", {"session_id": SESSION_ID, "role": "user", "content": f"t{n}"}, id=f"a{n}")
        for n in range(6)
    ]
    ends = [
        event("valence.session.ended", {"session_id": SESSION_ID, "summary": f"s{n}"}, id=f"e{n}") for n in range(2)
    ]
    met = [
        event("valence.pattern.reinforced", {"pattern_id": PATTERN_ID, "session_id": SESSION_ID}, id=f"p{n}")
        for n in range(2)
    ]
    return [START, RECORD, *adds, *ends, *met]


def _rows(store: Store) -> dict[str, Any]:
    return {
        "sessions": store.sql(
            "SELECT session_id, status, summary, exchange_count, last_exchange_id, ended_at FROM vkb_sessions"
        ),
        "exchanges": store.sql("SELECT exchange_id, sequence, content FROM vkb_exchanges ORDER BY sequence"),
        "patterns": store.sql("SELECT occurrence_count, confidence, evidence FROM vkb_patterns"),
        "outcomes": store.sql("SELECT request_id, status, code, result FROM outcomes ORDER BY ALL"),
    }


@settings(max_examples=examples(4, 20), deadline=None, database=None)
@given(st.permutations(_requests()), st.data())
def test_whatever_the_order_the_repeats_and_the_batches_the_numbers_are_dense_and_a_replay_gives_the_same(
    order: list[Event], data: st.DataObject
) -> None:
    repeats = data.draw(st.lists(st.sampled_from(order), max_size=4))
    cut = data.draw(st.integers(0, len(order)))
    one, two = Store(), Store()
    try:
        one.publish(*order[:cut])
        one.publish(*order[cut:], *repeats)
        two.publish(*order)
        assert _rows(one) == _rows(two)
        started = order.index(START)
        added = [item for item in order[started:] if item.type.startswith("thalweg.valence.exchange")]
        expected = [(object_id(item, EXCHANGE), number, item.data["content"]) for number, item in enumerate(added, 1)]
        assert _rows(one)["exchanges"] == expected
    finally:
        one.database.close()
        two.database.close()
