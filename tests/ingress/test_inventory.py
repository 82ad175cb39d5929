"""The inventory takes only tools that can be served as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mcp_ingress.inventory import Inventory, ToolDefect, hints, validate_tool
from mcp_ingress.server import wire_tool
from streams.errors import SettingsError
from tests.ingress.tools import ALL, demo_tools, echo, tool

GOOD = tool("good", echo, {"text": {"type": "string"}})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": "Bad Name"}, "the name is"),
        ({"name": "x" * 61}, "the name is"),
        ({"description": " "}, "title and description"),
        ({"description": "x" * 4096}, "cut by clients"),
        ({"kind": "other"}, "the kind is"),
        ({"destructive": True}, "only reads is not destructive"),
        ({"open_world": None}, "annotations are True or False"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"input_schema": {"type": "array"}}, "input schema is of type object"),
        ({"output_schema": {"type": "object", "required": 3}}, "output schema is not a JSON Schema"),
    ],
)
def test_a_tool_with_a_defect_is_named_when_it_is_imported(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ToolDefect, match=complaint):
        validate_tool(replace(GOOD, **changes))


def test_every_object_that_names_its_properties_is_closed_and_others_stay_open() -> None:
    nested = {
        "range": {"type": "object", "properties": {"start": {"type": "string"}}},
        "parameters": {"type": "object"},
    }
    schema = validate_tool(tool("nested", echo, nested)).input_schema
    assert schema["additionalProperties"] is False
    assert schema["properties"]["range"]["additionalProperties"] is False
    assert "additionalProperties" not in schema["properties"]["parameters"]


def test_two_tools_of_one_name_are_a_defect() -> None:
    with pytest.raises(ToolDefect, match="Two tools are called good"):
        Inventory.of([GOOD, GOOD])


def test_read_only_leaves_the_tools_that_read() -> None:
    names = {tool.name for tool in ALL if tool.kind == "read"}
    assert set(demo_tools().select(read_only=True).tools) == names


def test_an_unknown_toolset_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingsError, match=r"There is no toolset 'telos'; choose from demo."):
        demo_tools().select(["telos"])
    assert len(demo_tools().select(["demo"])) == len(ALL)


def test_all_four_hints_are_said() -> None:
    assert hints(GOOD) == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert hints(replace(GOOD, kind="write"))["idempotentHint"] is False


def test_our_own_schema_keywords_are_not_shown_to_clients() -> None:
    coded = tool("coded", echo, {"category": {"enum": ["a"], "x-error-code": "unknown_category"}})
    assert "x-error-code" not in wire_tool(validate_tool(coded)).model_dump_json()
