"""What every tool promises to clients, whichever toolset it is of.

The snapshots are the contract as clients see it; `just snap` (THALWEG_SNAP=1) writes them anew after a wanted change.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema

from mcp_ingress.inventory import MAX_DESCRIPTION, MAX_NAME, find_tools
from mcp_ingress.server import wire_tool
from mcp_ingress.tool import Tool
from streams.errors import Refused
from tests.examples import examples

SNAPSHOTS = Path(__file__).parent / "snapshots"
SERVER_NAME = "thalweg"
every_tool = pytest.mark.parametrize("tool", list(find_tools()), ids=lambda tool: tool.name)
lenient = settings(max_examples=examples(5, 25), deadline=None, database=None, suppress_health_check=list(HealthCheck))


def shown(tool: Tool) -> dict[str, Any]:
    return wire_tool(tool).model_dump(mode="json", by_alias=True, exclude_none=True)


def test_there_are_tools() -> None:
    assert len(find_tools()) > 0


@every_tool
def test_its_name_and_description_are_short_enough_for_every_client(tool: Tool) -> None:
    assert len(tool.description) < MAX_DESCRIPTION
    assert len(tool.name) <= MAX_NAME and len(f"mcp__{SERVER_NAME}__{tool.name}") <= 64
    assert tool.description == tool.description.strip() and tool.title == tool.title.strip()


@every_tool
def test_its_schemas_are_valid_and_its_arguments_exact(tool: Tool) -> None:
    for schema in (tool.input_schema, tool.output_schema):
        jsonschema_rs.meta.validate(dict(schema))
    assert tool.input_schema["additionalProperties"] is False
    assert set(tool.input_schema.get("required", [])) <= set(tool.input_schema["properties"])
    assert {"success", "status"} & set(tool.output_schema["properties"])


@every_tool
def test_every_argument_is_described_and_every_default_fits_its_own_schema(tool: Tool) -> None:
    for name, schema in tool.input_schema["properties"].items():
        assert schema.get("description"), f"{tool.name}.{name} has no description"
        if "default" in schema:
            assert jsonschema_rs.is_valid(schema, schema["default"]), f"{tool.name}.{name}"


@every_tool
def test_all_four_annotations_are_said(tool: Tool) -> None:
    hints = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    said = shown(tool)["annotations"]
    assert {name: said[name] for name in hints if isinstance(said.get(name), bool)}.keys() == hints
    assert said["readOnlyHint"] == (tool.kind == "read")


@every_tool
def test_what_its_schema_accepts_is_accepted_or_refused_with_a_sentence(tool: Tool) -> None:
    check = find_tools().checks[tool.name]

    @lenient
    @given(from_schema(dict(tool.input_schema)))
    def accepted(arguments: Any) -> None:
        try:
            filled = check(arguments)
        except Refused as refused:  # beyond what the schema says
            assert any(reason in refused.message for reason in ("NUL", "64 bits", "a key that is not valid text"))
        else:
            assert arguments.items() <= filled.items() or any(isinstance(value, dict) for value in arguments.values())

    accepted()


@every_tool
def test_whatever_comes_in_is_never_answered_with_anything_but_a_sentence(tool: Tool) -> None:
    check = find_tools().checks[tool.name]
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner), max_leaves=5
    )
    names = st.sampled_from([*tool.input_schema["properties"], "other"])

    @lenient
    @given(st.dictionaries(names, anything, max_size=4) | anything)
    def answered(arguments: Any) -> None:
        try:
            check(arguments)
        except Refused as refused:
            assert (
                refused.message[0].isupper() and refused.message.rstrip()[-1] in ".?)…" and len(refused.message) < 1000
            )

    answered()


@every_tool
def test_its_contract_is_the_one_of_the_snapshot(tool: Tool) -> None:
    path = SNAPSHOTS / f"{tool.name}.json"
    now = json.dumps(shown(tool), indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    if os.environ.get("THALWEG_SNAP"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(now)
    assert path.exists() and path.read_text() == now, f"the contract of {tool.name} changed; `just snap` accepts it"


def test_every_snapshot_is_of_a_tool_that_exists() -> None:
    names = {tool.name for tool in find_tools()}
    for path in SNAPSHOTS.glob("*.json"):
        if path.stem not in names and os.environ.get("THALWEG_SNAP"):
            path.unlink()
        assert path.stem in names or not path.exists(), f"{path.name} has no tool"


def test_a_handler_is_read_at_a_glance() -> None:
    """At most 20 lines, its signature and its docstring apart."""
    lines = {}
    for tool in find_tools():
        [handler] = ast.parse(inspect.getsource(tool.handler)).body
        assert isinstance(handler, ast.AsyncFunctionDef) and ast.get_docstring(handler) and handler.end_lineno
        lines[tool.name] = handler.end_lineno - (handler.body[0].end_lineno or 0)
    assert {name: count for name, count in lines.items() if count > 20} == {}
