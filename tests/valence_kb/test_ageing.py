"""The stream timer: each step of a pattern's ageing is on the log once, and says the same from every node."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from mcp_ingress.toolsets.valence.kb_queries import list_patterns
from processors.valence.rules.patterns import EMERGING, ESTABLISHED, ageing_steps, status_at
from processors.valence.timers.age_patterns import AGE_PATTERNS
from streams.clock import format_time
from streams.ids import derived_id
from streams.log.base import Log
from tests.processors.harness import NOW, Store, event
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent

DAY = timedelta(days=1)


async def look(node: SmallNode) -> int:
    return await AGE_PATTERNS.publish_due(node.reader, cast(Log, node), node.clock.now())


def statuses(node: SmallNode) -> list[str]:
    return [status for (status,) in node.store.sql("SELECT status FROM vkb_patterns_aged")]


async def test_a_step_is_told_once_when_it_is_due_and_the_view_shows_it(agent: Agent, node: SmallNode) -> None:
    await agent.call("pattern_record", type="t", description="d")
    assert await look(node) == 0 and statuses(node) == ["emerging"]
    node.clock.time += 14 * DAY
    assert await look(node) == 1 and statuses(node) == ["fading"]
    assert await look(node) == 0
    node.clock.time += 170 * DAY
    assert await look(node) == 1 and statuses(node) == ["archived"]
    assert node.store.sql("SELECT from_status, to_status FROM vkb_pattern_changes ORDER BY changed_at") == [
        ("emerging", "fading"),
        ("fading", "archived"),
    ]


async def test_a_node_that_slept_tells_both_steps_with_the_times_at_which_they_were_due(
    agent: Agent, node: SmallNode
) -> None:
    await agent.call("pattern_record", type="t", description="d")
    [(observed,)] = node.store.sql("SELECT last_observed_at FROM vkb_patterns")
    node.clock.time += 400 * DAY
    assert await look(node) == 2
    changes = node.store.sql("SELECT changed_at FROM vkb_pattern_changes ORDER BY changed_at")
    assert changes == [(observed + 14 * DAY,), (observed + 180 * DAY,)]


async def test_two_nodes_that_notice_the_same_step_tell_one_fact(agent: Agent, node: SmallNode) -> None:
    await agent.call("pattern_record", type="t", description="d")
    node.clock.time += 20 * DAY
    node.is_behind = True
    assert (await look(node), await look(node)) == (1, 1)
    one, two = node.published[-2:]
    assert (one.key, one.time, one.data) == (two.key, two.time, two.data)


async def test_the_id_of_a_step_is_the_one_that_earlier_releases_gave_it(agent: Agent, node: SmallNode) -> None:
    pattern_id = (await agent.call("pattern_record", type="t", description="d"))["pattern_id"]
    [(observed,)] = node.store.sql("SELECT last_observed_at FROM vkb_patterns")
    node.clock.time += 20 * DAY
    await look(node)
    identity = derived_id("age_patterns", "default", pattern_id, format_time(observed.replace(tzinfo=UTC)), "fading")
    assert (node.published[-1].id, node.published[-1].source) == (identity, "thalweg:stage/age_patterns")


async def test_a_pattern_that_is_met_again_begins_anew(agent: Agent, node: SmallNode) -> None:
    pattern_id = (await agent.call("pattern_record", type="t", description="d"))["pattern_id"]
    node.clock.time += 20 * DAY
    await look(node)
    await agent.call("pattern_reinforce", pattern_id=pattern_id)
    assert statuses(node) == ["emerging"]
    node.clock.time += 20 * DAY
    assert await look(node) == 1 and statuses(node) == ["fading"]


@given(st.sampled_from([EMERGING, ESTABLISHED]), st.integers(0, 300 * 86_400))
def test_the_status_is_where_the_steps_end(status: str, age_s: int) -> None:
    now = NOW + timedelta(seconds=age_s)
    steps = ageing_steps(status, NOW, now)
    assert status_at(status, NOW, now) == ([status] + [step.to_status for step in steps])[-1]
    assert all(step.due_at <= now for step in steps)


def test_what_is_listed_agrees_with_the_rule_at_every_age() -> None:
    store = Store()
    records = [
        event("valence.pattern.recorded", {"type": f"{n}", "description": "d"}, id=f"p{n}", time=NOW - n * DAY)
        for n in range(200)
    ]
    store.publish(*records)
    cursor = store.database.cursor()
    patterns, total = list_patterns(cursor, "default", NOW, kind=None, status=None, min_confidence=0, limit=1000)
    assert {int(p["type"]): p["status"] for p in patterns} == {
        n: status_at(EMERGING, NOW - n * DAY, NOW) for n in range(180)
    }
    assert total == 180
    store.database.close()
