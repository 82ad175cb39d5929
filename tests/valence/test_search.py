"""What a search of beliefs may find and how it is read.

The arrays in memory say what the tables say, and nothing crowds beliefs out.
"""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from processors.valence.read import tension_candidates
from processors.valence.read.tension_candidates import ActiveBeliefs, Proximity, nearest_active, nearest_records
from storage.valence.belief_follower import BeliefFollower
from tests.processors.harness import event
from tests.valence.conftest import BeliefNode, Believer

TABLE = """SELECT label, status = 'active', status = 'superseded', overall, epoch_us(created_at) FROM valence_beliefs
WHERE namespace = 'default' ORDER BY label"""
VIEW = "SELECT belief_id, status, overall, internal_consistency FROM beliefs ORDER BY belief_id"


async def test_what_a_search_filters_by_follows_the_table_through_every_kind_of_change(
    agent: Believer, node: BeliefNode
) -> None:
    follower, cursor = BeliefFollower(), node.store.database.cursor()

    def agrees() -> None:
        known = follower.view(cursor, "default")
        columns = (known.labels, known.is_active, known.is_superseded, known.overall, known.created_us)
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == node.store.sql(TABLE)
        assert list(follower.view(cursor, "elsewhere").labels) == []

    agrees()
    a = await agent.hold("The cache is on", "cache")
    b = await agent.hold("The cache is not on", "cache")
    agrees()
    await agent.hold("The cache is on", "cache", source_ref="another")
    await agent.call("belief_supersede", old_belief_id=a["id"], new_content="The big cache is on", reason="exact")
    agrees()
    [open_one] = (await agent.call("tension_list", status="detected"))["tensions"]
    await agent.call("tension_resolve", tension_id=open_one["id"], resolution="Both are gone", action="archive_both")
    agrees()
    assert (
        b["id"] in (open_one["belief_a_id"], open_one["belief_b_id"])
        and follower.view(cursor, "default").is_active.sum() == 0
    )


async def test_a_belief_is_shown_as_the_view_has_it_whatever_its_tensions_have_done_to_it(
    agent: Believer, node: BeliefNode
) -> None:
    computed = {"source_reliability": 0.9, "method_quality": 0.9}
    for name in ("cache", "queue", "lamp"):
        await agent.hold(f"The {name} is on", name, confidence=computed)
        await agent.hold(f"The {name} is not on", name, confidence=computed)
    tensions = {row["belief_a_content"]: row["id"] for row in (await agent.call("tension_list"))["tensions"]}
    await agent.call("tension_resolve", tension_id=tensions["The queue is on"], resolution="x", action="keep_both")
    await agent.call("tension_resolve", tension_id=tensions["The lamp is on"], resolution="x", action="supersede_a")
    rows = node.store.sql(VIEW)
    assert {"active", "superseded"} <= {row[1] for row in rows}
    for belief_id, status, overall, consistency in rows:
        shown = (await agent.call("belief_get", belief_id=belief_id))["belief"]
        assert (shown["status"], shown["confidence"].get("internal_consistency")) == (status, consistency)
        assert abs(shown["confidence"]["overall"] - overall) < 1e-9
    found = (await agent.call("belief_query", query="cache on"))["beliefs"]
    assert {belief["content"] for belief in found} >= {"The cache is on", "The cache is not on"}


async def test_what_is_not_true_yet_is_not_found_and_what_was_superseded_only_when_asked_for(
    agent: Believer, node: BeliefNode
) -> None:
    tomorrow = (node.clock.time + timedelta(days=1)).replace(tzinfo=None)
    await agent.hold("The port will be 7000", valid_from=f"{tomorrow.isoformat()}Z")
    old = await agent.hold("The port is 6379")
    await agent.call("belief_supersede", old_belief_id=old["id"], new_content="The port is 6380", reason="moved")
    assert await agent.found("port") == ["The port is 6380"]
    assert sorted(await agent.found("port", include_superseded=True)) == ["The port is 6379", "The port is 6380"]
    node.clock.time += timedelta(days=2)
    assert sorted(await agent.found("port")) == ["The port is 6380", "The port will be 7000"]


async def test_a_question_in_plain_words_finds_a_belief_that_shares_only_two_of_them(agent: Believer) -> None:
    await agent.hold("Backups of the shop database run at night")
    await agent.hold("Nobody walks the dog")
    assert (await agent.found("could you tell me please when exactly those database backups happen to start"))[
        0
    ].startswith("Backups")


async def test_a_belief_is_found_by_meaning_alone_and_by_words_alone(agent: Believer, node: BeliefNode) -> None:
    await agent.hold("Deployments use canaries")
    [by_meaning] = (await agent.call("belief_query", query="deployment canary"))["beliefs"]
    assert by_meaning["score_parts"]["semantic"] >= 0.30
    node.services.embedder = None
    [by_words] = (await agent.call("belief_query", query="canaries"))["beliefs"]
    assert by_words["score_parts"]["semantic"] == 1.0  # the best keyword score stands for the cosine


async def test_records_that_are_no_beliefs_and_other_namespaces_do_not_crowd_a_near_belief_out(
    agent: Believer, node: BeliefNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tension_candidates, "FIRST_MATCHES", 4)
    belief = await agent.hold("Redis is the cache of the shop")
    for number in range(30):
        data = {"content": "Redis is the cache of the shop", "source_ref": f"s{number}"}
        node.tell(
            event("valence.belief.created", data, id=f"o{number}", namespace=f"other-{number}", time=node.clock.time)
        )
    session_id = await agent.session()
    await agent.say(session_id, "Redis is the cache of the shop")
    vector = np.asarray(node.embedder.encode([belief["content"]])[0]) if node.embedder else None
    assert vector is not None
    [near] = nearest_records(node.indexes.space(), vector[None])
    assert len(near) == 4
    active = ActiveBeliefs(node.store.database.cursor(), "default")
    found = nearest_active(active, node.indexes.space(), Proximity(vector, near), 0.75)
    assert list(active.ids(found).values()) == [belief["id"]] and max(found.values()) > 0.99
    again = await agent.call("belief_create", content="Redis is the cache of the shop indeed", source_ref="x")
    assert again["success"]


async def test_names_that_were_merged_are_one_when_a_statement_is_compared(agent: Believer, node: BeliefNode) -> None:
    a = await agent.hold("The shop runs on it every night", "Node.js", source_ref="x")
    fields = {
        "content": "Every night the shop runs on it",
        "source_ref": "y",
        "entities": [{"name": "NodeJS", "type": "tool"}],
    }
    near = {"similar": [{"belief_id": a["id"], "cosine": 0.95}]}
    node.tell(event("valence.belief.created", fields | near, time=node.clock.time))
    assert node.store.sql("SELECT corroboration_count FROM beliefs") == [(2,)]


async def test_each_severity_comes_about(agent: Believer) -> None:
    pairs = [
        ("We should use tabs", "We should not use tabs", 0.95),
        ("We should use forks", "We should not use forks", 0.5),
        ("The oven is hot", "The oven is not hot", 0.5),
        ("Good spoons are long", "Bad spoons are long", 0.5),
    ]
    for one, other, sure in pairs:
        for text in (one, other):
            await agent.hold(text, one.split()[-1] if "spoons" not in one else "spoons", confidence=sure)
    found = {row["belief_a_content"]: row["severity"] for row in (await agent.call("tension_list"))["tensions"]}
    assert [found[one] for one, _, _ in pairs] == ["critical", "high", "medium", "low"]


async def test_a_resolution_that_is_none_changes_nothing(agent: Believer, node: BeliefNode) -> None:
    await agent.hold("The cache is on", "cache")
    await agent.hold("The cache is not on", "cache")
    tension = await agent.one_tension()
    refused = await agent.call("tension_resolve", tension_id=tension["id"], resolution="x", action="merge")
    assert refused["error_code"] == "INVALID_PARAMS" and (await agent.one_tension()) == tension
