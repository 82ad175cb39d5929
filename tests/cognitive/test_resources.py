"""The five resources, as MCP clients of both eras and as the door see them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from mcp import Client, MCPError

from mcp_ingress.resource import MAX_URI, arguments_of, base_of, find_resources
from mcp_ingress.server import build_server
from streams.errors import Refused
from tests.cognitive.node import CognitiveNode, opened
from tests.processors.harness import event
from tests.talos.making import NOON

ERAS = pytest.mark.parametrize("era", ["legacy", "auto"])


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[CognitiveNode]:
    async with opened(tmp_path) as node:
        yield node


@ERAS
async def test_resources_are_listed_as_uris_and_as_templates_and_read(node: CognitiveNode, era: str) -> None:
    await node.ok("store_raw_dialogue", session_id="conv 001", speaker="user", content="hello")
    async with Client(build_server(node.door, "0"), mode=era) as client:
        listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert listed == {
            f"memory://{name}" for name in ("l2-insights", "working-memory", "episode-memory", "l0-raw", "stale-memory")
        }
        templates = {template.uri_template for template in (await client.list_resource_templates()).resource_templates}
        assert "memory://l0-raw{?session_id,date_range,speaker,limit,order}" in templates and len(templates) == 5
        assert "thalweg://memory/{id}{?offset,field}" in templates
        uri = "memory://l0-raw?session_id=conv+001&limit=50"
        (content,) = (await client.read_resource(uri)).contents
        envelope = json.loads(content.text)  # type: ignore[union-attr]
        assert envelope.keys() == {"resource", "uri", "mimeType", "contents"}
        assert (envelope["resource"], envelope["uri"], envelope["mimeType"]) == (
            "memory://l0-raw",
            uri,
            "application/json",
        )
        assert [line["content"] for line in envelope["contents"]] == ["hello"]
        with pytest.raises(MCPError):  # a resource is no tool
            await client.call_tool("memory://l0-raw", {"uri": "memory://l0-raw"})
        for wrong, code, error in (
            ("memory://episode-memory", -32602, "Parameter validation failed"),
            ("memory://l0-raw?order=up", -32602, "Parameter validation failed"),
            ("memory://l0-raw?limit=ten", -32602, "Parameter validation failed"),
            ("memory://nothing", -32002 if era == "legacy" else -32602, "Resource not found"),
            ("memory://l0-raw?colour=red", -32002 if era == "legacy" else -32602, "Resource not found"),
        ):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(wrong)
            assert (caught.value.error.code, caught.value.error.message) == (code, error), wrong
            assert caught.value.error.data["resource"] == wrong and caught.value.error.data["details"]


async def test_a_range_of_days_includes_its_last_second_and_not_the_next(node: CognitiveNode) -> None:
    for text, moment in (
        ("in", "2026-01-15T23:59:59"),
        ("out", "2026-01-16T00:00:00"),
        ("before", "2026-01-09T23:59:59"),
        ("first", "2026-01-10T00:00:00"),
    ):
        time = NOON.fromisoformat(moment + "+00:00")
        node.store.publish(
            event("cm.l0.stored", {"session_id": "s", "speaker": "u", "content": text}, id=text, time=time)
        )
        node.store.publish(
            event("cm.l2.stored", {"content": f"{text} insight", "source_ids": []}, id="l2" + text, time=time)
        )
    for separator in ",:":
        lines = await node.read(f"memory://l0-raw?date_range=2026-01-10{separator}2026-01-15&order=asc")
        assert [line["content"] for line in lines] == ["first", "in"]
    found = await node.read("memory://l2-insights?created_after=2026-01-10&created_before=2026-01-15")
    assert [row["content"] for row in found] == ["in insight", "first insight"]


async def test_numbers_are_clamped_and_insights_are_filtered_before_they_are_ranked(node: CognitiveNode) -> None:
    for number in range(12):
        await node.ok(
            "compress_to_l2_insight",
            content=f"it is the at of rivers {number}" if number % 2 else f"rivers valley {number}0000",
            source_ids=[],
        )
    assert (
        len(await node.read("memory://l2-insights?top_k=0")) == 1
        and len(await node.read("memory://l2-insights?top_k=100000")) == 12
    )
    dense = await node.read("memory://l2-insights?query=rivers&fidelity_min=0.5&top_k=6")
    assert len(dense) == 6 and all(row["fidelity_score"] >= 0.5 and row["score"] > 0 for row in dense)
    assert dense[0].keys() >= {"id", "content", "fidelity_score", "created_at", "source_ids", "metadata", "score"}


async def test_a_read_changes_no_row_and_days_back_counts(node: CognitiveNode) -> None:
    for number in range(11):
        await node.ok("update_working_memory", content=f"item {number}")
        node.clock.time += timedelta(seconds=1)
    before = node.store.sql("FROM working_memory_slots ORDER BY slot")
    assert len(await node.read("memory://working-memory")) == 10 and len(await node.read("memory://stale-memory")) == 1
    node.clock.time += timedelta(days=31)
    assert (
        await node.read("memory://stale-memory") == []
        and len(await node.read("memory://stale-memory?days_back=40")) == 1
    )
    assert node.store.sql("FROM working_memory_slots ORDER BY slot") == before


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        pytest.param("memory://l0-raw?speaker=" + "s" * MAX_URI, f"The URI has {MAX_URI + 24} characters", id="long"),
        ("memory://l0-raw?session_id=%ff", "The parameters of the URI are not valid percent-encoded UTF-8."),
        ("memory://l0-raw?limit=1&limit=2", "The parameter `limit` is given twice."),
        ("memory://l0-raw?limit=ten", "The parameter `limit` is 'ten'; an integer is expected."),
        ("memory://episode-memory?query=q&reward_min=good", "The parameter `reward_min` is 'good'; a number is"),
        ("memory://episode-memory?query=q&reward_min=nan", "The parameter `reward_min` must be a finite number."),
        ("memory://l2-insights?colour=red", "There is no parameter `colour`; accepted: "),
    ],
)
def test_a_uri_whose_parameters_cannot_be_is_refused_with_the_parameters_name(uri: str, sentence: str) -> None:
    with pytest.raises(Refused) as caught:
        arguments_of(find_resources().resources[base_of(uri)], uri)
    assert caught.value.message.startswith(sentence)


def test_a_number_of_a_uri_is_brought_within_its_bounds_and_a_plus_is_a_space() -> None:
    resource = find_resources().resources["memory://l0-raw"]
    bounds = resource.parameters["limit"]
    for given, expected in ((10**9, bounds["maximum"]), (-5, bounds["minimum"]), (7, 7)):
        assert arguments_of(resource, f"memory://l0-raw?session_id=a+b&limit={given}") == {
            "session_id": "a b",
            "limit": expected,
        }
