"""What every tool of Context Graph refuses, and how: code, sentence, field and pulse. Nothing of it is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from mcp_ingress.door import Answer, Request
from mcp_ingress.inventory import find_tools
from mcp_ingress.toolset import INVALID_PARAMS
from processors.context_graph.rules.memories import TOOLSET
from tests.valence_kb.conftest import Agent

NOBODY = "00000000-0000-4000-8000-000000000001"
TOOLS = {tool.name: tool.input_schema for tool in find_tools() if tool.toolset == TOOLSET}
PULSE_FIELDS = ["entropy", "coherence", "learning_score", "quadrant", "suggested_action"]
OF_ANOTHER_TYPE = {
    "string": 5,
    "number": "much",
    "integer": 2.5,
    "boolean": "yes",
    "array": "one",
    "object": "one",
}
MEANING: Mapping[str, Any] = {"string": "text", "number": 0.5, "integer": 1, "boolean": True, "array": [], "object": {}}


class Bad(NamedTuple):
    """Arguments, and the reason, field and a part of the sentence with which they are refused."""

    arguments: Mapping[str, Any]
    reason: str
    field: str
    sentence: str


def of_schema(schema: Mapping[str, Any]) -> Iterator[Bad]:
    """Everything that is wrong by the schema alone, one argument at a time."""
    fields, needed = schema.get("properties", {}), schema.get("required", [])
    good = {name: fields[name].get("enum", [MEANING[fields[name]["type"]]])[0] for name in needed}
    yield Bad({**good, "colour": "red"}, "unknown_argument", "colour", "There is no argument `colour`")
    for name in needed:
        rest = {other: value for other, value in good.items() if other != name}
        yield Bad(rest, "missing", name, f"`{name}` is missing")
    for name, field in fields.items():
        kind = field["type"]
        yield Bad({**good, name: OF_ANOTHER_TYPE[kind]}, "type", name, f"`{name}` must be")
        yield Bad({**good, name: None}, "type", name, "not null")
        if kind == "number":
            for value in (math.nan, math.inf, -math.inf):
                yield Bad({**good, name: value}, "range", name, "a finite number is expected")
        step = 1 if kind == "integer" else 0.001
        if "minimum" in field:
            yield Bad({**good, name: field["minimum"] - step}, "range", name, f"at least {field['minimum']}")
        if "maximum" in field:
            yield Bad({**good, name: field["maximum"] + step}, "range", name, f"at most {field['maximum']}")
        if "enum" in field:
            yield Bad({**good, name: "caffeine"}, "enum", name, f"must be one of {field['enum'][0]}")
        if field.get("minLength"):
            yield Bad({**good, name: ""}, "range", name, "is empty")
        if "maxLength" in field:
            yield Bad({**good, name: "x" * (field["maxLength"] + 1)}, "range", name, f"{field['maxLength']}")
        if field.get("minItems", 0) > 1:
            few = [1] * (field["minItems"] - 1)
            yield Bad({**good, name: few}, "range", name, f"{field['minItems']}")
            yield Bad({**good, name: [*few, 1, 1]}, "range", name, f"{field['minItems']}")


BY_RULE = {
    "trigger_workspace_broadcast": [
        Bad({"memory_id": " "}, "missing", "memory_id", "`memory_id` is blank"),
        Bad({"memory_id": NOBODY}, "not_found", "memory_id", NOBODY),
        Bad({"memory_id": "no uuid"}, "not_found", "memory_id", "no uuid"),
    ],
    "adjust_neuromodulator": [
        Bad(
            {"modulator": "acetylcholine", "delta": 0.1},
            *("enum", "modulator", "must be one of dopamine, serotonin, noradrenaline"),
        )
    ],
    "get_threshold_status": [Bad({"embedder_id": 14}, "range", "embedder_id", "at most 13")],
    "trigger_recalibration": [Bad({"level": 5}, "range", "level", "at most 4")],
    "omni_infer": [
        Bad({"source": " ", "direction": "bridge"}, "missing", "source", "`source` is blank"),
        Bad({"source": NOBODY, "direction": "abduction"}, "not_found", "source", NOBODY),
        Bad({"source": NOBODY}, "missing", "target", "`target`"),
        Bad({"source": NOBODY, "target": NOBODY}, "not_found", "source", NOBODY),
    ],
}
"""What the schema allows and the tool refuses."""


async def refused(agent: Agent, tool: str, bad: Bad) -> Answer:
    answer = await agent.door.call(agent._visitor, Request(tool, dict(bad.arguments)))
    assert answer.failure is not None, (tool, bad)
    said = (answer.failure.plane, answer.failure.rpc_code, answer.body["reason"], answer.body["field"])
    assert said == ("jsonrpc", INVALID_PARAMS, bad.reason, bad.field), (tool, bad, answer.body)
    assert bad.sentence in answer.body["message"], (tool, bad, answer.body["message"])
    assert answer.body["remedy"] and list(answer.body["_cognitive_pulse"]) == PULSE_FIELDS
    return answer


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_tool_refuses_what_its_schema_forbids_and_names_the_argument(asked: Agent, tool: str) -> None:
    for bad in of_schema(TOOLS[tool]):
        await refused(asked, tool, bad)


@pytest.mark.parametrize("tool", BY_RULE)
async def test_a_tool_refuses_what_its_rules_forbid_and_names_the_argument(asked: Agent, tool: str) -> None:
    for bad in BY_RULE[tool]:
        await refused(asked, tool, bad)


def test_every_tool_is_asked_something_wrong() -> None:
    assert len(TOOLS) == 35 and all(list(of_schema(schema)) for schema in TOOLS.values())
