"""While the log is away every write is kept and says so, order holds, and reads say `stale` until it is applied."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_ingress.call import Call, ClientConnection
from mcp_ingress.door import REQUEST_ID_META, Answer, Door, Request, Visitor
from mcp_ingress.inventory import find_tools
from mcp_ingress.resource import find_resources
from mcp_ingress.spool import SPOOLED
from processors.inner_voice.config import InnerVoiceConfig
from streams.errors import LogUnavailable
from streams.positions import Freshness
from streams.topics import MEMORY
from tests.ingress.parts import events_on, services
from tests.ingress.test_spool import opened
from tests.valence.conftest import BeliefNode

SESSION = "2026-01-05-away"
UUID = "00000000-0000-4000-8000-000000000001"
WRITES: dict[str, dict[str, Any]] = {
    "remember": {"text": "Caches lie."},
    "session_open": {"session_id": SESSION, "goal": "Go on"},
    "journal_write": {"content": "Caches lie.", "category": "insight"},
    "friction_log": {"description": "Slow", "category": "tooling"},
    "reflect": {"content": "I realized I wait."},
    "session_close": {"session_id": SESSION},
    "session_start": {"platform": "api"},
    "session_end": {"session_id": UUID},
    "exchange_add": {"session_id": UUID, "role": "user", "content": "Well."},
    "insight_extract": {"session_id": UUID, "content": "Caches lie."},
    "pattern_record": {"type": "preference", "description": "Tabs", "evidence": [UUID]},
    "pattern_reinforce": {"pattern_id": UUID},
    "belief_create": {"content": "The cache is cold."},
    "belief_supersede": {"old_belief_id": UUID, "new_content": "The cache is warm.", "reason": "seen"},
    "tension_resolve": {"resolution": "seen", "action": "keep_both"},
    "store_raw_dialogue": {"session_id": "s", "speaker": "user", "content": "Well."},
    "store_episode": {"query": "why", "reward": 0.5, "reflection": "Problem: none. Lesson: none."},
    "compress_to_l2_insight": {"content": "Caches lie.", "source_ids": []},
    "store_memory": {"content": "Caches lie."},
    "inject_context": {"content": "Caches lie.", "rationale": "seen"},
    "manage_teleological_profile": {"action": "create", "name": "Caches"},
    "trigger_recalibration": {"level": 2},
    "update_working_memory": {"content": "Look at the cache."},
    "adjust_coupling": {"new_K": 3},
    "adjust_neuromodulator": {"modulator": "dopamine", "delta": 0.5},
}
"""Of each tool that writes at once, what is written here."""
ASK_FIRST = {
    *("store_dual_judge_scores", "get_golden_test_results", "correct", "update_synergy_matrix", "fuse_embeddings"),
    *("compute_teleological_vector", "auto_bootstrap_north_star", "discover_sub_goals", "trigger_drift_correction"),
    *("trigger_dream", "abort_dream", "trigger_consolidation", "trigger_workspace_broadcast"),
}
"""Tools that ask judges or the store before they write."""
OF_THE_NODE = ["get_graph_manifest"]
"""Reads that tell what the node is made of, and nothing that is stored."""
READS: dict[str, dict[str, Any]] = {
    "recall": {"query": "caches"},
    "sessions": {},
    "journal_query": {"query": "caches"},
    "graph_query": {"cypher": "MATCH (s:Session) RETURN count(s)"},
    "pattern_check": {"session_id": SESSION},
    "session_get": {"session_id": UUID},
    "session_list": {},
    "session_find_by_room": {"external_room_id": "room"},
    "exchange_list": {"session_id": UUID},
    "pattern_list": {},
    "belief_get": {"belief_id": UUID},
    "belief_query": {"query": "cache"},
    "entity_get": {"entity_id": UUID},
    "entity_search": {"query": "cache"},
    "tension_list": {},
    "hybrid_search": {"query_text": "cache"},
    "search_graph": {"query": "caches"},
    "search_teleological": {"query_content": "caches"},
    "get_amortized_shortcuts": {},
    "omni_infer": {"source": UUID, "direction": "abduction"},
    "get_memetic_status": {},
    "get_alignment_drift": {},
    **{name: {} for name in ("get_kuramoto_sync", "get_workspace_status", "get_ego_state", "get_consciousness_state")},
    "get_neuromodulation_state": {},
    "get_steering_feedback": {},
    "utl_status": {},
    "get_threshold_status": {},
    "get_calibration_metrics": {},
    "get_dream_status": {},
    "get_graph_manifest": {},
    "get_autonomous_status": {},
    "get_pruning_candidates": {},
    "inner_voice.retrieve": {"query": "cache"},
}
"""Of each tool that reads the store, what is asked here; of an id that nothing has the error says `stale`."""
RESOURCES = (
    "memory://l2-insights?query=cache",
    "memory://episode-memory?query=cache",
    "memory://l0-raw?session_id=s",
    "memory://working-memory",
    "memory://stale-memory",
    f"thalweg://memory/{UUID}",
)


class Agent:
    """Calls through the door, on a connection that has written nothing itself unless the test keeps it."""

    def __init__(self, node: BeliefNode) -> None:
        self.node = node
        self.inventory = find_tools()
        self.door = Door(node.services, self.inventory, find_resources(), rate_limit=1e6)

    async def call(self, tool: str, **arguments: Any) -> Answer:
        return await self.door.call(Visitor(self.door.local), Request(tool, arguments))

    async def read(self, uri: str) -> Answer:
        return await self.door.read(Visitor(self.door.local), uri, {})

    async def every_read(self) -> dict[str, bool]:
        """Whether each read says that it may lack the latest writes."""
        said = {tool: (await self.call(tool, **arguments)).body for tool, arguments in READS.items()}
        said |= {uri: (await self.read(uri)).body for uri in RESOURCES}
        return {name: bool({**body, **body.get("diagnostics", {})}.get("stale")) for name, body in said.items()}

    async def tension(self) -> str:
        """The id of one."""
        for content in ("Redis is fast", "Redis is not fast"):
            await self.call("belief_create", content=content, entities=[{"name": "Redis", "type": "tool"}])
        [tension] = (await self.call("tension_list")).body["tensions"]
        return str(tension["id"])


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    node = BeliefNode(tmp_path)
    node.services.parts[InnerVoiceConfig] = InnerVoiceConfig(is_enabled=True)
    yield Agent(node)
    node.close()


def test_these_are_all_tools_and_resources_that_write_at_once_or_read_the_store(agent: Agent) -> None:
    tools = agent.inventory.tools.values()
    assert {tool.name for tool in tools if tool.kind == "write"} == WRITES.keys() | ASK_FIRST
    assert {tool.name for tool in tools if tool.kind == "read"} == READS.keys() | {"ping"}
    assert {find_resources().name_of(uri) for uri in RESOURCES} == set(find_resources().resources)


async def test_a_spooled_write_of_any_tool_says_that_it_is_accepted_and_not_to_be_sent_again(agent: Agent) -> None:
    tension_id = await agent.tension()
    agent.node.is_down = True
    for tool, arguments in WRITES.items():
        more = {"tension_id": tension_id} if tool == "tension_resolve" else {}
        answer = await agent.call(tool, **arguments, **more)
        said = answer.body
        assert (said.get("spooled"), said.get("message"), answer.is_error) == (True, SPOOLED, False), (tool, said)
        assert "warnings" not in said or tool == "store_episode", "what is spooled is not surely unknown"
        jsonschema_rs.validate(dict(agent.inventory.tools[tool].output_schema), said)
        # as the interfaces of the toolsets print it: degraded for some, accepted for Cognitive Memory
        assert said.get("success", True) is not said.get("degraded", False), (tool, said)
    assert SPOOLED.startswith("Accepted") and "Do not send it again" in SPOOLED
    agent.node.is_down = False
    assert await agent.node.spool.drain(agent.node.services.log) >= len(WRITES)


async def test_the_subject_of_a_request_is_the_session_that_it_belongs_to(agent: Agent) -> None:
    for tool in ("session_open", "journal_write", "friction_log", "reflect", "session_close"):
        await agent.call(tool, **WRITES[tool] | {"session_id": SESSION})
    for tool in ("session_end", "exchange_add", "insight_extract", "pattern_reinforce"):
        await agent.call(tool, **WRITES[tool] | {"session_id": UUID})
    await agent.call("store_raw_dialogue", **WRITES["store_raw_dialogue"])
    requests = [event for event in agent.node.published if "request_id" in event.data]
    named = {event.type: (event.subject, event.data.get("session_id")) for event in requests}
    assert named.pop("thalweg.cm.l0.stored.v1") == (None, "s"), "a dialogue's session is the caller's own word"
    assert len(named) == 9 and all(subject == session_id for subject, session_id in named.values()), named


async def test_a_call_that_is_repeated_has_the_id_of_the_first_whatever_the_node_finds_for_it_meanwhile(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share of its sources that an insight means is the node's finding, and no part of the request's identity."""
    for coverage in ({}, {"source_coverage": 0.5, "coverage_model": "m"}):

        async def found(*_: Any, coverage: dict[str, Any] = coverage) -> dict[str, Any]:
            return coverage

        monkeypatch.setattr("mcp_ingress.toolsets.cognitive_memory.compress_to_l2_insight._coverage", found)
        arguments = WRITES["compress_to_l2_insight"]
        await agent.door.call(
            Visitor(agent.door.local), Request("compress_to_l2_insight", arguments, {REQUEST_ID_META: "r"})
        )
    first, second = (event for event in agent.node.published if event.type == "thalweg.cm.l2.stored.v1")
    assert first.id == second.id and second.data["source_coverage"] == 0.5 and "source_coverage" not in first.data


@pytest.mark.process
async def test_after_a_spooled_write_every_read_says_stale_until_the_write_is_applied(agent: Agent) -> None:
    agent.node.is_down = True
    assert (await agent.call("journal_write", content="Caches lie.", category="insight")).body["spooled"]
    fresh = [name for name, is_stale in (await agent.every_read()).items() if not is_stale]
    assert fresh == OF_THE_NODE, "on a new connection too"
    agent.node.is_down, agent.node.is_behind = False, True
    assert await agent.node.spool.drain(agent.node.services.log) > 0
    fresh = [name for name, is_stale in (await agent.every_read()).items() if not is_stale]
    assert fresh == OF_THE_NODE, "it is on the log by now, and not in the store"
    agent.node.catch_up()
    assert not any((await agent.every_read()).values())
    found = (await agent.call("journal_query", query="caches")).body["results"]
    assert {hit["content"] for hit in found} == {"Caches lie."}


async def test_the_empty_token_of_a_spooled_write_makes_no_read_fresh(agent: Agent) -> None:
    agent.node.is_down = True
    written = (await agent.call("journal_write", content="Caches lie.", category="insight")).body
    meta = {"thalweg/freshness": written["freshness"]}
    answer = await agent.door.call(Visitor(agent.door.local), Request("journal_query", {"query": "caches"}, meta))
    assert answer.body["stale"] is True


async def test_what_was_spooled_is_not_called_unknown(agent: Agent) -> None:
    """A session whose opening is spooled, or has just followed, may be there when its entry is applied."""
    agent.node.is_down = True
    await agent.call("session_open", session_id=SESSION, goal="Go on")
    said = (await agent.call("journal_write", content="Caches lie.", category="insight", session_id=SESSION)).body
    assert said["spooled"] and "warnings" not in said
    agent.node.is_down, agent.node.is_behind = False, True
    await agent.node.spool.drain(agent.node.services.log)
    said = (await agent.call("journal_write", content="Caches lie still.", category="insight", session_id=SESSION)).body
    assert said["success"] and "warnings" not in said
    agent.node.catch_up()
    said = (await agent.call("journal_write", content="Well.", category="insight", session_id=f"{SESSION}-2")).body
    assert said["warnings"], "now it is surely unknown"


# --- order


async def test_a_write_never_overtakes_one_that_was_spooled_before_it(tmp_path: Path) -> None:
    log = await opened(tmp_path / "log.db", lives=0)
    parts = services(log, tmp_path)
    assert (await written(parts, 1)).spooled
    log.lives = 1000
    assert (await written(parts, 2)).spooled, "the log is back, and the first has not followed yet"
    assert await parts.spool.drain(log) == 2
    assert not (await written(parts, 3)).spooled
    assert [event.data["content"] for event in await events_on(log, MEMORY.name)] == ["1", "2", "3"]
    await log.stop()


@pytest.mark.parametrize("seed", range(3))
async def test_whenever_the_log_goes_and_comes_the_writes_of_a_namespace_lie_on_it_in_order(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    log = await opened(tmp_path / "log.db")
    parts = services(log, tmp_path)
    for number in range(40):
        log.lives = chance.choice((0, 0, 1, 1000))
        if chance.random() < 0.4:
            try:
                await parts.spool.drain(log)
            except LogUnavailable:
                pass  # away
        await written(parts, number)
    log.lives = 1000
    await parts.spool.drain(log)
    contents = [event.data["content"] for event in await events_on(log, MEMORY.name)]
    assert list(dict.fromkeys(contents)) == [str(number) for number in range(40)]
    await log.stop()


async def written(parts: Any, number: int) -> Any:
    """What came of the write with this number."""
    call = Call(parts, ClientConnection(), "default", f"r-{number}", Freshness())
    return await call.publish(
        (MEMORY.name, call.event("talos.journal.written", {"content": str(number), "category": "insight"}))
    )
