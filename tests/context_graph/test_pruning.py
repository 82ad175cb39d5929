"""get_pruning_candidates: each reason on memories that were made for it, and what protects a memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from processors.context_graph.rules.memories import memory_id_of
from processors.context_graph.rules.pruning import Standing, priority_of, reason_of, standing_for
from processors.embedding.loader import load_embedder
from streams.codec import encode
from streams.event_types.context_edges import EDGES_FOUND
from streams.event_types.context_goals import GOAL_BOOTSTRAPPED
from streams.event_types.context_graph import MEMORY_RECALLED, MEMORY_STORED
from streams.events import Event
from streams.topics import DERIVED, INVOCATIONS, MEMORY
from tests.context_graph.conftest import ModelNode
from tests.context_graph.test_ends import merging
from tests.talos.making import NOON
from tests.valence_kb.conftest import Agent

OLD, RECENT = 60, 5
SHOP = (
    "Invoices of the shop are rounded half to even.",
    "The shop sends each invoice as a PDF file.",
    "A customer of the shop pays invoices by card.",
    "The shop keeps invoices for ten years.",
    "Taxes of the shop are shown on each invoice.",
    "Refunds of the shop need the number of the invoice.",
    "The shop prints invoices in two languages.",
    "An invoice of the shop has a due date.",
)
SEA = (
    "A whale swam past the old lighthouse at dawn.",
    "Grandmother knitted a red scarf for the winter.",
    "The violin needs new strings before the concert.",
    "Snow covered the tents of the climbers overnight.",
    "Bees prefer the lavender behind the chapel.",
    "The goalkeeper broke a finger in the final.",
    "Volcanic ash grounded the planes in Iceland.",
    "The recipe wants cinnamon and two ripe pears.",
)
STALE = (
    "Customers ask for a copy of their invoice by mail.",
    "The accountant checks unpaid invoices every week.",
    "Discounts of the shop are written below the total.",
    "An invoice without a number is sent back.",
    "Business customers want invoices with a tax number.",
    "The printer of the shop jams with thick paper.",
    "Late invoices of the shop get a reminder.",
    "Gift cards of the shop need no invoice.",
)
ORPHANED = (
    "The shop reads bar codes with a hand scanner.",
    "Invoices over a thousand euros need a signature.",
    "The shop lends an umbrella to regular customers.",
    "Old invoices are shredded in the cellar.",
    "The till of the shop opens with a small key.",
    "A draft invoice carries a grey watermark.",
    "Invoices to schools are sent in September.",
    "The shop window is lit until midnight.",
)
NEWER = tuple(text.replace("shop", "bakery") for text in SHOP)
REDUNDANT = tuple(text.replace("bakery", "bakery really") for text in NEWER)


class Corpus:
    """Forty memories, eight for each reason and eight for none; by reason their ids."""

    def __init__(self, node: ModelNode) -> None:
        self.node = node
        self.ids: dict[str, list[str]] = {}
        self.kept: list[str] = []

    async def publish(self, topic: str, *events: Event) -> None:
        await self.node.publish([encode(topic, event) for event in events])

    async def store(self, days: float, *texts: str) -> list[str]:
        at = NOON - timedelta(days=days)
        events = [Event(text, "producer", MEMORY_STORED, "default", at, {"content": text}) for text in texts]
        await self.publish(MEMORY.name, *events)
        return [memory_id_of(event) for event in events]

    async def join(self, *pairs: tuple[str, str]) -> None:
        edges = [
            {"source_id": min(pair), "target_id": max(pair), "kind": "similar", "weight": 0.5, "confidence": 1.0}
            for pair in pairs
        ]
        await self.publish(
            DERIVED.name, Event(f"edges {pairs[0]}", "producer", EDGES_FOUND, "default", NOON, {"edges": edges})
        )

    async def recall(self, at: datetime, *ids: str) -> None:
        data = {"query_vector_id": "q", "tool": "search_graph", "results": [{"memory_id": one} for one in ids]}
        event = Event(f"recall {at}", "producer", MEMORY_RECALLED, "default", at, data)
        await self.publish(INVOCATIONS.name, event)

    async def found(self, **arguments: Any) -> dict[str, Any]:
        return await Agent(self.node).call("get_pruning_candidates", **{"limit": 1000, **arguments})

    async def reasons(self, **arguments: Any) -> Mapping[str, set[str]]:
        rows: Sequence[dict[str, Any]] = (await self.found(**arguments))["candidates"]
        return {
            reason: {row["memory_id"] for row in rows if row["reason"] == reason}
            for reason in ("redundant", "orphaned", "low_alignment", "stale")
        }


@pytest_asyncio.fixture(scope="module")
async def corpus(tmp_path_factory: pytest.TempPathFactory, model_cache: Path) -> AsyncIterator[Corpus]:
    node = ModelNode(tmp_path_factory.mktemp("pruning"), load_embedder("minilm", cache_dir=model_cache))
    made = Corpus(node)
    for reason, texts in (
        ("none", SHOP),
        ("stale", STALE),
        ("low_alignment", SEA),
        ("orphaned", ORPHANED),
        ("redundant", REDUNDANT),
    ):
        made.ids[reason] = await made.store(OLD, *texts)
    made.kept = await made.store(RECENT, *NEWER)
    joined = [one for reason in ("none", "stale", "low_alignment", "redundant") for one in made.ids[reason]]
    await made.join(*zip(joined[::2], joined[1::2], strict=True), *zip(made.kept[::2], made.kept[1::2], strict=True))
    await made.recall(NOON - timedelta(days=2), *made.ids["none"], *made.kept)
    goal = {"goal_text": "Invoices", "medoid_id": made.ids["none"][0], "member_ids": made.ids["none"]}
    told = {"goal": goal | {"confidence": 0.9, "coherence": 0.9}}
    await made.publish(MEMORY.name, Event("goal", "producer", GOAL_BOOTSTRAPPED, "default", NOON, told))
    yield made
    node.close()


async def test_each_reason_is_said_of_the_memories_that_were_made_for_it(corpus: Corpus) -> None:
    expected = {reason: set(ids) for reason, ids in corpus.ids.items() if reason != "none"}
    assert await corpus.reasons() == expected
    answer = await corpus.found()
    assert answer["summary"]["total_memories"] == 48 and answer["summary"]["total_candidates"] == 32
    assert answer["summary"]["by_reason"] == dict.fromkeys(expected, 8)
    assert answer["summary"]["reclaimable_bytes"] == sum(row["byte_size"] for row in answer["candidates"])
    scores = [row["priority_score"] for row in answer["candidates"]]
    assert scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)
    of = dict(zip(corpus.ids["redundant"], corpus.kept, strict=True))
    assert of == {row["memory_id"]: row["redundant_with"] for row in answer["candidates"] if "redundant_with" in row}


async def test_the_arguments_change_what_is_listed(corpus: Corpus) -> None:
    assert (await corpus.reasons(min_alignment=0.0))["low_alignment"] == set()
    everything = await corpus.reasons(min_alignment=1.0)
    assert everything["low_alignment"] >= {*corpus.ids["low_alignment"], *corpus.ids["stale"], *corpus.ids["none"]}
    late = await corpus.reasons(min_staleness_days=61)
    assert late["stale"] == late["orphaned"] == set()
    assert late["redundant"] == set(corpus.ids["redundant"])
    assert len((await corpus.found(limit=3))["candidates"]) == 3
    assert (await corpus.found(limit=3))["summary"]["total_candidates"] == 32


async def test_a_fresh_memory_is_not_listed_and_a_recall_keeps_one(corpus: Corpus) -> None:
    [fresh] = await corpus.store(0.5, "The harbour master whistles.")
    assert not any(fresh in ids for ids in (await corpus.reasons()).values())
    assert fresh in (await corpus.reasons(min_staleness_days=0))["orphaned"]
    one = corpus.ids["stale"][0]
    await corpus.recall(NOON - timedelta(days=29), one)
    try:
        assert (await corpus.reasons())["stale"] == set(corpus.ids["stale"][1:])
    finally:
        corpus.ids["none"].append(corpus.ids["stale"].pop(0))


async def test_three_edges_halve_the_priority_and_do_not_hide(corpus: Corpus) -> None:
    one, *others = corpus.ids["low_alignment"][:4]
    before = {row["memory_id"]: row for row in (await corpus.found())["candidates"]}[one]
    await corpus.join(*((one, other) for other in others))
    after = {row["memory_id"]: row for row in (await corpus.found())["candidates"]}[one]
    assert (before["protected_by_edges"], before["connections"]) == (False, 1)
    assert (after["protected_by_edges"], after["connections"], after["reason"]) == (True, 3, "low_alignment")
    assert after["priority_score"] < before["priority_score"] / 2


async def test_nothing_is_deleted_by_asking(corpus: Corpus) -> None:
    count = corpus.node.store.sql("SELECT count(*) FROM context_memories")
    published = len(corpus.node.published)
    await corpus.found()
    assert corpus.node.store.sql("SELECT count(*) FROM context_memories") == count
    kinds = {event.type for event in corpus.node.published[published:]}
    assert not any("context" in kind for kind in kinds)


def test_the_priority_is_the_weighted_sum() -> None:
    assert priority_of(Standing("a", 73, 73, 0.2, 0, 10)) == pytest.approx(0.66)
    assert priority_of(Standing("a", 73, 73, None, 0, 10)) == pytest.approx(0.51)
    assert priority_of(Standing("a", 73, 73, 0.2, 3, 10)) == pytest.approx((0.4 + 0.06 + 0.05) / 2)
    assert priority_of(Standing("a", 1e9, 0, -1.0, 0, 10, importance=0.0)) == 1.0
    assert priority_of(Standing("a", 73, 73, 0.2, 0, 10, importance=1.0)) == pytest.approx(0.33)


@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        (Standing("a", 31, 31, 0.1, 0, 1, redundant_with="b"), "redundant"),
        (Standing("a", 31, 31, 0.1, 0, 1), "orphaned"),
        (Standing("a", 31, 31, 0.1, 1, 1), "low_alignment"),
        (Standing("a", 31, 31, 0.4, 1, 1), "stale"),
        (Standing("a", 31, 29, 0.4, 1, 1), None),
        (Standing("a", 31, 31, None, 1, 1), "stale"),
        (Standing("a", 0.9, 0.9, 0.1, 0, 1, redundant_with="b"), None),
        (Standing("a", 1.1, 1.1, 0.1, 0, 1, redundant_with="b"), "redundant"),
        (Standing("a", 30, 30, 0.4, 0, 1), "orphaned"),
    ],
)
def test_the_first_reason_that_holds_is_said(memory: Standing, reason: str | None) -> None:
    assert reason_of(memory, 30, 0.4) == reason


def test_of_two_that_say_the_same_the_one_used_more_stands() -> None:
    pairs = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}
    assert standing_for(pairs, {"a": (2, 1), "b": (1, 3), "c": (1, 2)}) == {"b": "a", "c": "b"}


@pytest.mark.parametrize(
    ("arguments", "reason", "field"),
    [
        ({"limit": 0}, "range", "limit"),
        ({"limit": 1001}, "range", "limit"),
        ({"min_staleness_days": -1}, "range", "min_staleness_days"),
        ({"min_alignment": 1.5}, "range", "min_alignment"),
        ({"min_alignment": float("nan")}, "range", "min_alignment"),
        ({"min_age": 3}, "unknown_argument", "min_age"),
    ],
)
async def test_bad_arguments_get_one_sentence(
    corpus: Corpus, arguments: dict[str, Any], reason: str, field: str
) -> None:
    answer = await Agent(corpus.node).call("get_pruning_candidates", **arguments)
    assert (answer["reason"], answer["field"]) == (reason, field)


async def test_a_store_that_does_not_answer_is_an_error_of_the_tool(corpus: Corpus) -> None:
    corpus.node.reader.is_down = True
    try:
        answer = await Agent(corpus.node).call("get_pruning_candidates")
    finally:
        corpus.node.reader.is_down = False
    assert (answer["error_code"], answer["reason"]) == ("pruning_error", "storage")


async def test_a_memory_that_was_merged_is_no_candidate(corpus: Corpus) -> None:
    pair = corpus.ids["redundant"][0], corpus.kept[0]
    before = (await corpus.found())["summary"]["total_memories"]
    await corpus.publish(MEMORY.name, merging(*pair))
    found = await corpus.found()
    assert not {row["memory_id"] for row in found["candidates"]} & set(pair)
    assert found["summary"]["total_memories"] == before - 1  # two end, and one is made of them
