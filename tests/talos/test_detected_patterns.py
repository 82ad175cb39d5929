"""What stages make of what was observed again and again is told, searchable by words and meaning, and a snippet."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from processors.embedding.hashing import HashingEmbedder
from processors.frame.stage import Stage, StageRunner
from processors.inner_voice.config import InnerVoiceConfig
from processors.talos.rules.identifiers import wordless_id
from processors.talos.stages.consolidate import Consolidate
from processors.talos.stages.patterns import Patterns
from streams.codec import encode
from streams.events import Event
from streams.log.base import Log
from streams.topics import MEMORY
from tests.processors.harness import run_stage
from tests.talos.making import make_event
from tests.talos.node import SmallNode

NAME = "Recurring friction: The linter hangs"


@pytest.fixture
async def node(tmp_path: Path) -> Any:
    node = SmallNode(tmp_path, HashingEmbedder())
    node.services.parts[InnerVoiceConfig] = InnerVoiceConfig(is_enabled=True)
    yield node
    node.close()


async def session(node: SmallNode, name: str) -> str:
    session_id = f"2026-01-05-{name}"
    await node.call("session_open", session_id=session_id, goal="Find the leak")
    await node.call("friction_log", description="The linter hangs", category="tooling", session_id=session_id)
    await node.call("session_close", session_id=session_id)
    return session_id


async def derived(node: SmallNode, stage: Stage, *events: Event) -> list[Event]:
    """The facts that the stage publishes about these, applied where they belong."""
    records = [node.store.record(encode(MEMORY.name, event)) for event in events]
    node.process(records)
    before = len(node.published)
    await run_stage(StageRunner(stage, cast(Log, node), node.clock), records)
    return node.published[before:]


def close_again(session_id: str) -> Event:
    return make_event(
        "talos.session.closed", {"session_id": session_id}, event_id=f"close-{session_id}", namespace="default"
    )


async def test_the_third_session_makes_a_pattern_that_is_told_once_and_found(node: SmallNode) -> None:
    sessions = [await session(node, name) for name in ("a", "b", "c", "d")]
    stage = Patterns(node.reader, node.applied, node.embed)
    facts = await derived(node, stage, *(close_again(session_id) for session_id in sessions))
    [told] = [fact for fact in facts if fact.type == "thalweg.knowledge.pattern_detected.v1"]
    assert told.data["trace_id"] == f"sess-{sessions[0]}" and "linter" not in str(told.data)
    [pattern_id] = [fact.data["pattern_id"] for fact in facts if fact.type == "thalweg.talos.pattern.detected.v1"]
    assert told.data["attributes"]["talos.id"] == wordless_id(pattern_id) and wordless_id(pattern_id) != pattern_id
    told_rows = node.store.sql("SELECT session_id FROM session_events WHERE event_type = 'knowledge.pattern_detected'")
    assert told_rows == [(sessions[0],)]
    again = await derived(node, stage, close_again(sessions[0]))
    assert {fact.type for fact in again} == {"thalweg.talos.pattern.signalled.v1"}
    found = await node.call("journal_query", query="linter that hangs", entity_types=["Pattern"])
    [hit] = found["results"]
    assert (hit["id"], hit["content"]) == (pattern_id, NAME)
    assert {one["id"] for one in hit["related"]} >= set(sessions) and "degraded" not in found
    assert hit["score"] > 0 and node.store.sql("SELECT count(*) FROM embeddings WHERE record_id = ?", pattern_id) == [
        (1,)
    ]
    snippets = (await node.call("inner_voice.retrieve", query=NAME, mix=1.0))["snippets"]
    assert snippets[0]["id"] == f"o:{pattern_id}" and snippets[0]["score"] > 0.99


async def test_an_insight_of_repeated_observations_has_a_vector_and_is_a_snippet(node: SmallNode) -> None:
    for _ in range(2):
        await node.call("journal_write", content="The tide gauge drifts", category="observation")
    node.clock.time += timedelta(days=8)
    entry = {"content": "A new day.", "category": "reflection"}
    event = make_event("talos.journal.written", entry, event_id="day", time=node.clock.time, namespace="default")
    facts = await derived(node, Consolidate(node.reader, node.applied, node.embed), event)
    [insight] = [fact.data["entities"][0] for fact in facts if fact.type == "thalweg.talos.entities.extracted.v1"]
    assert insight["text"] == "Observed repeatedly: The tide gauge drifts"
    snippets = (await node.call("inner_voice.retrieve", query=insight["text"], mix=1.0))["snippets"]
    assert snippets[0]["id"] == f"o:{insight['id']}"
    [hit] = (await node.call("journal_query", query="observed repeatedly tide gauge", entity_types=["Insight"]))[
        "results"
    ]
    assert hit["id"] == insight["id"]
