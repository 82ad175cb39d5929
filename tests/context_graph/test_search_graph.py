"""search_graph: what is found, how near it is said to be, and what is asked wrongly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from mcp_ingress.door import Request
from mcp_ingress.toolsets.context_graph.memory_arguments import MAX_CONTENT_BYTES
from processors.context_graph.read.nearness import nearness_of, nearness_of_hits
from processors.context_graph.rules.memories import query_vector_id
from processors.embedding.model import TokenEmbedder, encode_query
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.search import search
from streams.event_types.context_graph import MAX_RECALLED, MEMORY_RECALLED
from tests.context_graph.conftest import ModelNode
from tests.context_graph.test_store_memory import FIBONACCI
from tests.patience import PATIENCE_S
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

LEAK = "Pipes that are coupled badly leak."
KURAMOTO = "The Kuramoto model describes synchronization of coupled oscillators"


async def found(agent: Agent, query: str, **more: Any) -> list[dict[str, Any]]:
    answer = await agent.call("search_graph", query=query, **more)
    assert answer["success"] and (answer["count"] == len(answer["results"]) or answer["more"]), answer
    return list(answer["results"])


async def test_a_memory_is_found_with_all_that_was_stored_of_it(agent: Agent) -> None:
    stored = await agent.call("store_memory", **FIBONACCI, rationale="from the kata", importance=0.9)
    [row] = await found(agent, "fibonacci function")
    assert row["fingerprintId"] == stored["fingerprintId"]
    kept = {name: row[name] for name in ("content", "modality", "tags", "importance", "rationale")}
    assert kept == FIBONACCI | {"importance": 0.9, "rationale": "from the kata"}
    assert 0 < row["similarity"] <= 1 and row["similarity"] == row["cosine"], "the model has no tokens"


async def test_a_tag_is_found_as_a_word(agent: Agent) -> None:
    stored = await agent.call("store_memory", **FIBONACCI)
    await agent.call("store_memory", content="Tides turn twice a day.")
    best, *_ = await found(agent, "recursion")
    assert best["fingerprintId"] == stored["fingerprintId"] and best["content"] == FIBONACCI["content"]


async def test_results_stand_in_the_order_of_the_engine(agent: Agent) -> None:
    for content in (KURAMOTO, "Oscillators tick.", "Tides turn twice a day.", "Bread needs salt."):
        await agent.call("store_memory", content=content)
    rows = await found(agent, "synchronization of coupled oscillators", topK=3)
    assert rows[0]["content"] == KURAMOTO and len(rows) <= 3
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)


async def test_of_the_ranked_rows_the_first_that_are_similar_enough_are_shown_however_deep_they_stand(
    agent: Agent,
) -> None:
    for number in range(24):
        words = [word for place, word in enumerate(KURAMOTO.split()) if number >> place % 5 & 1]
        await agent.call("store_memory", content=" ".join([*words, *["and so on"] * (number % 4), str(number)]))
    ranked = await found(agent, KURAMOTO, topK=100)
    deeper = [row for row in ranked if row["similarity"] > ranked[0]["similarity"]]
    assert len(ranked) > 10 and deeper, "the engine weighs more than similarity"
    for row in (*ranked[:5], *deeper):
        best = next(each for each in ranked if each["similarity"] >= row["similarity"])
        shown = await found(agent, KURAMOTO, topK=1, minSimilarity=row["similarity"])
        assert [each["fingerprintId"] for each in shown] == [best["fingerprintId"]]
    assert await found(agent, "quantum chromodynamics", minSimilarity=0.9) == []


async def test_similarity_is_the_mean_over_the_content_tokens_of_the_query(model_node: ModelNode) -> None:
    await Agent(model_node).call("store_memory", content=KURAMOTO)
    assert isinstance(model_node.embedder, TokenEmbedder)
    vector, tokens = encode_query(model_node.embedder, "of the oscillators")
    assert tokens is not None and not tokens.content.all() and tokens.content.any()
    [label] = model_node.indexes.records.allowed(model_node.store.database.cursor(), Filter("default")).labels.tolist()
    query = Query("of the oscillators", vector, Filter("default"), 1, tokens, model_node.embedder.info.space)
    matches = model_node.indexes.space(query.space).match_tokens(tokens, vector, np.array([label]))
    assert matches is not None
    expected = float(matches.rows[0][tokens.content].mean())
    assert nearness_of(model_node.indexes, query, [label])[label].similarity == pytest.approx(expected, abs=1e-5)
    assert abs(expected - float(matches.rows[0].mean())) > 0.01


async def test_the_similarity_that_a_search_has_computed_is_that_of_the_two_texts(model_node: ModelNode) -> None:
    agent = Agent(model_node)
    for content in (KURAMOTO, "Oscillators tick.", LEAK, " ".join([KURAMOTO, LEAK] * 60)):
        await agent.call("store_memory", content=content)
    embedder, cursor = model_node.embedder, model_node.store.database.cursor()
    assert embedder is not None
    vector, tokens = encode_query(embedder, "coupled oscillators")
    query = Query("coupled oscillators", vector, Filter("default"), 10, tokens, embedder.info.space)
    hits = search(cursor, model_node.indexes, query).hits
    assert len(hits) > 2 and all(hit.coverage is not None for hit in hits)
    again = nearness_of(model_node.indexes, query, [hit.label for hit in hits])
    assert nearness_of_hits(model_node.indexes, query, hits) == again
    assert nearness_of_hits(model_node.indexes, query, [replace(hit, coverage=None) for hit in hits]) == again


async def test_what_was_stored_several_times_is_one_row_that_says_so(agent: Agent) -> None:
    for content in ("Tides turn.", "Tides turn.", "tides turn", "Bread needs salt."):
        await agent.call("store_memory", content=content)
    rows = {row["content"].lower().strip("."): row for row in await found(agent, "tides turn")}
    assert rows["tides turn"]["times"] == 3 and len(rows["tides turn"]["also"]) == 1
    assert "times" not in rows.get("bread needs salt", {})


async def test_only_the_modality_that_is_asked_for_is_found(agent: Agent) -> None:
    for modality in ("text", "code", "mixed"):
        await agent.call("store_memory", content=f"fibonacci as {modality}", modality=modality)
    assert [row["modality"] for row in await found(agent, "fibonacci", modality="code")] == ["code"]
    assert {row["modality"] for row in await found(agent, "fibonacci")} == {"text", "code", "mixed"}


async def test_memories_of_other_toolsets_are_not_found(agent: Agent) -> None:
    await agent.call("journal_write", content=KURAMOTO, category="insight")
    assert await found(agent, KURAMOTO) == []
    stored = await agent.call("store_memory", content=KURAMOTO)
    [row] = await found(agent, KURAMOTO)
    assert row["fingerprintId"] == stored["fingerprintId"]


async def test_a_memory_without_its_vector_yet_is_found_by_its_words(agent: Agent, node: EmbeddingNode) -> None:
    node.is_slow = True
    await agent.call("store_memory", content=KURAMOTO)
    [row] = await found(agent, "Kuramoto")
    assert (row["similarity"], row["cosine"]) == (0.0, None)


async def test_the_printed_query_finds_the_printed_memory_at_the_printed_similarity(model_node: ModelNode) -> None:
    agent = Agent(model_node)
    await agent.call("store_memory", content=KURAMOTO, importance=0.8)
    for content in ("Tides turn twice a day.", "Neural networks need data.", "The clock of the oscillator is late."):
        await agent.call("store_memory", content=content)
    rows = await found(agent, "neural oscillator synchronization", topK=5, minSimilarity=0.7)
    assert [row["content"] for row in rows] == [KURAMOTO]
    assert rows[0]["similarity"] >= 0.7 > rows[0]["cosine"] > 0.6


async def test_a_row_says_in_which_views_the_memory_is_near(model_node: ModelNode) -> None:
    agent = Agent(model_node)
    for content in (KURAMOTO, LEAK):
        await agent.call("store_memory", content=content)
    rows = {row["content"]: row for row in await found(agent, "how do coupled oscillators synchronise?")}
    near, far = rows[KURAMOTO]["views"], rows[LEAK]["views"]
    assert {"E1", "E2", "E6", "E9", "E12", "E13"} <= near.keys() <= {f"E{number}" for number in range(1, 14)}
    assert all(near[view] > far[view] for view in ("E1", "E6", "E9", "E12", "E13"))
    assert near["E1"] == pytest.approx(rows[KURAMOTO]["cosine"], abs=2e-3)


async def test_a_row_says_how_far_the_memory_serves_the_purpose_of_the_store(model_node: ModelNode) -> None:
    agent, odd = Agent(model_node), "Bread needs salt and synchronization."
    for content in (
        KURAMOTO,
        "Coupled oscillators synchronise.",
        "Oscillators synchronise when they are coupled.",
        odd,
    ):
        await agent.call("store_memory", content=content)
    rows = {row["content"]: row for row in await found(agent, "synchronization of coupled oscillators")}
    assert len(rows) == 4
    central, other = rows[KURAMOTO], rows[odd]
    assert central["thetaToNorthStar"] > other["thetaToNorthStar"]
    assert central["purposeAlignment"] > other["purposeAlignment"] and 0 <= other["purposeAlignment"] <= 1
    assert {row["dominantEmbedder"] for row in rows.values()} <= {f"E{number}" for number in range(1, 14)}
    assert central["dominantEmbedder"] in central["views"]


async def test_a_picture_that_is_bytes_is_found_by_what_was_said_of_it(model_node: ModelNode) -> None:
    agent = Agent(model_node)
    content = "data:image/png;name=harbour.png;base64,iVBORw0KGgo" + "AAAA" * 50
    stored = await agent.call(
        "store_memory", content=content, modality="image", rationale="A lighthouse in the evening"
    )
    await agent.call("store_memory", content="Bread needs salt.")
    best, *_ = await found(agent, "lighthouse at dusk")
    assert (best["fingerprintId"], best["content"]) == (stored["fingerprintId"], content) and "passage" not in best


async def test_of_a_long_content_the_part_that_fits_is_shown_and_the_rest_has_an_address(model_node: ModelNode) -> None:
    agent = Agent(model_node)
    filler = " ".join(f"Truck {number} whines in winter until its gearbox is warm." for number in range(300))
    needle = "The spare key of the boathouse hangs behind the blue barometer."
    await agent.call("store_memory", content=f"{filler} {needle} {filler}", tags=["workshop"])
    [row] = await found(agent, "Where is the spare key of the boathouse?")
    assert needle in row["content"] and row["truncated"] is True
    start, end = row["passage"]["start"], row["passage"]["end"]
    assert f"{filler} {needle} {filler}"[start:end] == row["content"]
    assert row["whole"] == f"thalweg://memory/{row['fingerprintId']}"


@pytest.mark.process
async def test_a_mebibyte_of_content_is_kept_and_found(agent: Agent) -> None:
    line = "Gulls nest on the north wall of the harbour.\n"
    content = (line * (MAX_CONTENT_BYTES // len(line) + 1))[: MAX_CONTENT_BYTES - 7] + " barome"
    assert (await agent.call("store_memory", content=content))["deduplicated"] is False
    [row] = await found(agent, "gulls of the harbour")
    assert row["truncated"] and len(row["content"]) < 6000
    assert len(orjson.dumps(row)) < 24_000


async def test_what_was_returned_is_left_on_the_log_without_any_text(agent: Agent, node: EmbeddingNode) -> None:
    for number in range(60):
        await agent.call("store_memory", content=f"{KURAMOTO}, {number}.")
    agent.door.start()
    rows = await found(agent, KURAMOTO, topK=60)
    await found(agent, "nothing of the kind", minSimilarity=1.0)
    assert await agent.door.publisher.flushed(PATIENCE_S)
    await agent.door.stop()
    [told] = [event for event in node.published if event.type == MEMORY_RECALLED]
    assert told.data["query_vector_id"] == query_vector_id("default", KURAMOTO) and told.data["tool"] == "search_graph"
    assert len(told.data["results"]) == MAX_RECALLED
    for row, result in zip(rows, told.data["results"], strict=False):
        assert result["memory_id"] == row["fingerprintId"]
        assert result["alignments"] == [row["views"].get(f"E{number}") for number in range(1, 14)]
    assert "Kuramoto" not in orjson.dumps(told.data).decode()
    assert node.store.sql("SELECT count(*), count(DISTINCT rank) FROM context_recalls") == [(50, 50)]


@pytest.mark.parametrize(
    ("arguments", "reason", "field", "sentence"),
    [
        ({}, "missing", "query", "`query` is missing"),
        ({"query": "  "}, "missing", "query", "`query` is blank"),
        ({"query": "x", "topK": 0}, "range", "topK", "is 0; at least 1 is accepted"),
        ({"query": "x", "topK": 101}, "range", "topK", "is 101; at most 100 is accepted"),
        ({"query": "x", "topK": 2.5}, "type", "topK", "must be an integer"),
        ({"query": "x", "minSimilarity": float("nan")}, "range", "minSimilarity", "a finite number is expected"),
        ({"query": "x", "minSimilarity": -0.5}, "range", "minSimilarity", "at least 0"),
        ({"query": "x", "modality": "video"}, "enum", "modality", "must be one of text, code"),
        ({"query": "x" * 10_001}, "range", "query", "at most 10000"),
    ],
)
async def test_what_is_asked_wrongly_is_refused_with_a_sentence_that_names_the_argument(
    asked: Agent, arguments: dict[str, Any], reason: str, field: str, sentence: str
) -> None:
    answer = await asked.door.call(asked._visitor, Request("search_graph", arguments))
    assert answer.failure is not None and (answer.failure.plane, answer.failure.rpc_code) == ("jsonrpc", -32602)
    assert sentence in answer.body["message"]
    assert (answer.body["reason"], answer.body["field"]) == (reason, field)
