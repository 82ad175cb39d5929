"""The requests that the tools' reference prints, in its order, and its four-stage flow: by MCP and from a shell."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters

from tests.e2e.program import Program
from tests.node_process import NodeProcess

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

KURAMOTO = {
    "content": "The Kuramoto model describes synchronization of coupled oscillators",
    "rationale": "Core concept for consciousness modeling",
    "modality": "text",
    "importance": 0.8,
}
FIBONACCI = {
    "content": "function fibonacci(n) { return n <= 1 ? n : fibonacci(n-1) + fibonacci(n-2); }",
    "modality": "code",
    "tags": ["algorithm", "recursion", "math"],
}
OSCILLATORS = {"query": "neural oscillator synchronization", "topK": 5, "minSimilarity": 0.7}
OVERVIEW = {
    "content": "Project overview: A Rust MCP server implementing bio-nervous context graph with GWT consciousness...",
    "rationale": "Initial project understanding for autonomous operation",
    "importance": 0.8,
}
MORE = {
    "content": "Additional context about the project...",
    "rationale": "Expanding autonomous understanding",
}
ACTIONS = {
    "Open": "direct_recall",
    "Blind": "trigger_dream",
    "Hidden": "get_neighborhood",
    "Unknown": "epistemic_action",
}
LAYERS = ["perception", "memory", "reasoning", "meta", "action"]
EMBEDDERS = [
    ("E1", "Semantic", 1024),
    ("E2", "Temporal-Recent", 512),
    ("E3", "Temporal-Periodic", 512),
    ("E4", "Temporal-Positional", 512),
    ("E5", "Causal", 768),
    ("E6", "Sparse", 30_522),
    ("E7", "Code", 1536),
    ("E8", "Graph", 384),
    ("E9", "HDC", 1024),
    ("E10", "Multimodal", 768),
    ("E11", "Entity", 384),
    ("E12", "Late-Interaction", 128),
    ("E13", "SPLADE v3", 30_522),
]
NAMES = [(label, name) for label, name, _ in EMBEDDERS]
BREAKDOWN = ("purpose_vector", "cross_correlations", "group_alignments", "confidence")
GROUPS = ["causal", "factual", "implementation", "qualitative", "relational", "temporal"]
RETIRED = (
    "set_north_star",
    "get_north_star",
    "update_north_star",
    "delete_north_star",
    "init_north_star_from_documents",
    "get_goal_hierarchy",
)


@dataclass(frozen=True)
class Refusal:
    """A JSON-RPC error."""

    code: int
    message: str


class Way(Protocol):
    """How the tools are called."""

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any] | Refusal: ...


class ByMcp:
    """Over stdio; the pulse must be where the reference prints it, and the same inside the object."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any] | Refusal:
        try:
            result = await self._client.call_tool(tool, arguments)
        except MCPError as error:
            return Refusal(error.error.code, error.error.message)
        assert result.structured_content is not None and not result.is_error
        body = dict(result.structured_content)
        assert json.loads(result.content[0].text) == body, "clients that show only text have the same object"
        assert (result.meta or {})["thalweg/cognitive_pulse"] == body["_cognitive_pulse"]
        return body


class ByShell:
    """`thalweg call`, a process for each call; what was written before is waited for by its token."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._written: dict[str, Any] | None = None

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any] | Refusal:
        token = [] if self._written is None else ["--freshness", json.dumps(self._written)]
        said = self._program("call", tool, json.dumps(arguments), *token)
        body = json.loads(said.out)
        if said.code:
            assert said.sentence == body["message"]
            return Refusal(body["code"], body["message"])
        self._written = body.get("freshness", self._written)
        return dict(body)


@asynccontextmanager
async def by_mcp(program: Program) -> AsyncIterator[Way]:
    server = StdioServerParameters(command=sys.executable, args=["-m", "thalweg", "mcp"], env=program.env)
    async with Client(server, mode="legacy") as client:
        yield ByMcp(client)


@asynccontextmanager
async def by_shell(program: Program) -> AsyncIterator[Way]:
    yield ByShell(program)


WAYS = {"mcp": by_mcp, "shell": by_shell}


def is_share(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and 0 <= value <= 1


def beats(body: dict[str, Any] | Refusal) -> dict[str, Any]:
    """The answer, once its pulse has the five printed fields, of the printed ranges and mapping."""
    assert isinstance(body, dict), body
    pulse = body["_cognitive_pulse"]
    assert list(pulse) == ["entropy", "coherence", "learning_score", "quadrant", "suggested_action"]
    assert all(is_share(pulse[name]) for name in ("entropy", "coherence", "learning_score"))
    assert ACTIONS[pulse["quadrant"]] == pulse["suggested_action"]
    return body


async def stored(way: Way, home: Path) -> dict[str, str]:
    """Core memory: inject_context, store_memory, search_graph."""
    kuramoto = beats(await way.ask("inject_context", **KURAMOTO))
    assert all(is_share(kuramoto["utl"][name]) for name in ("learningScore", "entropy", "coherence", "surprise"))
    assert kuramoto["utl"]["entropy"] == kuramoto["utl"]["surprise"] == 1.0, "the store was empty"
    fibonacci = beats(await way.ask("store_memory", **FIBONACCI))
    assert "utl" not in fibonacci
    NodeProcess(home).wait_for(fibonacci["freshness"], "embed")  # a node that has just started reads its first texts
    [row] = beats(await way.ask("search_graph", **OSCILLATORS))["results"]
    assert (row["fingerprintId"], row["content"]) == (kuramoto["fingerprintId"], KURAMOTO["content"])
    assert row["similarity"] >= 0.7
    [row] = beats(await way.ask("search_graph", query="fibonacci", modality="code"))["results"]
    assert {name: row[name] for name in FIBONACCI} == FIBONACCI
    return {"kuramoto": kuramoto["fingerprintId"], "fibonacci": fibonacci["fingerprintId"]}


async def told_status(way: Way, memories: int, goals: int = 0) -> dict[str, Any]:
    """System status: the two statuses agree with each other and with the pulse."""
    status = beats(await way.ask("get_memetic_status"))
    assert (status["phase"], status["fingerprintCount"], status["nodeCount"]) == ("Infancy", memories, memories + goals)
    assert status["storageSizeBytes"] >= 10 * status["nodeCount"], "the bytes of what its own memories say"
    assert status["storageSizeBytes"] > 0
    assert status["layers"] == dict.fromkeys(LAYERS, "active")
    pulse, utl = status["_cognitive_pulse"], status["utl"]
    assert {utl[name] for name in ("entropy", "coherence")} == {pulse["entropy"], pulse["coherence"]}
    assert (utl["learningScore"], utl["johariQuadrant"]) == (pulse["learning_score"], pulse["quadrant"])
    assert utl["suggestedAction"] == pulse["suggested_action"]
    assert utl["consolidationPhase"] in ("NREM", "REM", "Wake")
    learned = beats(await way.ask("utl_status"))
    assert learned["lifecycle_phase"] == "Infancy" and learned["interaction_count"] == memories
    assert learned["johari_quadrant"] == utl["johariQuadrant"]
    assert [learned[name] for name in ("entropy", "coherence", "learning_score")] == [
        utl[name] for name in ("entropy", "coherence", "learningScore")
    ]
    return utl


async def told_manifest(way: Way) -> None:
    """The five layers, each described, and the thirteen embedders, each with the model that really makes it."""
    manifest = beats(await way.ask("get_graph_manifest"))
    assert manifest["architecture"] == "5-layer-bio-nervous"
    assert [layer["name"] for layer in manifest["layers"]] == [name.capitalize() for name in LAYERS]
    assert all(layer["description"] and layer["status"] == "active" for layer in manifest["layers"])
    assert [(view["embedder"], view["name"], view["dimension"]) for view in manifest["embedders"]] == EMBEDDERS
    assert all(isinstance(view["trained"], bool) and view["available"] for view in manifest["embedders"])


async def refused_goals(way: Way) -> None:
    """The tools that the reference has removed name the one that replaces them."""
    for name in RETIRED:
        refusal = await way.ask(name)
        assert isinstance(refusal, Refusal) and refusal.code == -32602
        assert "auto_bootstrap_north_star" in refusal.message


async def compared(way: Way, ids: Mapping[str, str]) -> None:
    """Teleological tools: search, a text's vector, a memory's fused views, and a judged result."""
    found = beats(await way.ask("search_teleological", query_content="oscillators in synchrony", min_similarity=0.0))
    assert (found["requested_strategy"], found["scope"], found["query_type"]) == ("adaptive", "full", "content")
    best = found["results"][0]
    assert (best["rank"], best["id"], found["num_results"]) == (1, ids["kuramoto"], len(found["results"]))
    assert set(BREAKDOWN) <= best["breakdown"].keys() and len(best["breakdown"]["per_embedder"]) == 13
    assert sorted(best["breakdown"]["per_group"]) == GROUPS and best["dominant_embedder"] in dict(NAMES)

    made = beats(await way.ask("compute_teleological_vector", content="phases lock", compute_tucker=True))
    vector = made["vector"]
    assert [len(vector[name]) for name in ("purpose_vector", "cross_correlations", "group_alignments")] == [13, 78, 6]
    core = vector["tucker_core"]
    assert (core["ranks"], len(core["core"])) == ([4, 4, 128], 2048)
    assert core["compression_ratio"] == pytest.approx(1.239, abs=5e-4)
    by_id = beats(await way.ask("search_teleological", query_vector_id=vector["id"], include_breakdown=False))
    assert by_id["query_type"] == "vector_id" and all("breakdown" not in row for row in by_id["results"])

    if isinstance(way, ByMcp):  # no argument of a shell is so long
        long = beats(await way.ask("compute_teleological_vector", content="The phases lock. " * 60_000))
        assert long["vector"]["purpose_vector"][0] != 0, "the model has read it, as far as it reads"

    only = [1] + [0] * 12
    wanted = {"custom_weights": only, "fusion_method": "linear", "apply_synergy": False}
    fused = beats(await way.ask("fuse_embeddings", memory_id=ids["fibonacci"], **wanted))
    assert fused["weights"] == only and fused["stored"] is True
    assert sum(number**2 for number in fused["vector"]) == pytest.approx(1.0, abs=1e-4)

    judged = {"query_vector_id": found["query_vector_id"], "result_vector_id": best["id"]}
    learned = beats(await way.ask("update_synergy_matrix", **judged, feedback="relevant"))
    assert learned["effective_score"] == 1.0 and 0 < learned["pairs_updated"] <= 78 and learned["frobenius_delta"] > 0
    unsure = beats(await way.ask("update_synergy_matrix", **judged, feedback="partially_relevant"))
    assert (unsure["pairs_updated"], unsure["frobenius_delta"]) == (0, 0)


async def kept_profiles(way: Way) -> None:
    """Teleological tools: a profile with the printed fields is made, read, listed and deleted."""
    made = beats(await way.ask("manage_teleological_profile", action="create", name="Walk", embedder_weights=[2] * 13))
    profile = made["profile"]["profile_id"]
    read = beats(await way.ask("manage_teleological_profile", action="read", profile_id=profile))["profile"]
    assert (read["name"], read["embedder_weights"]) == ("Walk", pytest.approx([1 / 13] * 13))
    assert (read["fusion_strategy"], sorted(read["group_priorities"])) == ("hierarchical", GROUPS)
    listed = beats(await way.ask("manage_teleological_profile", action="list"))
    assert profile in [each["profile_id"] for each in listed["profiles"]]
    assert beats(await way.ask("manage_teleological_profile", action="delete", profile_id=profile))["deleted"] is True


async def passed_the_four_stages(way: Way, home: Path) -> None:
    """A task's start, its edits, the periodic check and the session's end."""
    before = beats(await way.ask("get_memetic_status"))
    found = beats(await way.ask("search_graph", query="oscillators that synchronize", topK=5))
    assert KURAMOTO["content"] in [row["content"] for row in found["results"]]
    edit = beats(
        await way.ask(
            "inject_context",
            content="fn order_parameter(phases: &[f64]) -> f64 { phases.iter().map(|p| p.cos()).sum() }",
            rationale="Code changes from edit to src/kuramoto.rs",
            modality="code",
            importance=0.7,
        )
    )
    assert edit["_cognitive_pulse"] != before["_cognitive_pulse"], "an injected memory moves the pulse"
    NodeProcess(home).wait_for(edit["freshness"], "embed")
    [row] = beats(await way.ask("search_graph", query="order parameter of phases", modality="code", topK=1))["results"]
    assert (row["fingerprintId"], row["importance"]) == (edit["fingerprintId"], 0.7)
    await checked(way)
    dream = beats(await way.ask("trigger_dream", force=True))
    assert dream["triggered"] is True and {"nrem_report", "rem_report", "wake_reason"} <= dream["report"].keys()
    merged = beats(await way.ask("trigger_consolidation"))["consolidation_result"]
    assert merged["status"] in ("completed", "nothing_to_do") and merged["merged_groups"] == 0
    themes = beats(await way.ask("discover_sub_goals", min_confidence=0))
    assert themes["discovery_metadata"]["memories_analyzed"] >= 3
    after = beats(await way.ask("get_memetic_status"))
    assert after["fingerprintCount"] == before["fingerprintCount"] + 1
    assert after["_cognitive_pulse"] == edit["_cognitive_pulse"]


async def checked(way: Way) -> None:
    """The periodic check: consciousness, drift, and a correction where there is any."""
    state = beats(await way.ask("get_consciousness_state"))
    assert {"r", "C", "meta_score", "differentiation", "workspace", "identity"} <= state.keys() and is_share(state["C"])
    drift = beats(await way.ask("get_alignment_drift"))
    assert drift["severity"] in ("none", "mild", "moderate", "severe") and drift["recommendation"]
    correction = beats(await way.ask("trigger_drift_correction"))["correction_result"]
    assert (correction["strategy_applied"] == "none") == (drift["severity"] == "none")


async def bootstrapped(way: Way) -> None:
    """The quick start: a purpose is found in what is stored, and found again it is the same."""
    found = beats(await way.ask("auto_bootstrap_north_star", confidence_threshold=0.7, max_candidates=10))
    again = beats(await way.ask("auto_bootstrap_north_star"))
    assert (found["status"], again["status"]) == ("bootstrapped", "reinitialized")
    assert found["bootstrap_result"]["goal_id"] == again["bootstrap_result"]["goal_id"]
    status = beats(await way.ask("get_autonomous_status"))
    assert status["overall_health"]["north_star_configured"] is True and len(status["services"]) == 6


@pytest.mark.parametrize("way", WAYS)
async def test_the_printed_requests_are_answered_in_their_order_with_the_printed_fields(
    way: str, tmp_path: Path
) -> None:
    program = Program(tmp_path / "home", THALWEG_EMBEDDER="minilm", THALWEG_WRITE_WAIT_S="30")
    try:
        async with WAYS[way](program) as tools:
            ids = await stored(tools, program.home)
            await told_status(tools, 2)
            await told_manifest(tools)
            await compared(tools, ids)
            await kept_profiles(tools)
            await refused_goals(tools)
            overview = beats(await tools.ask("store_memory", **OVERVIEW))
            await bootstrapped(tools)
            more = beats(await tools.ask("inject_context", **MORE))
            assert len({overview["fingerprintId"], more["fingerprintId"]}) == 2
            await told_status(tools, 4, goals=1)
            await passed_the_four_stages(tools, program.home)
    finally:
        program("stop")
