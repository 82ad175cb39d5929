"""Both times of a belief, its line, where it comes from; and races, which have one winner who is named to the loser."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_ingress.call import ClientConnection
from mcp_ingress.services import Limits
from processors.valence.rules.confidence import WEIGHTS, read_confidence, under_tension
from processors.valence.rules.tensions import tension_id
from streams.event_types.valence import BELIEF_REINFORCED, TENSION_CLOSED
from streams.events import LoggedEvent
from tests.examples import examples
from tests.patience import SOON_S
from tests.processors.harness import Store, event
from tests.valence.conftest import BeliefNode, Believer

HELD = (
    "SELECT content FROM beliefs WHERE coalesce(valid_from, created_at) <= ? "
    "AND (valid_until IS NULL OR valid_until > ?)"
)
KNOWN = "SELECT content, status FROM belief_history WHERE known_from <= ? AND (known_until IS NULL OR known_until > ?)"


async def test_what_was_held_at_a_time_and_what_was_known_at_a_time_are_two_questions(
    agent: Believer, node: BeliefNode
) -> None:
    start = node.clock.time.replace(tzinfo=None)
    old = await agent.hold("The port is 6379", valid_from=f"{(start - timedelta(days=30)).isoformat()}Z")
    between = node.clock.time.replace(tzinfo=None)
    node.clock.time += timedelta(days=1)
    await agent.call("belief_supersede", old_belief_id=old["id"], new_content="The port is 6380", reason="moved")
    long_ago, now = start - timedelta(days=3), node.clock.time.replace(tzinfo=None)
    assert node.store.sql(HELD, long_ago, long_ago) == [("The port is 6379",)]
    assert node.store.sql(HELD, now, now) == [("The port is 6380",)]
    assert node.store.sql(KNOWN, long_ago, long_ago) == []
    assert node.store.sql(KNOWN, between, between) == [("The port is 6379", "active")]
    assert sorted(node.store.sql(KNOWN, now, now)) == [
        ("The port is 6379", "superseded"),
        ("The port is 6380", "active"),
    ]


async def test_a_belief_leads_back_to_its_call_and_record_and_forward_to_what_it_became(
    agent: Believer, node: BeliefNode
) -> None:
    first = await agent.call("belief_create", content="The port is 1", request_id="r-1")
    second = await agent.call(
        "belief_supersede", old_belief_id=first["belief"]["id"], new_content="The port is 2", reason="x"
    )
    third = await agent.call(
        "belief_supersede", old_belief_id=second["new_belief"]["id"], new_content="The port is 3", reason="y"
    )
    [(request_id, topic, offset, current)] = node.store.sql(
        'SELECT request_id, topic, "offset", current_belief_id FROM belief_origins WHERE belief_id = ?',
        first["belief"]["id"],
    )
    assert (request_id, topic, offset) == ("r-1", "thalweg.memory.v1", 0) and current == third["new_belief"]["id"]
    assert node.store.sql("SELECT kind, is_live FROM memories WHERE memory_id = ?", first["belief"]["id"]) == [
        ("belief", False)
    ]


async def test_what_another_connection_has_just_stated_is_waited_for_when_its_id_is_asked_for(
    agent: Believer, node: BeliefNode
) -> None:
    node.services.limits = Limits(write_wait_s=0.05, read_wait_s=SOON_S)
    node.is_behind = True
    stated = await agent.call("belief_create", content="The cache is on")
    assert stated["pending"]
    node.connection = ClientConnection()
    other = Believer(node)
    asking = asyncio.ensure_future(other.call("belief_get", belief_id=stated["belief"]["id"]))
    while not asking.done():
        await asyncio.sleep(0.01)
        node.catch_up()
    assert (await asking)["belief"]["content"] == "The cache is on"
    unknown = await agent.call("belief_get", belief_id=str(UUID(int=7)))
    assert unknown["error_code"] == "BELIEF_NOT_FOUND", "at once: the store has all there is"


async def test_a_tension_begins_with_the_later_belief_whichever_of_the_two_is_looked_at_first(
    agent: Believer, node: BeliefNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated: list[LoggedEvent] = []
    with monkeypatch.context() as patched:
        patched.setattr(node, "detect", stated.append)
        await agent.hold("The cache is on", "cache")
        later = await agent.hold("The cache is not on", "cache")
    for logged in stated:
        node.detect(logged)
    tension = await agent.one_tension()
    assert tension["detected_at"] == later["created_at"]


async def test_of_two_resolutions_the_second_is_told_the_first(agent: Believer, node: BeliefNode) -> None:
    await agent.hold("The cache is on", "cache")
    await agent.hold("The cache is not on", "cache")
    tension = await agent.one_tension()
    node.is_behind = True
    call = {"tension_id": tension["id"], "resolution": "first"}
    pending = await agent.call("tension_resolve", **call, action="archive_both", request_id="r-1")
    assert pending["pending"] and pending["tension"] is None
    late = await agent.call(
        "tension_resolve", **{**call, "resolution": "second"}, action="supersede_b", request_id="r-2"
    )
    assert late["pending"]
    node.catch_up()
    assert node.store.sql("SELECT request_id, status, code FROM outcomes WHERE request_id LIKE 'r-%' ORDER BY 1") == [
        ("r-1", "applied", None),
        ("r-2", "refused", "TENSION_ALREADY_RESOLVED"),
    ]
    lost = await agent.call(
        "tension_resolve", **{**call, "resolution": "second"}, action="supersede_b", request_id="r-2"
    )
    assert lost["error_code"] == "TENSION_ALREADY_RESOLVED" and lost["details"]["action"] == "archive_both"
    assert lost["details"]["resolution"] == "first"


async def test_of_two_supersedes_the_second_is_told_the_head(agent: Believer, node: BeliefNode) -> None:
    old = await agent.hold("The port is 1")
    node.is_behind = True
    for number in (2, 3):
        answer = await agent.call(
            "belief_supersede",
            old_belief_id=old["id"],
            new_content=f"The port is {number}",
            reason="x",
            request_id=f"r-{number}",
        )
        assert answer["pending"] and answer["old_belief"] is None and answer["new_belief"]["supersedes_id"] == old["id"]
    node.catch_up()
    lost = await agent.call(
        "belief_supersede", old_belief_id=old["id"], new_content="The port is 3", reason="x", request_id="r-3"
    )
    assert lost["error_code"] == "ALREADY_SUPERSEDED"
    assert node.store.sql("SELECT content FROM beliefs WHERE belief_id = ?", lost["details"]["current_id"]) == [
        ("The port is 2",)
    ]


async def test_a_resolution_that_a_supersede_overtook_is_told_the_head(agent: Believer, node: BeliefNode) -> None:
    a = await agent.hold("The cache is on", "cache")
    b = await agent.hold("The cache is not on", "cache")
    new = await agent.call("belief_supersede", old_belief_id=a["id"], new_content="Caching was left", reason="x")
    data = {
        "tension_id": tension_id(a["id"], b["id"]),
        "belief_a_id": a["id"],
        "belief_b_id": b["id"],
        "request_id": "r",
    }
    node.tell(
        event("valence.tension.resolved", data | {"resolution": "late", "action": "supersede_b"}, time=node.clock.time)
    )
    [(code, result)] = node.store.sql("SELECT code, result FROM outcomes WHERE request_id = 'r'")
    assert code == "ALREADY_SUPERSEDED" and new["new_belief"]["id"] in result
    closed = await agent.call("tension_resolve", tension_id=data["tension_id"], resolution="x", action="keep_both")
    assert closed["error_code"] == "TENSION_ALREADY_RESOLVED" and closed["details"]["resolution"].startswith(
        "auto: superseded by"
    )


async def test_a_resolution_that_comes_after_one_of_the_beliefs_was_archived_changes_nothing(
    agent: Believer, node: BeliefNode
) -> None:
    first, second, third = [await agent.hold(f"The port is {number}", "port") for number in (1, 2, 3)]

    def pair(other: dict[str, Any]) -> dict[str, str]:
        ids = first["id"], other["id"]
        return {"tension_id": tension_id(*ids), "belief_a_id": ids[0], "belief_b_id": ids[1], "resolution": "Gone"}

    for request_id, other, action in (("r-1", second, "archive_both"), ("r-2", third, "supersede_b")):
        data = pair(other) | {"action": action, "request_id": request_id}
        node.tell(event("valence.tension.resolved", data, id=request_id, time=node.clock.time))
    outcomes = node.store.sql("SELECT request_id, status, code FROM outcomes WHERE request_id LIKE 'r-%' ORDER BY 1")
    assert outcomes == [("r-1", "applied", None), ("r-2", "refused", "TENSION_ALREADY_RESOLVED")]
    assert await agent.found("port") == ["The port is 3"]


async def test_the_new_text_of_a_belief_is_held_against_what_its_old_one_contradicted(
    agent: Believer, node: BeliefNode
) -> None:
    a = await agent.hold("The cache is on", "cache")
    b = await agent.hold("The cache is not on", "cache")
    still = await agent.call(
        "belief_supersede", old_belief_id=a["id"], new_content="The big cache is on", reason="exact"
    )
    assert [row["belief_b_id"] for row in still["tensions_detected"]] == [still["new_belief"]["id"]]
    rows = (await agent.call("tension_list"))["tensions"]
    assert {(row["belief_a_id"], row["belief_b_id"], row["status"]) for row in rows} == {
        (a["id"], b["id"], "resolved"),
        (b["id"], still["new_belief"]["id"], "detected"),
    }


async def test_a_resend_has_one_effect_and_one_answer(agent: Believer, node: BeliefNode) -> None:
    first = await agent.call("belief_create", content="Backups run at night", request_id="r")
    again = await agent.call("belief_create", content="Backups run at night", request_id="r")
    assert first["belief"]["id"] == again["belief"]["id"] and again["action"] == "created"
    other = await agent.call("belief_create", content="Backups run at noon", request_id="r")
    assert other["error_code"] == "INVALID_PARAMS"
    assert node.store.sql("SELECT count(*) FROM beliefs") == [(1,)]


async def test_a_contradiction_is_never_swallowed_however_near_it_is(agent: Believer, node: BeliefNode) -> None:
    a = await agent.hold("The nightly backup of the shop database is stored in the vault", source_ref="x")
    for number, text in enumerate(
        ("is not stored in the vault", "is stored in the vault of Rome", "is stored in 3 vaults")
    ):
        data = {"content": f"The nightly backup of the shop database {text}", "source_ref": f"y{number}"}
        near = {"similar": [{"belief_id": a["id"], "cosine": 0.999}]}
        node.tell(event("valence.belief.created", data | near, id=f"n{number}", time=node.clock.time))
    assert node.store.sql("SELECT count(*), max(corroboration_count) FROM beliefs") == [(4, 1)]


async def test_other_words_of_another_source_reinforce(agent: Believer, node: BeliefNode) -> None:
    a = await agent.hold("The backup runs every night", source_ref="x", confidence=0.9)
    data = {
        "content": "Every night the backup runs",
        "source_ref": "y",
        "similar": [{"belief_id": a["id"], "cosine": 0.95}],
    }
    node.tell(event("valence.belief.created", data, time=node.clock.time))
    [(overall, count)] = node.store.sql("SELECT overall, corroboration_count FROM beliefs")
    assert (overall, count) == (0.9, 2)
    confirmed = [("cosine", 0.95), ("stated", None)]
    assert node.store.sql("SELECT how, cosine FROM belief_corroborations ORDER BY how") == confirmed
    # a source confirms a belief once
    node.tell(event("valence.belief.created", data, id="again", time=node.clock.time))
    assert node.store.sql("SELECT count(*), max(corroboration_count) FROM beliefs") == [(2, 2)]
    assert (
        node.store.sql("SELECT how, cosine FROM belief_corroborations WHERE belief_id = ? ORDER BY how", a["id"])
        == confirmed
    )


async def test_whoever_follows_the_derived_topic_is_told_what_was_reinforced_and_which_tensions_are_closed(
    agent: Believer, node: BeliefNode
) -> None:
    a = await agent.hold("The cache is on", "cache", source_ref="x")
    b = await agent.hold("The cache is not on", "cache")
    await agent.hold("The cache is on", "cache", source_ref="y")
    told = [fact for fact in node.facts if fact.type == BELIEF_REINFORCED]
    assert [(fact.data["belief_id"], fact.data["corroboration_count"]) for fact in told] == [(a["id"], 2)]
    await agent.call("belief_supersede", old_belief_id=a["id"], new_content="The big cache is on", reason="exact")
    newer = await agent.one_tension_of("detected")
    await agent.call("tension_resolve", tension_id=newer["id"], resolution="Both", action="keep_both")
    closed = [fact for fact in node.facts if fact.type == TENSION_CLOSED]
    assert [(fact.data["tension_id"], fact.data["status"], fact.data["action"]) for fact in closed] == [
        (tension_id(a["id"], b["id"]), "resolved", None),
        (newer["id"], "accepted", "keep_both"),
    ]
    assert closed[0].data["resolution"].startswith("auto: superseded by") and node.store.sql(
        "SELECT count(*) FROM dead_letters"
    ) == [(0,)]


@pytest.mark.parametrize(
    "data",
    [
        {"content": "   "},
        {"content": "x", "confidence": {"overall": 7}},
        {"content": "x", "entities": [17, {"name": ""}]},
        {"content": "x", "entities": [{"name": "y", "type": ["z"]}]},
        {"content": "x", "valid_from": "0001-01-01T00:00:00+14:00"},
    ],
)
def test_garbage_of_a_foreign_producer_is_refused_or_buried_and_makes_no_belief(data: dict[str, object]) -> None:
    store = Store()
    store.publish(event("valence.belief.created", data))
    assert store.sql("SELECT count(*) FROM beliefs") == [(0,)]
    assert store.sql(
        "SELECT (SELECT count(*) FROM outcomes WHERE status = 'refused') + (SELECT count(*) FROM dead_letters)"
    ) == [(1,)]


shapes = settings(max_examples=examples(3, 12), deadline=None, database=None, suppress_health_check=list(HealthCheck))


@shapes
@given(st.dictionaries(st.sampled_from(list(WEIGHTS)), st.floats(0, 1), min_size=1), st.floats(0, 1))
def test_the_view_computes_what_the_rules_compute(given_: dict[str, float], consistent: float) -> None:
    store = SHARED
    number = store.offsets.get(("thalweg.memory.v1", 0), 0)
    for side in "ab":
        data = {"content": f"text {side} {number}", "confidence": given_}
        store.publish(event("valence.belief.created", data, id=f"{side}{number}"))
    a, b = (
        store.sql("SELECT belief_id FROM beliefs WHERE content = ?", f"text {side} {number}")[0][0] for side in "ab"
    )
    found = {
        "tension_id": tension_id(a, b),
        "belief_a_id": a,
        "belief_b_id": b,
        "type": "contradiction",
        "severity": "high",
    }
    weights = {
        "description": "x",
        "signal": 0.7,
        "score": 0.7,
        "materiality": 0.5,
        "consistency_a": consistent,
        "consistency_b": 0.1,
    }
    store.publish(event("valence.tension.detected", found | weights, id=f"t{number}"), topic="thalweg.derived.v1")
    [(overall, internal, status)] = store.sql(
        "SELECT overall, internal_consistency, status FROM beliefs WHERE belief_id = ?", a
    )
    wanted = under_tension(read_confidence(given_), consistent)
    assert abs(overall - wanted.overall) < 1e-9 and internal == consistent and status == "disputed"


def test_a_belief_has_no_tension_with_itself() -> None:
    store = Store()
    store.publish(event("valence.belief.created", {"content": "The port is 1"}, id="e0"))
    [(belief,)] = store.sql("SELECT belief_id FROM beliefs")
    pair = {"belief_a_id": belief, "belief_b_id": belief, "tension_id": tension_id(belief, belief)}
    store.publish(event("valence.tension.resolved", pair | {"resolution": "x", "action": "supersede_a"}, id="e1"))
    assert store.sql("SELECT status, code FROM outcomes WHERE code IS NOT NULL") == [("refused", "TENSION_NOT_FOUND")]
    assert store.sql("SELECT status FROM beliefs") == [("active",)]


SHARED = Store()


@shapes
@given(
    st.lists(
        st.tuples(st.sampled_from(["create", "supersede", "resolve"]), st.integers(0, 5), st.integers(0, 5)),
        max_size=14,
    )
)
def test_lines_never_fork_or_close_and_only_heads_are_held(steps: list[tuple[str, int, int]]) -> None:
    store = Store()
    for number, (kind, one, other) in enumerate(steps):
        ids = [row[0] for row in store.sql("SELECT belief_id FROM beliefs ORDER BY created_at, belief_id")]
        if kind == "create" or len(ids) <= max(one, other):
            made = event("valence.belief.created", {"content": f"text {number}"}, id=f"e{number}")
        elif kind == "supersede":
            fields = {"old_belief_id": ids[one], "new_content": f"text {number}", "reason": "x"}
            made = event("valence.belief.superseded", fields, id=f"e{number}")
        else:
            pair = {"belief_a_id": ids[one], "belief_b_id": ids[other], "tension_id": tension_id(ids[one], ids[other])}
            made = event(
                "valence.tension.resolved", pair | {"resolution": "x", "action": "supersede_a"}, id=f"e{number}"
            )
        store.publish(made)
    rows = {
        row[0]: row[1:] for row in store.sql("SELECT belief_id, superseded_by_id, supersedes_id, status FROM beliefs")
    }
    for start, (successor, _, status) in rows.items():
        assert (successor is None) == (status == "active")
        seen, at = {start}, successor
        while at is not None:
            assert at not in seen, "a line that closes"
            seen.add(at)
            at = rows[at][0]
    assert store.sql("SELECT count(*) FROM dead_letters") == [(0,)]
