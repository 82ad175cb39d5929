"""search_teleological: each parameter changes the order of a crafted corpus; what fits no search is refused."""

from __future__ import annotations

from typing import Any

import pytest

from processors.context_graph.rules.groups import GROUPS
from processors.context_graph.rules.strategies import SCOPES, STRATEGIES
from streams.event_types.context_graph import MEMORY_RECALLED
from tests.patience import PATIENCE_S
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

TOOL = "search_teleological"
TEXTS = (
    ("The harbour master raised the mooring fees because the storm broke the eastern quay.", "text"),
    ("def mooring_fee(vessel): return vessel.length * RATE  # harbour_master", "code"),
    ("Mooring fees, mooring fees, mooring fees.", "text"),
    ("Therefore the ferry stays in port: the storm leads to cancelled crossings.", "text"),
    ("Ada Lovelace works for the Port Authority of Trieste.", "text"),
    ("harbor mastre rased teh moring fes", "text"),
    ('{"port": {"fee": 120, "quay": "eastern"}}', "structured"),
    ("A painting of a harbour at dusk", "image"),
    ("Recipe: beat the eggs, fold in the flour, bake for half an hour.", "text"),
    ("The storm ended on Tuesday, and the quay was rebuilt by Friday.", "text"),
)
QUERY = "why did the harbour master raise the mooring fees after the storm"


@pytest.fixture
async def stored(agent: Agent) -> list[str]:
    return [(await agent.call("store_memory", content=text, modality=kind))["fingerprintId"] for text, kind in TEXTS]


async def ids(agent: Agent, **arguments: Any) -> tuple[str, ...]:
    found = await agent.call(TOOL, **({"query_content": QUERY, "min_similarity": 0.0} | arguments))
    return tuple(row["id"] for row in found["results"])


async def test_a_memory_finds_itself_first_under_every_strategy(agent: Agent, stored: list[str]) -> None:
    for strategy in STRATEGIES:
        found = await agent.call(TOOL, query_vector_id=stored[3], strategy=strategy)
        first = found["results"][0]
        assert (first["id"], first["content"], first["rank"]) == (stored[3], TEXTS[3][0], 1)
        assert first["similarity"] >= 0.9, strategy
        assert found["query_type"] == "vector_id"


async def test_an_answer_says_what_its_similarities_are_made_of(agent: Agent, stored: list[str]) -> None:
    found = await agent.call(TOOL, query_content=QUERY)
    assert found["requested_strategy"] == "adaptive"
    assert found["strategy"] in STRATEGIES
    first = found["results"][0]
    assert first["id"] == stored[0]
    assert len(first["breakdown"]["per_embedder"]) == 13
    assert list(first["breakdown"]["per_group"]) == list(GROUPS)
    similarities = [row["similarity"] for row in found["results"]]
    assert similarities == sorted(similarities, reverse=True)
    assert min(similarities) >= 0.3, "the default least similarity"
    plain = await agent.call(TOOL, query_content=QUERY, include_breakdown=False, max_results=2)
    assert len(plain["results"]) == plain["num_results"] == 2
    assert all("breakdown" not in row for row in plain["results"])
    assert plain["query_vector_id"] == found["query_vector_id"], "the same words have the same id"


async def test_each_scope_strategy_group_and_view_changes_the_order(agent: Agent, stored: list[str]) -> None:
    usual = await ids(agent, strategy="cosine")
    assert len(usual) == len(stored), "in a small store every memory is compared"
    scopes = {await ids(agent, strategy="cosine", scope=scope) for scope in SCOPES}
    assert len(scopes) == len(SCOPES)
    for group in GROUPS:
        assert await ids(agent, strategy="cosine", specific_groups=[group]) != usual, group
    views = {view: await ids(agent, specific_embedder=view) for view in range(13)}
    assert all(order != usual for order in views.values())
    found = [await agent.call(TOOL, query_content=QUERY, min_similarity=0, strategy=one) for one in STRATEGIES]
    similarities = {tuple(row["similarity"] for row in each["results"]) for each in found}
    assert len(similarities) == len(STRATEGIES) - 1, "adaptive chooses one of the others"
    for name in ("weight_purpose", "weight_correlations", "weight_groups"):
        alone = dict.fromkeys(("weight_purpose", "weight_correlations", "weight_groups"), 0) | {name: 1}
        found = await agent.call(TOOL, query_content=QUERY, min_similarity=0, **alone)
        without = await agent.call(TOOL, query_content=QUERY, min_similarity=0, **{name: 0})
        assert [row["similarity"] for row in found["results"]] != [row["similarity"] for row in without["results"]]


async def test_one_view_alone_finds_what_it_is_for(agent: Agent, stored: list[str]) -> None:
    code = await ids(agent, query_content="mooringFee harbourMaster vessel", specific_embedder=6)
    assert code[0] == stored[1]
    typos = await ids(agent, query_content="harbor mastre rased teh moring fes", specific_embedder=8)
    assert typos[0] == stored[5]
    last = await ids(agent, query_content="anything", specific_embedder=3)
    assert last[0] == stored[-1], "E4: what was stored last is nearest to now"


@pytest.mark.parametrize(
    ("arguments", "reason", "field"),
    [
        ({}, "missing", "query_content"),
        ({"query_content": "a", "query_vector_id": "b"}, "conflict", "query_content"),
        ({"query_content": " "}, "missing", "query_content"),
        ({"query_vector_id": "nobody"}, "not_found", "query_vector_id"),
        ({"query_content": "a", "specific_embedder": 13}, "range", "specific_embedder"),
        ({"query_content": "a", "specific_groups": ["good"]}, "enum", "specific_groups[0]"),
        ({"query_content": "a", "max_results": 1001}, "range", "max_results"),
        ({"query_content": "a", "strategy": "best"}, "enum", "strategy"),
        (
            {"query_content": "a", "weight_purpose": 0, "weight_correlations": 0, "weight_groups": 0},
            "range",
            "weight_purpose",
        ),
    ],
)
async def test_what_fits_no_search_is_refused_with_a_sentence(
    agent: Agent, arguments: dict[str, Any], reason: str, field: str
) -> None:
    answer = await agent.call(TOOL, **arguments)
    assert answer["success"] is False
    assert answer["message"].endswith(".")
    assert (answer["reason"], answer["field"]) == (reason, field), answer["message"]


async def test_an_empty_store_and_any_script_have_an_answer(agent: Agent) -> None:
    assert (await agent.call(TOOL, query_content="anything"))["results"] == []
    kept = await agent.call("store_memory", content="港口在风暴之后重建了。")
    found = await agent.call(TOOL, query_content="港口在风暴之后重建了。")
    assert [row["id"] for row in found["results"]] == [kept["fingerprintId"]]
    assert (await agent.call(TOOL, query_content="🙂", min_similarity=0))["num_results"] == 1


async def test_what_was_found_is_left_on_the_log_with_its_thirteen_alignments(
    agent: Agent, node: EmbeddingNode, stored: list[str]
) -> None:
    agent.door.start()
    found = await agent.call(TOOL, query_content=QUERY)
    assert await agent.door.publisher.flushed(PATIENCE_S)
    await agent.door.stop()
    [left] = [event for event in node.published if event.type == MEMORY_RECALLED]
    assert left.data["query_vector_id"] == found["query_vector_id"]
    results = left.data["results"]
    assert [row["memory_id"] for row in results] == [row["id"] for row in found["results"]]
    assert results[0]["alignments"] == found["results"][0]["breakdown"]["per_embedder"]
    assert QUERY not in str(left.data)
