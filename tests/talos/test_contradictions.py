"""The answer of a write lists what it contradicts, also when that was written a moment before."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.services import Limits
from processors.embedding.hashing import HashingEmbedder
from processors.embedding.model import Embedder
from processors.embedding.query import EncodedDocument, encoded_document
from streams.positions import Freshness
from streams.topics import MEMORY
from tests.patience import PATIENCE_S
from tests.talos.embedding_node import EmbeddingNode
from tests.valence.conftest import Believer

OLD, NEW = "The gateway of the harbour listens on port 8080.", "The gateway of the harbour listens on port 8443."
PAIRS = tomllib.loads((Path(__file__).parents[1] / "fixtures" / "statements.toml").read_text())


PATIENT, QUICK = (Limits(0.05, 1.0, vector_wait_s=seconds) for seconds in (PATIENCE_S, 0.05))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[EmbeddingNode]:
    node = EmbeddingNode(tmp_path)
    node.services.limits = PATIENT
    yield node
    node.close()


async def write(node: EmbeddingNode, content: str, category: str = "insight") -> dict[str, Any]:
    return await node.call("journal_write", content=content, category=category)


async def test_an_entry_lists_the_earlier_one_that_it_changes_once_and_as_searches_name_it(node: EmbeddingNode) -> None:
    before = await write(node, OLD)
    [insight] = before["extracted_entities"]
    assert "contradicts" not in before
    after = await write(node, NEW)
    assert after["contradicts"] == [{"kind": insight["type"], "id": insight["id"], "text": OLD, "how": "change"}]
    assert "pending" not in after


async def test_what_is_added_asked_or_said_again_contradicts_nothing(node: EmbeddingNode) -> None:
    await write(node, OLD)
    for text in (OLD, "The gateway of the harbour has two cores.", "Should the gateway listen on port 8443?"):
        assert "contradicts" not in await write(node, text)


async def test_what_was_corrected_retracted_or_superseded_is_contradicted_by_nothing(node: EmbeddingNode) -> None:
    retracted = (await write(node, OLD))["entry_id"]
    node.request("talos.journal.retracted", entry_id=retracted)
    agent = Believer(node)
    belief = await agent.hold(OLD)
    await agent.call("belief_supersede", old_belief_id=belief["id"], new_content="A gull nests here.", reason="moved")
    assert "contradicts" not in await write(node, NEW)


async def test_an_earlier_memory_without_a_vector_is_compared_too(node: EmbeddingNode) -> None:
    node.is_slow = True
    node.late_stages = frozenset({"embed"})
    await write(node, OLD)
    [row] = (await write(node, NEW))["contradicts"]
    assert row["text"] == OLD and node.store.sql("FROM memory_changes") == []


async def test_a_text_is_compared_in_the_space_of_its_vector_also_when_another_model_goes_live_meanwhile(
    node: EmbeddingNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def encoded_before_the_switch(embedder: Embedder, text: str) -> EncodedDocument:
        encoded = await encoded_document(embedder, text)
        node.services.embedder = HashingEmbedder(dim=64)
        return encoded

    await write(node, OLD)
    monkeypatch.setattr("mcp_ingress.contradictions.encoded_document", encoded_before_the_switch)
    [row] = (await write(node, NEW))["contradicts"]
    assert row["text"] == OLD


async def test_an_earlier_entry_that_is_on_the_log_and_not_applied_is_compared_without_waiting(
    node: EmbeddingNode,
) -> None:
    node.is_behind, node.services.limits = True, QUICK
    before = await write(node, OLD)
    [insight] = before["extracted_entities"]
    after = await write(node, NEW)
    stated = {"kind": insight["type"], "id": insight["id"], "text": OLD, "how": "change"}
    assert after["contradicts"] == [stated] and "pending" not in after
    node.catch_up()
    node.services.limits = PATIENT
    newest = await write(node, "The gateway of the harbour listens on port 9000.")
    assert sorted(row["text"] for row in newest["contradicts"]) == [OLD, NEW]


async def test_while_an_earlier_write_of_another_kind_is_not_applied_the_answer_says_pending(
    node: EmbeddingNode,
) -> None:
    node.is_behind, node.services.limits = True, QUICK
    await node.call("friction_log", description=OLD, category="tooling")
    after = await write(node, NEW)
    assert after["pending"] and after["success"] and "contradicts" not in after
    node.catch_up()
    node.services.limits = PATIENT
    assert "pending" not in await write(node, "Gulls sleep on the roof.")


async def test_a_token_of_a_write_that_another_process_made_is_waited_for(node: EmbeddingNode) -> None:
    node.is_behind, node.services.limits = True, QUICK
    await write(node, OLD)
    foreign = {at: offset + 9 for at, offset in node.connection.last_writes if at.topic == MEMORY.name}
    node.connection.last_writes = Freshness(foreign)
    assert (await write(node, NEW))["pending"]


async def test_while_the_store_is_down_an_entry_is_accepted_and_says_pending(node: EmbeddingNode) -> None:
    await write(node, OLD)
    node.reader.is_down = True
    after = await write(node, NEW)
    assert after["success"] and after["pending"]


async def test_a_belief_lists_the_beliefs_that_it_is_in_tension_with_then_the_entries_that_it_changes(
    node: EmbeddingNode,
) -> None:
    agent = Believer(node)
    held = await agent.hold(OLD)
    entry = await write(node, "The gateway of the harbour listens on port 8081.", "observation")
    assert [(row["kind"], row["id"]) for row in entry["contradicts"]] == [("Belief", held["id"])]
    stated = await agent.call("belief_create", content=NEW)
    assert [tension["belief_a_id"] for tension in stated["tensions_detected"]] == [held["id"]]
    [named] = entry["extracted_entities"]
    rows = [tuple(row.values()) for row in stated["contradicts"]]
    assert rows == [
        ("Belief", held["id"], OLD, "tension"),
        (named["type"], named["id"], "The gateway of the harbour listens on port 8081.", "change"),
    ]


async def test_on_a_quiet_store_the_answer_lists_what_the_stage_finds(node: EmbeddingNode) -> None:
    said: dict[str, str] = {}
    listed: set[tuple[str, str]] = set()
    for pair in [*PAIRS["change"][:12], *PAIRS["harmless"][:8]]:
        for text in (pair["older"], pair["newer"]):
            answer = await write(node, text)
            assert "pending" not in answer
            said |= {answer["entry_id"]: text, answer["extracted_entities"][0]["id"]: text}
            listed |= {(text, row["text"]) for row in answer.get("contradicts", ())}
    found = node.store.sql("SELECT newer_id, older_id FROM memory_changes")
    assert len(found) > 10 and listed == {(said[newer], said[older]) for newer, older in found}
