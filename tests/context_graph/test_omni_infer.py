"""omni_infer: the five directions over edges of known weights, through the real door; what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from streams.codec import encode
from streams.event_types.context_edges import EDGES_FOUND
from streams.event_types.context_graph import MEMORY_RECALLED
from streams.events import Event
from streams.topics import DERIVED
from tests.patience import PATIENCE_S
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

WHY = {"sentence": "It rained because the wind turned.", "marker": "because"}
TEXTS = {
    "wind": "The wind turned to the west at noon.",
    "rain": "It rained because the wind turned.",
    "flood": "The cellar of the archive stood under water.",
    "budget": "The archive asks for a larger budget.",
    "lonely": "Bread rises overnight in the cold.",
    "valve": "A valve in the cellar had been left open.",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddingNode]:
    node = EmbeddingNode(tmp_path_factory.mktemp("infer"))
    yield node
    node.close()


@pytest.fixture(scope="module")
def agent(node: EmbeddingNode) -> Agent:
    return Agent(node)


@pytest.fixture(scope="module")
async def ids(node: EmbeddingNode, agent: Agent) -> Mapping[str, str]:
    """wind → rain → flood → budget, and a valve that floods too; budget and flood influence each other."""
    important = {"wind": 0.2, "rain": 0.2, "valve": 0.6}
    stored = {
        name: (await agent.call("store_memory", content=text, importance=important.get(name, 0.5), tags=_tags(name)))
        for name, text in TEXTS.items()
    }
    found = {name: answer["fingerprintId"] for name, answer in stored.items()}
    edges = [
        ("wind", "rain", 0.8, 0.9),
        ("rain", "flood", 0.9, 0.6),
        ("valve", "flood", 0.7, 0.9),
        ("flood", "budget", 0.72, 0.9),
        ("budget", "flood", 0.5, 0.9),
        ("lonely", "wind", 0.9, 0.4),
        ("lonely", "rain", 0.0, 1.0),
    ]
    data = {
        "edges": [
            {
                "source_id": found[source],
                "target_id": found[target],
                "kind": "causal",
                "weight": weight,
                "confidence": confidence,
                "evidence": {**WHY, "memory_id": found["rain"]},
            }
            for source, target, weight, confidence in edges
        ]
    }
    event = Event("edges", "test", EDGES_FOUND, "default", node.clock.now(), data)
    node.process([node.store.record(encode(DERIVED.name, event))])
    return found


def _tags(name: str) -> list[str]:
    return {"budget": ["money"], "flood": ["water"], "rain": ["water"], "wind": ["water"]}.get(name, [])


async def infer(agent: Agent, ids: Mapping[str, str], direction: str, source: str, target: str = "") -> dict[str, Any]:
    ends = {"source": ids[source]} | ({"target": ids[target]} if target else {})
    return await agent.call("omni_infer", direction=direction, **ends)


async def test_two_edges_in_a_row_are_one_inference_that_shows_its_sentences(
    agent: Agent, ids: Mapping[str, str]
) -> None:
    answer = await agent.call("omni_infer", source=ids["wind"], target=ids["flood"])
    assert (answer["direction"], answer["result_count"]) == ("forward", 1)
    [row] = answer["results"]
    assert row["strength"] == pytest.approx(0.648)
    assert row["path"] == [ids["wind"], ids["rain"], ids["flood"]]
    assert (row["path_length"], row["is_direct"], row["is_strong"]) == (2, False, False)
    assert (row["confidence"], row["is_high_confidence"]) == (0.6, False)
    assert WHY["sentence"] in row["explanation"] and ids["rain"] in row["explanation"]
    assert TEXTS["wind"] in row["explanation"] and TEXTS["flood"] in row["explanation"]
    assert answer["inference_config"] == {
        "max_hops": 5,
        "decay": 0.9,
        "min_confidence": 0.5,
        "include_indirect": True,
    }


async def test_a_path_has_one_direction(agent: Agent, ids: Mapping[str, str]) -> None:
    assert (await infer(agent, ids, "forward", "flood", "wind"))["results"] == []
    [row] = (await infer(agent, ids, "backward", "flood", "rain"))["results"]
    assert (row["source"], row["target"]) == (ids["flood"], ids["rain"])
    assert row["path"] == [ids["rain"], ids["flood"]] and row["is_direct"] and row["strength"] == 0.9
    assert (await infer(agent, ids, "backward", "rain", "flood"))["result_count"] == 0


async def test_mutual_influence_is_the_mean_of_both_ways(agent: Agent, ids: Mapping[str, str]) -> None:
    [row] = (await infer(agent, ids, "bidirectional", "flood", "budget"))["results"]
    assert row["strength"] == pytest.approx(0.6)
    assert row["return_path"] == [ids["budget"], ids["flood"]]
    assert (await infer(agent, ids, "bidirectional", "rain", "flood"))["results"] == []


async def test_the_likeliest_cause_is_strong_and_important(agent: Agent, ids: Mapping[str, str]) -> None:
    answer = await infer(agent, ids, "abduction", "flood")
    rows = answer["results"]
    assert [row["target"] for row in rows] == [ids["valve"], ids["budget"], ids["rain"], ids["wind"]]
    assert rows[0]["posterior"] == pytest.approx(0.7 * 0.6 / 1.5)
    assert rows[2]["posterior"] == pytest.approx(0.9 * 0.2 / 1.5)
    assert [row["rank"] for row in rows] == [1, 2, 3, 4]
    [alone] = (await infer(agent, ids, "abduction", "flood", "rain"))["results"]
    assert (alone["rank"], alone["posterior"]) == (3, rows[2]["posterior"])
    assert (await infer(agent, ids, "abduction", "lonely"))["results"] == []


async def test_a_bridge_leads_to_another_matter(agent: Agent, ids: Mapping[str, str]) -> None:
    answer = await infer(agent, ids, "bridge", "rain")
    ends = [row["target"] for row in answer["results"]]
    assert ids["budget"] in ends, "its tags differ"
    assert all(row["strength"] >= 0.5 for row in answer["results"])
    [row] = (await infer(agent, ids, "bridge", "rain", "budget"))["results"]
    assert row["strength"] == pytest.approx(0.9 * 0.72 * 0.9)
    assert (await infer(agent, ids, "bridge", "budget", "wind"))["results"] == []


async def test_what_is_not_sure_or_was_denied_is_no_cause(agent: Agent, ids: Mapping[str, str]) -> None:
    assert (await infer(agent, ids, "forward", "lonely", "wind"))["results"] == []
    assert (await infer(agent, ids, "forward", "lonely", "rain"))["results"] == []


async def test_an_inference_tells_its_path_and_its_ends(node: EmbeddingNode, ids: Mapping[str, str]) -> None:
    agent = Agent(node)
    agent.door.publisher.start()
    await infer(agent, ids, "forward", "wind", "budget")
    await infer(agent, ids, "forward", "wind", "rain")
    assert await agent.door.publisher.flushed(PATIENCE_S)
    await agent.door.stop()
    left = [event.data for event in node.published if event.type == MEMORY_RECALLED]
    far, near = ([one for one in left if one["results"][0]["memory_id"] == ids[end]] for end in ("budget", "rain"))
    assert far[-1]["chains"] == [[ids["wind"], ids["rain"], ids["flood"], ids["budget"]]]
    assert far[-1]["tool"] == "omni_infer" and "chains" not in near[-1]
    assert TEXTS["wind"] not in str(left)


@pytest.mark.parametrize(
    ("arguments", "reason", "field"),
    [
        ({"source": "wind"}, "missing", "target"),
        ({"source": "wind", "direction": "bidirectional"}, "missing", "target"),
        ({"source": "wind", "target": "nobody"}, "not_found", "target"),
        ({"source": "nobody", "direction": "abduction"}, "not_found", "source"),
        ({"source": "wind", "target": "wind"}, "conflict", "target"),
        ({"source": "wind", "target": "wind", "direction": "abduction"}, "conflict", "target"),
        ({"source": "  ", "direction": "bridge"}, "missing", "source"),
        ({"source": "wind", "target": "", "direction": "bridge"}, "missing", "target"),
        ({"source": "x" * 50_000, "direction": "bridge"}, None, "source"),
        ({"source": "wind", "direction": "sideways"}, None, "direction"),
        ({"source": 5, "direction": "bridge"}, None, "source"),
        ({"direction": "bridge"}, None, "source"),
    ],
)
async def test_what_cannot_be_asked_is_refused_by_name(
    agent: Agent, ids: Mapping[str, str], arguments: dict[str, Any], reason: str | None, field: str
) -> None:
    given = {name: ids.get(value, value) if name != "direction" else value for name, value in arguments.items()}
    answer = await agent.call("omni_infer", **given)
    assert answer["success"] is False
    assert reason is None or (answer["reason"], answer["field"]) == (reason, field), answer
    assert field in str(answer)
