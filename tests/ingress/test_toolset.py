"""What a toolset's value says is what its callers meet: errors, retired names, gate, part, pulse, instructions."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp import Client, MCPError

from mcp_ingress.call import Call
from mcp_ingress.door import Request, Visitor
from mcp_ingress.inventory import Inventory, ToolDefect, find_tools
from mcp_ingress.server import build_server, instructions
from mcp_ingress.services import Services
from mcp_ingress.toolset import ErrorStyle, Setup, Toolset
from mcp_ingress.toolsets.talos.session_names import SessionNames
from processors.cognitive.config import CognitiveConfig
from processors.inner_voice.config import InnerVoiceConfig
from storage.graph.projection import Projections
from streams.errors import Refused
from streams.topics import INVOCATIONS
from tests.ingress.lines import WAIT_S
from tests.ingress.parts import events_on, opened_door
from tests.ingress.tools import ALL, DEMO, STRICT, echo, strict_tools, tool


@asynccontextmanager
async def connected(home: Path, inventory: Inventory | None = None) -> AsyncIterator[Client]:
    async with opened_door(home, inventory or strict_tools()) as door:
        async with Client(build_server(door, "0"), mode="legacy") as client:
            yield client


async def failed(client: Client, name: str, **arguments: Any) -> tuple[int, str, Mapping[str, Any]]:
    """Code, message and data of the JSON-RPC error that a call is answered with."""
    with pytest.raises(MCPError) as caught:
        await client.call_tool(name, arguments)
    error = caught.value.error
    return error.code, error.message, error.data or {}


@pytest.mark.parametrize(
    ("how", "rpc_code", "code"),
    [
        ("refused", -32110, "already_superseded"),
        ("unavailable", -32116, "star_storage"),
        ("bug", -32603, "internal_error"),
    ],
)
async def test_a_toolset_may_answer_its_errors_as_json_rpc_errors_with_code_message_data_and_pulse(
    tmp_path: Path, how: str, rpc_code: int, code: str
) -> None:
    async with connected(tmp_path) as client:
        number, message, data = await failed(client, "strict_fail", how=how)
    assert number == rpc_code and data["error_code"] == code and message and message not in data.values()
    assert data["_cognitive_pulse"] == {"entropy": 0.5}
    assert how != "refused" or data["superseded_by"] == "b-2"


async def test_an_argument_that_such_a_toolset_refuses_is_invalid_params(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        number, message, data = await failed(client, "strict_fail", who="me")
    assert number == -32602 and "`who`" in message and data["error_code"] == "invalid_argument"


async def test_its_neighbours_errors_stay_results_and_its_own_answers_too(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        neighbour = await client.call_tool("fail", {"how": "refused"})
        fine = await client.call_tool("strict_fail", {"how": "degraded"})
    assert neighbour.is_error and (neighbour.structured_content or {})["error_code"] == "already_superseded"
    assert not fine.is_error and (fine.structured_content or {})["_cognitive_pulse"] == {"entropy": 0.5}


async def test_a_call_that_ends_as_a_json_rpc_error_leaves_its_record(tmp_path: Path) -> None:
    async with opened_door(tmp_path, strict_tools()) as door:
        async with Client(build_server(door, "0"), mode="legacy") as client:
            await failed(client, "strict_fail", how="unavailable")
        await door.publisher.flush(WAIT_S)
        (event,) = await events_on(door.services.log, INVOCATIONS.name)  # type: ignore[arg-type]
    assert (event.data["outcome"], event.data["error_code"]) == ("error", "star_storage")


async def test_a_retired_tool_is_refused_with_what_to_call_in_its_place(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        assert await failed(client, "set_star") == (
            -32602,
            "The tool 'set_star' is retired. Call `strict_fail`, which finds it by itself.",
            {"reason": "retired_tool", "_cognitive_pulse": {"entropy": 0.5}},
        )


async def test_a_retired_name_is_answered_also_where_its_toolset_is_not_served(tmp_path: Path) -> None:
    async with connected(tmp_path, strict_tools().select(["demo"])) as client:
        number, message, _ = await failed(client, "set_star")
    assert number == -32602 and "is retired" in message


def test_a_tool_that_is_served_and_retired_is_a_defect() -> None:
    with pytest.raises(ToolDefect, match="echo is served, and strict says that it is retired"):
        Inventory.of(ALL, [replace(STRICT, retired={"echo": "Call nothing."})])


def test_one_toolset_at_most_declares_the_sessions_of_all_calls() -> None:
    with pytest.raises(ToolDefect, match="Two toolsets declare the sessions"):
        Inventory.of(ALL, [DEMO, replace(STRICT, sessions=DEMO.sessions)])


async def test_the_server_says_of_each_toolset_that_it_serves_what_the_toolset_says(tmp_path: Path) -> None:
    async with connected(tmp_path / "both") as client:
        both = client.instructions or ""
    async with connected(tmp_path / "one", strict_tools().select(["demo"])) as client:
        one = client.instructions or ""
    assert "Strict tools fail as requests do." in both.splitlines()
    assert one and "Strict" not in one and set(one.splitlines()) < set(both.splitlines())


MOST_CHARACTERS = 120 * 4
"""Of what is said of a toolset: 120 tokens."""
INVENTORY = find_tools()
CHOICES = [
    (chosen, read_only)
    for count in range(1, len(INVENTORY.served) + 1)
    for chosen in combinations([*INVENTORY.served], count)
    for read_only in (False, True)
]


def test_instructions_name_the_tools_that_are_served_and_no_other_whatever_is_chosen() -> None:
    groups = [((group,), False) for toolset in INVENTORY.toolsets.values() for group in toolset.groups]
    for chosen, read_only in [*CHOICES, *groups]:
        served = INVENTORY.select(chosen, read_only=read_only)
        said = instructions([INVENTORY.toolsets[name] for name in served.served], served.tools)
        named = {name for name in INVENTORY.tools if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\w)", said)}
        assert named and named <= served.tools.keys(), (chosen, read_only, named - served.tools.keys())
        assert {served.tools[name].toolset for name in named} == set(served.served), (chosen, read_only)


def test_every_toolset_is_explained_in_under_120_tokens() -> None:
    nothing = len(instructions([], ()))
    for name in INVENTORY.served:
        said = len(instructions([INVENTORY.toolsets[name]], INVENTORY.tools)) - nothing
        assert 40 < said < MOST_CHARACTERS, (name, said)


async def test_a_toolset_that_is_off_refuses_before_it_looks_at_the_arguments(tmp_path: Path) -> None:
    def refuse(call: Call) -> None:
        raise Refused("It is off.", code="feature_disabled")

    style = ErrorStyle(code_field="code")
    async with opened_door(tmp_path, Inventory.of(ALL, [replace(DEMO, gate=refuse, errors=style)])) as door:
        answer = await door.call(Visitor(door.local), Request("echo", {"no such": 1}))
    assert answer.is_error and answer.body["code"] == answer.body["error_code"] == "feature_disabled"


async def test_a_toolset_that_leaves_no_details_is_recorded_by_name_and_outcome_alone(tmp_path: Path) -> None:
    def is_quiet(services: Services) -> bool:
        return True

    toolset = replace(DEMO, leaves_no_details=is_quiet)
    async with opened_door(tmp_path, Inventory.of(ALL, [toolset])) as door:
        await door.call(Visitor(door.local), Request("echo", {"session_id": "2026-01-15-demo"}))
        await door.publisher.flush(WAIT_S)
        (event,) = await events_on(door.services.log, INVOCATIONS.name)  # type: ignore[arg-type]
    assert dict(event.data) == {"tool": "echo", "outcome": "ok"}


@dataclass
class Garden:
    """A toolset's own part of a node."""

    trees: int = 1


async def test_a_tool_is_given_its_toolsets_part_as_the_nodes_settings_make_it(tmp_path: Path) -> None:
    async def count(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "trees": call.part(Garden).trees}

    garden = Toolset("garden", parts=lambda setup: [Garden(setup.settings.trees)])
    inventory = Inventory.of([tool("count", count, {}, toolset="garden")], [garden])
    async with opened_door(tmp_path, inventory) as door:
        assert (await door.call(Visitor(door.local), Request("count", {}))).body["trees"] == 1, "its default"
        door.services.parts = inventory.parts(Setup(SimpleNamespace(trees=7), {}, None))
        assert (await door.call(Visitor(door.local), Request("count", {}))).body["trees"] == 7


def test_the_parts_of_all_toolsets_are_made_of_settings_and_environment(tmp_path: Path) -> None:
    settings = SimpleNamespace(
        home=tmp_path,
        judge1="lexical",
        judge2="lexical",
        judge_stages=False,
        valence_auto_capture=True,
        persona="Sage",
        protocol=" ",
        human="",
    )
    environ = {"SURR_ENABLE_INNER_VOICE": "1", "FIDELITY_THRESHOLD": "0.75"}
    parts: dict[type, Any] = dict(find_tools().parts(Setup(settings, environ, None)))
    assert parts[InnerVoiceConfig].is_enabled and parts[CognitiveConfig].fidelity_threshold == 0.75
    assert [part for part in parts.values() if getattr(part, "auto_capture", False)]
    assert isinstance(parts[Projections], Projections)
    assert parts[SessionNames] == SessionNames(persona="Sage", protocol="LBRP", human="Robbie")


def test_a_toolset_that_says_nothing_of_itself_needs_no_value() -> None:
    assert Inventory.of([tool("alone", echo, {}, toolset="quiet")]).toolsets["quiet"] == Toolset("quiet")
