"""What went wrong in other implementations is pinned as absent.

Elsewhere: exact words of any language (`test_findable`), touching an item and so no FIFO (`test_working_memory`),
asking again (`test_providers`), judging, κ of a single document and the baseline of three days (`test_tools`,
`test_agreement`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest

from mcp_ingress.resource import find_resources
from processors.cognitive.reducers import memory as cognitive
from tests.cognitive.node import CognitiveNode, opened
from tests.cognitive.test_tools import golden_set, truth
from tests.processors.harness import NOW, Store, event

GARBAGE: tuple[tuple[str, Any], ...] = (
    ("store_raw_dialogue", {"session_id": "s", "speaker": " ", "content": "x"}),
    ("compress_to_l2_insight", {"content": "x", "source_ids": ["1"]}),
    ("hybrid_search", {"query_text": ""}),
    ("hybrid_search", {"query_text": "x", "weights": {"semantic": 0.5, "keyword": 0.3, "graph": 0.2}}),
    ("update_working_memory", {"content": "x", "importance": "high"}),
    ("store_episode", {"query": "x", "reward": 2, "reflection": "y"}),
    ("store_dual_judge_scores", {"query_id": 0, "query": "x", "docs": []}),
    ("get_golden_test_results", {"day": "today"}),
    ("get_golden_test_results", {}),
    ("ping", {"loud": True}),
)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[CognitiveNode]:
    async with opened(tmp_path) as node:
        yield node


def test_a_vector_is_the_same_in_every_process() -> None:
    said = (
        "from processors.embedding.hashing import HashingEmbedder as E; "
        "print(E().encode(['rivers carve valleys'])[0].tolist())"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", said], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1


async def test_what_is_asked_is_embedded_by_the_model_that_embedded_what_is_stored(node: CognitiveNode) -> None:
    text = "rivers carve valleys"
    await node.ok("compress_to_l2_insight", content=text, source_ids=[])
    found = await node.ok("hybrid_search", query_text=text, weights={"semantic": 1, "keyword": 0})
    assert abs(found["results"][0]["distance"]) < 1e-5


@pytest.mark.parametrize(("tool", "arguments"), GARBAGE)
async def test_every_error_has_details(node: CognitiveNode, tool: str, arguments: dict[str, Any]) -> None:
    error = await node.error(tool, **arguments)
    assert error["details"] and error["error"] in {"Parameter validation failed", "Tool execution failed"}
    assert ("embedding_status" in error) == (tool in {"compress_to_l2_insight", "store_episode"})


async def test_the_golden_test_measures_what_hybrid_search_answers(node: CognitiveNode) -> None:
    for number in range(9):
        await node.ok("compress_to_l2_insight", content=f"rivers carve valley {number} w{number}", source_ids=[])
    queries = golden_set([1])
    for query in queries:
        answer = await node.ok("hybrid_search", query_text=query["query"])
        query["expected_docs"] = [found["id"] for found in answer["results"]]
    node.store.publish(event("cm.golden_set.imported", {"queries": queries}, id="golden"))
    measured = await node.ok("get_golden_test_results")
    assert measured["precision_at_5"] == 1.0 and measured["avg_retrieval_time_ms"] >= 0
    assert {part["precision_at_5"] for part in measured["query_breakdown"].values()} == {1.0}


FILTERS: dict[str, tuple[str, str]] = {
    # what is asked without the filter, and the filter; each leaves less
    "l2-insights.query": ("", "query=rivers"),
    "l2-insights.top_k": ("", "top_k=1"),
    "l2-insights.fidelity_min": ("", "fidelity_min=0.9"),
    "l2-insights.created_after": ("", "created_after={late}"),
    "l2-insights.created_before": ("", "created_before={early}"),
    "episode-memory.query": ("query=rivers&min_similarity=0", "query={none}"),
    "episode-memory.top_k": ("query=rivers&min_similarity=0", "top_k=1"),
    "episode-memory.min_similarity": ("query=rivers&min_similarity=0", "min_similarity=1.0"),
    "episode-memory.reward_min": ("query=rivers&min_similarity=0", "reward_min=0.5"),
    "episode-memory.days_back": ("query=rivers&min_similarity=0", "days_back=1"),
    "l0-raw.session_id": ("", "session_id=one"),
    "l0-raw.date_range": ("", "date_range={late},{late}"),
    "l0-raw.speaker": ("", "speaker=user"),
    "l0-raw.limit": ("", "limit=1"),
    "l0-raw.order": ("", "order=asc"),
    "stale-memory.reason": ("", "reason=MANUAL_ARCHIVE"),
    "stale-memory.days_back": ("", "days_back=1"),
    "stale-memory.importance_min": ("", "importance_min=0.6"),
    "stale-memory.limit": ("", "limit=1"),
}


async def test_no_resource_ignores_a_filter(node: CognitiveNode) -> None:
    assert set(FILTERS) == {
        f"{each.name}.{name}"
        for each in find_resources().resources.values()
        if each.toolset == "cognitive_memory"
        for name in each.parameters
    }
    early = node.clock.now().date()
    for day, (session, speaker, reward) in enumerate((("one", "user", 0.9), ("two", "assistant", -0.9))):
        await node.ok("store_raw_dialogue", session_id=session, speaker=speaker, content=f"line {day}")
        await node.ok(
            "compress_to_l2_insight", content="rivers carve valleys" if day else "it is at the mills", source_ids=[]
        )
        await node.ok("store_episode", query=f"rivers {day}", reward=reward, reflection="Problem: a. Lesson: b.")
        for number in range(11):
            await node.ok("update_working_memory", content=f"item {day} {number}", importance=0.5 + day / 4)
        node.clock.time += timedelta(days=2)
    late = early + timedelta(days=2)
    for which, (before, added) in FILTERS.items():
        base = f"memory://{which.split('.')[0]}"
        added = added.format(early=early, late=late, none=quote_plus("nothing alike 123"))
        name = added.split("=")[0]
        kept = "&".join(part for part in before.split("&") if part and part.split("=")[0] != name)
        without, filtered = (
            await node.read(f"{base}?{before}"),
            await node.read(f"{base}?{'&'.join(filter(None, (kept, added)))}"),
        )
        assert without and without != filtered, which


@pytest.mark.parametrize(
    ("short_type", "data", "function"),
    [
        ("cm.l0.stored", {"session_id": "s", "speaker": "u", "content": "{}"}, "event_number"),
        ("cm.l2.stored", {"content": "{}", "source_ids": []}, "event_number"),
        ("cm.episode.stored", {"query": "{}", "reward": 0, "reflection": "r"}, "event_number"),
        ("cm.wm.updated", {"content": "{}"}, "item_number"),
    ],
)
def test_the_second_of_two_rows_with_one_id_becomes_a_dead_letter(
    monkeypatch: pytest.MonkeyPatch, short_type: str, data: dict[str, Any], function: str
) -> None:
    monkeypatch.setattr(cognitive, function, lambda *given: 7)
    store = Store()
    for number in range(2):
        said = {name: value.format(number) if isinstance(value, str) else value for name, value in data.items()}
        buried = store.publish(event(short_type, said, id=f"e{number}", time=NOW + timedelta(seconds=number))).buried
    [(_, letter)] = buried
    assert letter.error_type == "Poison" and letter.error_message.startswith("id_collision: ")


async def test_a_document_judged_relevant_by_nobody_has_no_made_up_score(node: CognitiveNode) -> None:
    truth(node, 42)
    scored = {
        "query_id": 42,
        "query": "q",
        "documents": [{"id": 1, "judge1": None, "judge2": 0.7}],
        "judge1_model": "a",
        "judge2_model": "b",
    }
    node.store.publish(event("cm.judge.scored", scored, id="scored"))
    assert node.store.sql("SELECT code FROM outcomes WHERE request_id = 'scored'") == [("nothing_to_evaluate",)]
    assert node.store.sql("SELECT judge1_scores, kappa FROM ground_truth") == [(None, None)]
