"""inject_context and the pulse: what a memory teaches is measured once, decided by the log, and told in each answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mcp_ingress.door import Request
from mcp_ingress.toolsets.context_graph.inject_context import FIRST_WINDOW
from mcp_ingress.toolsets.context_graph.pulse import PULSE
from processors.context_graph.rules.learning import ALPHA
from processors.context_graph.rules.lifecycle import INFANCY
from processors.embedding.hashing import HashingEmbedder
from streams.codec import encode
from streams.topics import MEMORY
from tests.processors.harness import Store
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent

KURAMOTO = {
    "content": "The Kuramoto model describes synchronization of coupled oscillators",
    "rationale": "Core concept for consciousness modeling",
    "modality": "text",
    "importance": 0.8,
}
WHY = {"rationale": "for the log"}
SEA = ("tide", "wave", "harbour", "anchor", "sail", "gull", "salt", "reef", "deck", "rope")
CODE = ("parser", "lexer", "token", "grammar", "opcode", "linker", "symbol", "heap", "thread", "mutex")


def said(words: tuple[str, ...], number: int) -> str:
    """A sentence of five of ten words, another one for each number."""
    chosen = [words[(number * 7 + place * (1 + number % 3)) % len(words)] for place in range(5)]
    return f"{' '.join(chosen)} {number}."


async def inject(agent: Agent, content: str, **more: Any) -> dict[str, Any]:
    return await agent.call("inject_context", content=content, **WHY, **more)


def learned(node: SmallNode) -> list[tuple[Any, ...]]:
    return node.store.sql("SELECT interactions, entropy, coherence, learning_score, novel_since FROM context_utl")


async def test_the_printed_request_into_an_empty_store_is_all_new(agent: Agent, node: EmbeddingNode) -> None:
    answer = await agent.call("inject_context", **KURAMOTO)
    utl = answer["utl"]
    assert (utl["entropy"], utl["surprise"], utl["comparedWith"]) == (1.0, 1.0, 0)
    assert utl["coherence"] == 0.5 and utl["learningScore"] == pytest.approx(INFANCY.gain * 0.5)
    assert answer["utl_of"] == "content" and answer["shouldStore"] is True and answer["shouldConsolidate"] is False
    assert answer["johari"] == {"E1": "Blind"} and answer["deduplicated"] is False
    [row] = node.store.sql("SELECT memory_id, rationale, importance, entropy, learning_score FROM context_memories")
    assert row == (answer["fingerprintId"], KURAMOTO["rationale"], 0.8, 1.0, utl["learningScore"])


@pytest.mark.parametrize(
    ("arguments", "reason", "field", "sentence"),
    [
        ({"content": "x"}, "missing", "rationale", "`rationale` is missing"),
        ({"rationale": "y"}, "missing", "content", "`content` is missing"),
        ({"content": " \n", "rationale": "y"}, "missing", "content", "`content` is blank"),
        ({"content": "x", "rationale": "\t"}, "missing", "rationale", "`rationale` is blank"),
        ({"content": "x", "rationale": "y", "importance": 1.1}, "range", "importance", "at most 1 is accepted"),
        ({"content": "x", "rationale": "y", "importance": float("nan")}, "range", "importance", "a finite number"),
        ({"content": "x", "rationale": "y", "modality": "video"}, "enum", "modality", "must be one of"),
        ({"content": "x", "rationale": "y", "tags": ["a"]}, "unknown_argument", "tags", "no argument `tags`"),
    ],
)
async def test_what_cannot_be_measured_is_refused_with_the_argument_and_the_pulse(
    asked: Agent, arguments: dict[str, Any], reason: str, field: str, sentence: str
) -> None:
    answer = await asked.door.call(asked._visitor, Request("inject_context", arguments))
    assert answer.failure is not None and (answer.failure.plane, answer.failure.rpc_code) == ("jsonrpc", -32602)
    assert sentence in answer.body["message"]
    assert (answer.body["reason"], answer.body["field"]) == (reason, field)
    assert answer.body["_cognitive_pulse"]["quadrant"] == "Hidden" and not learned(asked.node)


async def test_the_pulse_has_five_fields_and_follows_what_was_injected_but_not_what_was_stored(
    agent: Agent, node: EmbeddingNode
) -> None:
    before = (await agent.call("search_graph", query="tides"))["_cognitive_pulse"]
    assert before == {
        "entropy": 0.5,
        "coherence": 0.5,
        "learning_score": 0.0,
        "quadrant": "Hidden",
        "suggested_action": "get_neighborhood",
    }
    entropy, score = 0.5, 0.0
    for number in range(3):
        answer = await inject(agent, said(SEA, number))
        entropy += ALPHA * (answer["utl"]["entropy"] - entropy)
        score += ALPHA * (answer["utl"]["learningScore"] - score)
        pulse = answer["_cognitive_pulse"]
        assert (pulse["entropy"], pulse["learning_score"]) == (pytest.approx(entropy), pytest.approx(score))
    stored = await agent.call("store_memory", content="Winds turn.")
    assert stored["_cognitive_pulse"] == pulse and learned(node)[0][0] == 4


async def test_the_same_content_again_is_known_and_keeps_its_id(agent: Agent, node: EmbeddingNode) -> None:
    first, again = await inject(agent, said(SEA, 1)), await inject(agent, said(SEA, 1))
    assert again["fingerprintId"] == first["fingerprintId"] and again["deduplicated"] is True
    assert again["utl"]["surprise"] == 0.0 and again["utl"]["entropy"] < 0.05
    assert node.store.sql("SELECT times, entropy FROM context_memories") == [(2, 1.0)], "what was first measured stays"


async def test_of_two_bodies_under_one_request_id_the_first_stands_and_a_resend_is_answered_as_before(
    agent: Agent, node: EmbeddingNode
) -> None:
    await inject(agent, said(SEA, 1))
    first = await inject(agent, said(SEA, 2), request_id="one")
    resent = await inject(agent, said(SEA, 2), request_id="one")
    values = ("learningScore", "entropy", "coherence", "surprise", "emotionalWeight")
    assert [resent["utl"][name] for name in values] == [first["utl"][name] for name in values]
    assert resent["deduplicated"] is False and "raw" not in resent["utl"]
    other = await inject(agent, said(SEA, 3), request_id="one")
    assert other["reason"] == "conflict" and "used before" in other["message"]
    assert learned(node)[0][0] == 2


@pytest.mark.process
async def test_a_rebuild_from_the_log_learns_the_same(agent: Agent, node: EmbeddingNode) -> None:
    for number in range(60):
        await (
            inject(agent, said(SEA, number)) if number % 4 else agent.call("store_memory", content=said(SEA, number))
        )
    await asyncio.gather(*(inject(agent, said(CODE, number)) for number in range(10)))
    for size in (1, 7, 1000):
        replayed = Store()
        records = [replayed.record(encode(MEMORY.name, event)) for event in node.published]
        for start in range(0, len(records), size):
            replayed.apply(*records[start : start + size])
        [(count, *means, since)] = replayed.sql(
            "SELECT interactions, entropy, coherence, learning_score, novel_since FROM context_utl"
        )
        [(known_count, *known, known_since)] = learned(node)
        assert (count, since) == (known_count, known_since) and count == 70
        assert means == pytest.approx(known, abs=1e-9)


async def test_a_node_that_starts_again_tells_the_pulse_that_it_told_before(agent: Agent, node: EmbeddingNode) -> None:
    pulse = (await inject(agent, said(SEA, 1)))["_cognitive_pulse"]
    node.services.recent = lambda table, key: None
    assert (await agent.call("search_graph", query="tide"))["_cognitive_pulse"] == pulse
    node.reader.is_down = True
    assert await PULSE.read(node.services, "default") == pulse, "read once"
    node.reader.is_down = False
    agent.node.request("context.memory.injected", content="Foreign.", rationale="r", **FINDINGS)
    later = (await agent.call("search_graph", query="tide"))["_cognitive_pulse"]
    assert later["entropy"] == pytest.approx(0.7 * pulse["entropy"] + 0.3 * FINDINGS["entropy"])


FINDINGS = {"entropy": 0.2, "coherence": 0.9, "surprise": 0.1, "emotional_weight": 1.0, "learning_score": 0.15}


async def test_what_a_producer_injects_moves_the_means_only_with_findings(agent: Agent, node: EmbeddingNode) -> None:
    assert node.request("context.memory.injected", content="Bare.", rationale="r")[0] == "applied"
    assert learned(node) == [(1, 0.5, 0.5, 0.0, None)]
    assert node.request("context.memory.injected", content="Measured.", rationale="r", **FINDINGS)[0] == "applied"
    assert learned(node)[0][:2] == (2, pytest.approx(0.41))
    status, message, _ = node.request("context.memory.injected", content=" ", rationale="r", **FINDINGS)
    assert status == "refused" and "blank" in str(message) and learned(node)[0][0] == 2


@pytest.mark.process
async def test_when_the_matter_changes_the_pulse_leaves_open_and_comes_back(agent: Agent) -> None:
    for number in range(90):
        pulse = (await inject(agent, said(SEA, number)))["_cognitive_pulse"]
    assert pulse["quadrant"] == "Open" and pulse["suggested_action"] == "direct_recall"
    turned = [(await inject(agent, said(CODE, number)))["_cognitive_pulse"] for number in range(70)]
    assert max(each["entropy"] for each in turned[:3]) > 0.5 and turned[2]["quadrant"] != "Open"
    assert turned[-1]["entropy"] < 0.5


class RecordingEmbedder(HashingEmbedder):
    """The hashing embedder, with the lengths of the texts that it was given."""

    def __init__(self) -> None:
        super().__init__(128)
        self.lengths: list[int] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.lengths += map(len, texts)
        return super().encode(texts)


@pytest.mark.process
async def test_a_memory_of_many_windows_is_measured_by_its_first(agent: Agent, node: EmbeddingNode) -> None:
    node.services.embedder = recording = RecordingEmbedder()
    answer = await inject(agent, "tide and harbour " * 60_000)
    assert answer["utl_of"] == "first_window" and answer["utl"]["entropy"] == 1.0
    assert recording.lengths == [FIRST_WINDOW]


async def test_without_a_model_a_memory_is_kept_unmeasured_and_says_so(agent: Agent, node: EmbeddingNode) -> None:
    node.services.embedder = None
    answer = await inject(agent, said(SEA, 1))
    assert set(answer["utl"].values()) == {None} and answer["shouldStore"] is None and answer["johari"] == {}
    assert "nothing was measured" in answer["warnings"][0] and learned(node) == [(1, 0.5, 0.5, 0.0, None)]


async def test_while_the_log_is_away_the_request_is_spooled_with_what_was_measured(
    agent: Agent, node: EmbeddingNode
) -> None:
    node.is_down = True
    answer = await inject(agent, said(SEA, 1))
    assert answer["spooled"] is True and answer["utl"]["entropy"] == 1.0 and answer["fingerprintId"]


async def test_a_namespace_learns_from_its_own_memories_alone(agent: Agent, node: EmbeddingNode) -> None:
    for number in range(30):
        await inject(agent, said(SEA, number))
    other = Agent(node)
    object.__setattr__(other._visitor, "principal", type(other.door.local)("other", "elsewhere"))
    answer = await other.call("inject_context", content=said(SEA, 3), **WHY)
    assert answer["utl"]["entropy"] == 1.0 and answer["utl"]["comparedWith"] == 0
    assert answer["_cognitive_pulse"]["entropy"] == pytest.approx(0.65)
