"""The belief tools as an agent uses them: the reference's shapes, the accept lines of each tool, its errors."""

from __future__ import annotations

import uuid

import pytest

from streams.codec import encode
from streams.topics import MEMORY
from tests.talos.node import STAGES
from tests.valence.conftest import BeliefNode, Believer


async def test_a_belief_is_returned_in_full_and_found_again(agent: Believer) -> None:
    answer = await agent.call(
        "belief_create",
        content="Redis evicts the oldest keys first",
        confidence={"source_reliability": 0.9, "method_quality": 0.5},
        domain_path=["tech", "architecture"],
        source_type="document",
        source_ref="https://example.com/redis",
        entities=[{"name": "Redis", "type": "tool"}],
        valid_from="2025-01-15T10:30:00Z",
    )
    belief = answer["belief"]
    assert (answer["deduplicated"], answer["action"], answer["corroboration_count"]) == (False, "created", 1)
    assert round(belief["confidence"]["overall"], 4) == 0.7220 and belief["confidence_label"] == "moderate"
    assert belief["source"]["url"] == "https://example.com/redis" and belief["valid_from"] == "2025-01-15T10:30:00Z"
    [link] = belief["entities"]
    assert link["role"] == "subject" and link["entity"]["name"] == "Redis"
    found = await agent.call("belief_query", query="which keys are evicted by redis?")
    assert found["beliefs"][0]["id"] == belief["id"] and found["total_count"] == 1
    assert {"id", "content", "confidence", "domain_path", "created_at", "source", "relevance_score"} <= found[
        "beliefs"
    ][0].keys()


async def test_a_belief_and_its_plain_negation_are_two_beliefs_and_one_tension(agent: Believer) -> None:
    first = await agent.hold("Redis is the cache of the shop", "Redis")
    answer = await agent.call(
        "belief_create", content="Redis is not the cache of the shop", entities=[{"name": "redis", "type": "tool"}]
    )
    assert answer["action"] == "created" and len(answer["tensions_detected"]) == 1
    entity_id = first["entities"][0]["entity"]["id"]
    listed = await agent.call("tension_list", entity_id=entity_id)
    assert listed["total_count"] == 1 and listed["tensions"][0]["id"] == answer["tensions_detected"][0]["id"]
    assert answer["belief"]["entities"][0]["entity"]["id"] == entity_id
    assert listed["tensions"][0]["belief_a_id"] == first["id"]


async def test_total_count_is_of_all_matches_whatever_the_limit(agent: Believer) -> None:
    for number in range(42):
        await agent.hold(f"Lantern number {number} hangs in street {number}")
    answer = await agent.call("belief_query", query="lantern", limit=1)
    assert len(answer["beliefs"]) == 1 and answer["total_count"] == 42


async def test_superseding_twice_names_the_head(agent: Believer) -> None:
    old = await agent.hold("The port is 6379")
    first = await agent.call(
        "belief_supersede", old_belief_id=old["id"], new_content="The port is 6380", reason="moved"
    )
    assert first["new_belief"]["supersedes_id"] == old["id"] and first["old_belief"]["status"] == "superseded"
    third = await agent.call(
        "belief_supersede", old_belief_id=first["new_belief"]["id"], new_content="The port is 6381", reason="again"
    )
    lost = await agent.call("belief_supersede", old_belief_id=old["id"], new_content="The port is 1", reason="late")
    assert lost["error_code"] == "ALREADY_SUPERSEDED" and lost["details"]["current_id"] == third["new_belief"]["id"]
    histories = [
        (await agent.call("belief_get", belief_id=identity, include_history=True))["history"]
        for identity in (old["id"], first["new_belief"]["id"], third["new_belief"]["id"])
    ]
    assert histories[0] == histories[1] == histories[2]
    assert [(step["position"], step["is_current"]) for step in histories[0]] == [(1, False), (2, False), (3, True)]
    assert [step["reason"] for step in histories[0]] == [None, "moved", "again"]
    assert await agent.found("port") == ["The port is 6381"]
    assert len(await agent.found("port", include_superseded=True)) == 3


async def test_supersede_a_takes_a_out_of_the_answers_and_makes_no_third_belief(agent: Believer) -> None:
    a = await agent.hold("The team uses Redis", "Redis")
    b = await agent.hold("The team does not use Redis", "Redis")
    tension = await agent.one_tension()
    answer = await agent.call(
        "tension_resolve", tension_id=tension["id"], resolution="They moved on", action="supersede_a"
    )
    assert answer["success"] and answer["tension"]["status"] == "resolved"
    assert [belief["status"] for belief in answer["beliefs"]] == ["superseded", "active"]
    assert answer["beliefs"][0]["superseded_by_id"] == b["id"] and answer["beliefs"][1]["supersedes_id"] == a["id"]
    assert await agent.found("team redis") == ["The team does not use Redis"]
    [(count,)] = agent.node.store.sql("SELECT count(*) FROM beliefs")
    assert count == 2
    again = await agent.call("tension_resolve", tension_id=tension["id"], resolution="no", action="keep_both")
    assert again["error_code"] == "TENSION_ALREADY_RESOLVED" and again["details"]["action"] == "supersede_a"


async def test_keeping_both_accepts_the_tension_for_good(agent: Believer, node: BeliefNode) -> None:
    await agent.hold("We should use tabs", "tabs", confidence={"overall": 0.9})
    await agent.hold("We should not use tabs", "tabs", confidence={"overall": 0.9})
    tension = await agent.one_tension()
    before = await agent.call("belief_get", belief_id=tension["belief_a_id"], include_tensions=True)
    assert before["belief"]["status"] == "disputed" and len(before["tensions"]) == 1
    assert (
        before["belief"]["confidence"]["internal_consistency"] == 0.1
        and before["belief"]["confidence"]["overall"] == 0.9
    )
    kept = await agent.call("tension_resolve", tension_id=tension["id"], resolution="Both teams", action="keep_both")
    assert kept["tension"]["status"] == "accepted" and [belief["status"] for belief in kept["beliefs"]] == [
        "active",
        "active",
    ]
    assert kept["beliefs"][0]["confidence"]["internal_consistency"] == 0.7
    after = await agent.call("belief_get", belief_id=tension["belief_a_id"], include_tensions=True)
    assert after["tensions"] == []
    # the detector comes round again
    node.process([node.store.record(encode(MEMORY.name, event)) for event in node.published])
    listed = await agent.call("tension_list")
    assert [(row["id"], row["status"]) for row in listed["tensions"]] == [(tension["id"], "accepted")]


async def test_severity_is_the_least_that_is_listed(agent: Believer) -> None:
    await agent.hold("We should use tabs", "tabs", confidence={"overall": 0.9})
    await agent.hold("We should not use tabs", "tabs", confidence={"overall": 0.9})
    await agent.hold("Good spoons are long", "spoons")
    await agent.hold("Bad spoons are long", "spoons")
    severities = {row["severity"] for row in (await agent.call("tension_list"))["tensions"]}
    assert "low" in severities and severities & {"high", "critical"}
    high = (await agent.call("tension_list", severity="high"))["tensions"]
    assert high and {row["severity"] for row in high} <= {"high", "critical"}


async def test_an_entity_is_found_by_an_alias_in_another_case(agent: Believer) -> None:
    await agent.hold("Node.js runs the shop", "Node.js")
    await agent.hold("NodeJS has one thread", "NodeJS")
    answer = await agent.call("entity_search", query="nodeJS")
    [entity] = answer["entities"]
    assert entity["name"] == "Node.js" and entity["aliases"] == ["NodeJS"] and entity["belief_count"] == 2
    [(merged,)] = agent.node.store.sql("SELECT entity_id FROM entity_resolutions")
    got = await agent.call("entity_get", entity_id=merged, include_beliefs=True, belief_limit=1)
    assert got["resolved_from"] == merged and got["entity"]["id"] == entity["id"]
    assert [belief["content"] for belief in got["beliefs"]] == ["NodeJS has one thread"]
    assert len((await agent.call("belief_query", query="shop thread", entity_id=merged))["beliefs"]) == 2


async def test_another_source_reinforces_and_the_same_one_changes_nothing(agent: Believer) -> None:
    content = "Backups run at night"
    first = await agent.hold(content, source_ref="https://a.example/x", confidence={"overall": 0.5})
    same = await agent.call("belief_create", content=content.upper(), source_ref="https://a.example/x")
    assert (same["deduplicated"], same["action"], same["belief"]["id"]) == (True, "unchanged", first["id"])
    second = await agent.call("belief_create", content=content, source_ref="https://b.example/x")
    third = await agent.call("belief_create", content=content, source_ref="https://c.example/x")
    assert [(answer["action"], answer["corroboration_count"]) for answer in (second, third)] == [
        ("reinforced", 2),
        ("reinforced", 3),
    ]
    assert [answer["belief"]["confidence"]["overall"] for answer in (second, third)] == [0.65, 0.8]
    assert round(third["belief"]["confidence"]["corroboration"], 3) == 0.784


async def test_what_is_wrong_is_refused_with_the_toolsets_codes(agent: Believer) -> None:
    nobody = str(uuid.uuid4())
    cases = [
        ("belief_create", {"content": "  "}, "INVALID_PARAMS"),
        ("belief_create", {"content": "x", "confidence": {"overall": 1.2}}, "INVALID_PARAMS"),
        ("belief_create", {"content": "x", "confidence": {"vibe": 0.2}}, "INVALID_PARAMS"),
        ("belief_create", {"content": "x", "entities": [{"name": "y", "type": "planet"}]}, "INVALID_PARAMS"),
        ("belief_create", {"content": "x", "entities": [{"type": "tool"}]}, "INVALID_PARAMS"),
        ("belief_create", {"content": "x", "valid_from": "soon"}, "INVALID_PARAMS"),
        ("belief_get", {"belief_id": "7"}, "INVALID_PARAMS"),
        ("belief_get", {"belief_id": nobody}, "BELIEF_NOT_FOUND"),
        ("belief_supersede", {"old_belief_id": nobody, "new_content": "x", "reason": "y"}, "BELIEF_NOT_FOUND"),
        ("belief_query", {"query": "x", "entity_id": nobody}, "ENTITY_NOT_FOUND"),
        ("belief_query", {"query": "x", "limit": 0}, "INVALID_PARAMS"),
        ("entity_get", {"entity_id": nobody}, "ENTITY_NOT_FOUND"),
        ("entity_search", {"query": "x", "type": "planet"}, "INVALID_PARAMS"),
        ("tension_list", {"entity_id": nobody}, "ENTITY_NOT_FOUND"),
        ("tension_resolve", {"tension_id": nobody, "resolution": "x", "action": "keep_both"}, "TENSION_NOT_FOUND"),
        ("tension_resolve", {"tension_id": nobody, "resolution": "x", "action": "merge"}, "INVALID_PARAMS"),
    ]
    for tool, arguments, code in cases:
        answer = await agent.call(tool, **arguments)
        assert (answer["success"], answer["error_code"]) == (False, code), (tool, arguments, answer)
        assert [*answer.values()].count(answer["error_message"]) == 1
    assert agent.node.store.sql("SELECT count(*) FROM beliefs") == [(0,)]


async def test_a_belief_of_a_moment_ago_that_shares_no_entity_is_named_or_the_answer_is_pending(
    agent: Believer, node: BeliefNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    await agent.hold("The gateway listens on port 1")
    found = await agent.call("belief_create", content="The gateway listens on port 2")
    assert len(found["tensions_detected"]) == 1 and "pending" not in found
    monkeypatch.setattr("tests.talos.node.STAGES", tuple(stage for stage in STAGES if stage != "embed"))
    await agent.call("belief_create", content="The tide gauge is in the harbour")
    waiting = await agent.call("belief_create", content="The tide gauge is in the river")
    assert waiting["pending"] is True and waiting["belief"]["content"] == "The tide gauge is in the river"
