"""The reference's examples of Valence's beliefs, request by request.

The real MCP client, the real node, the real log and detector.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.e2e.program import Program
from tests.e2e.test_agent import answered, call, over_stdio, refused

pytestmark = pytest.mark.timeout(300)


async def test_query_first_then_create_then_the_tension_that_it_makes_and_its_end(thalweg: Program) -> None:
    async with over_stdio(thalweg) as client:
        assert (await call(client, "belief_query", query="user's preferred deployment strategy"))["total_count"] == 0
        first = await call(
            client,
            "belief_create",
            content="The user prefers blue green deployments",
            confidence={"overall": 0.8, "source_reliability": 0.9},
            domain_path=["tech", "architecture"],
            source_type="document",
            source_ref="The runbook",
            entities=[{"name": "Deployments", "type": "concept", "role": "subject"}],
        )
        found = await call(
            client, "belief_query", query="user's preferred deployment strategy", domain_filter=["architecture"]
        )
        [belief] = found["beliefs"]
        printed = {
            "content": "The user prefers blue green deployments",
            "confidence": {"overall": 0.8, "source_reliability": 0.9},
            "domain_path": ["tech", "architecture"],
        }
        assert printed.items() <= belief.items() and found["total_count"] == 1 and 0 < belief["relevance_score"] <= 1
        assert {"type": "document", "title": "The runbook"}.items() <= belief["source"].items() and belief[
            "created_at"
        ].endswith("Z")

        second = await call(
            client,
            "belief_create",
            content="The user never prefers blue green deployments",
            entities=[{"name": "deployments"}],
        )
        [ahead] = second["tensions_detected"]
        entity_id = first["belief"]["entities"][0]["entity"]["id"]
        listed = await call(client, "tension_list", entity_id=entity_id)
        assert [row["id"] for row in listed["tensions"]] == [ahead["id"]] and listed["total_count"] == 1
        assert {name: listed["tensions"][0][name] for name in ("type", "severity", "belief_a_id", "belief_b_id")} == {
            name: ahead[name] for name in ("type", "severity", "belief_a_id", "belief_b_id")
        }
        ended = await call(
            client, "tension_resolve", tension_id=ahead["id"], resolution="A typing error", action="supersede_b"
        )
        assert [row["status"] for row in ended["beliefs"]] == ["active", "superseded"]
        assert (await call(client, "entity_get", entity_id=entity_id, include_beliefs=True))["beliefs"] == [
            ended["beliefs"][0]
        ]


async def test_of_many_supersedes_at_once_one_wins_and_the_others_are_told(thalweg: Program) -> None:
    async with over_stdio(thalweg) as client:
        old = (await call(client, "belief_create", content="The port is 1"))["belief"]["id"]

        async def supersede(number: int) -> dict[str, object]:
            fields = {"old_belief_id": old, "new_content": f"The port is {number}", "reason": "moved"}
            answer = await answered(client, "belief_supersede", fields)
            body: dict[str, object] = answer.structured_content or {}
            return body

        answers = await asyncio.gather(*(supersede(number) for number in range(2, 8)))
        [won] = [answer for answer in answers if answer["success"]]
        heads = {answer["details"]["current_id"] for answer in answers if not answer["success"]}  # type: ignore[index]
        assert heads == {won["new_belief"]["id"]} and len(answers) == 6  # type: ignore[index]
        history = (await call(client, "belief_get", belief_id=old, include_history=True))["history"]
        assert [step["is_current"] for step in history] == [False, True]
        unknown = await refused(client, "belief_get", belief_id="00000000-0000-4000-8000-000000000000")
        assert unknown["error_code"] == "BELIEF_NOT_FOUND" and unknown["error_message"]


async def test_of_resolutions_at_once_one_wins_and_the_others_are_told_which(thalweg: Program) -> None:
    async with over_stdio(thalweg) as client:
        await call(client, "belief_create", content="The cache is on", entities=[{"name": "cache"}])
        stated = await call(client, "belief_create", content="The cache is not on", entities=[{"name": "cache"}])
        [tension] = stated["tensions_detected"]

        async def resolve(number: int) -> dict[str, Any]:
            fields = {
                "tension_id": tension["id"],
                "resolution": f"said by {number}",
                "action": ("keep_both", "supersede_a")[number % 2],
            }
            return (await answered(client, "tension_resolve", fields)).structured_content or {}

        answers = await asyncio.gather(*(resolve(number) for number in range(6)))
        [won] = [answer for answer in answers if answer["success"]]
        lost = [answer for answer in answers if not answer["success"]]
        assert len(lost) == 5 and {answer["error_code"] for answer in lost} == {"TENSION_ALREADY_RESOLVED"}
        assert {(answer["details"]["resolution"], answer["details"]["action"]) for answer in lost} == {
            (won["resolution"], won["action"])
        }
        [listed] = (await call(client, "tension_list"))["tensions"]
        assert listed["resolution"] == won["resolution"]
