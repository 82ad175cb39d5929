"""The tools of Talos and the inner voice over stdio, compared with their reference.

Each argument, each answer's shape.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.e2e.program import Program
from tests.e2e.test_agent import call, over_stdio, refused

pytestmark = pytest.mark.timeout(300)

REFERENCE: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[1] / "talos" / "reference.json").read_text(encoding="utf-8")
)
"""The reference's input schemas, printed requests and responses, word for word, by tool."""
SESSION = "2026-01-05-ontology-design"
FREQUENT_PATTERNS = (
    "MATCH (p:Pattern) WHERE p.occurrence_count >= $least "
    "RETURN p.name AS pattern_name, p.occurrence_count AS occurrence_count"
)
ENTRY = (
    "I realized that friction points are more valuable to track than emotional states because they're "
    "operationally verifiable. "
    "This connects to the epistemic humility principle—model what you can verify."
)


@pytest.fixture
def thalweg(home: Path, broker_url: str | None) -> Iterator[Program]:
    program = Program(home, broker_url, SURR_ENABLE_INNER_VOICE="1")
    yield program
    program("stop")


def assert_shape(printed: Any, found: Any, at: str) -> None:
    """What is printed is there, of the same JSON type (nested; a list by its first element, which must be there)."""
    if isinstance(printed, Mapping):
        assert printed.keys() <= found.keys(), f"{at}: {printed.keys() - found.keys()}"
        for name, value in printed.items():
            assert_shape(value, found[name], f"{at}.{name}")
    elif isinstance(printed, list):
        assert isinstance(found, list) and (found or not printed), f"{at}: {found!r}"
        if printed:
            assert_shape(printed[0], found[0], f"{at}[]")
    else:
        kinds = (int, float) if isinstance(printed, float) else type(printed)
        assert isinstance(found, kinds) and isinstance(found, bool) == isinstance(printed, bool), f"{at}: {found!r}"


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The tool's answer, which has the printed shape."""
    answer = await call(client, tool, **arguments)
    assert_shape(REFERENCE[tool]["response"], answer, tool)
    return answer


async def test_the_nine_tools_answer_as_the_reference_prints_it(thalweg: Program) -> None:
    async with over_stdio(thalweg) as client:
        await _schemas_are_the_references(client)
        await _three_sessions(client)
        current = await ask(
            client, "session_open", session_id=SESSION, goal="Design", persona="Sage", protocol="LBRP", human="Robbie"
        )
        assert current["inherited_count"] == sum(current["inherited_summary"].values())
        written = await ask(
            client,
            "journal_write",
            content=ENTRY,
            category="insight",
            session_id=SESSION,
            domain="meta-cognitive",
            confidence=0.85,
        )
        insight = _insight_that_led_to_a_belief(written)
        friction = await ask(
            client,
            "friction_log",
            description="Read tool truncation",
            category="tooling",
            session_id=SESSION,
            blocking=True,
        )
        assert (friction["is_recurring"], friction["recurrence_count"]) == (True, 4)
        await ask(
            client, "reflect", content="I realized I open files twice.", trigger="pattern_notice", session_id=SESSION
        )
        days = {"start": "2020-01-01", "end": "2999-12-31"}
        found = await ask(
            client,
            "journal_query",
            query="friction points or emotional states",
            entity_types=["Insight"],
            domains=["meta-cognitive"],
            time_range=days,
            limit=3,
        )
        assert insight["id"] in [result["id"] for result in found["results"]]
        checked = await ask(
            client, "pattern_check", session_id=SESSION, context="truncated reads", include_emerging=True
        )
        assert (
            checked["matching_patterns"][0]["total_occurrences"] == 3
            and checked["emerging_signals"][0]["occurrences"] == 2
        )
        asked = await ask(client, "graph_query", cypher=FREQUENT_PATTERNS, parameters={"least": 3}, explain=False)
        assert asked["columns"] == ["pattern_name", "occurrence_count"] and asked["rows"][0][1] == 3
        voice = await ask(
            client,
            "inner_voice.retrieve",
            **{**REFERENCE["inner_voice.retrieve"]["request"], "query": "friction and read tool"},
        )
        assert set(voice) == {"snippets", "diagnostics"} and set(voice["snippets"][0]) == set(
            REFERENCE["inner_voice.retrieve"]["response"]["snippets"][0]
        )
        assert set(voice["diagnostics"]) == set(REFERENCE["inner_voice.retrieve"]["response"]["diagnostics"])
        closed = await ask(
            client, "session_close", session_id=SESSION, goal_achieved=True, summary="Designed.", skip_reflection=False
        )
        assert closed["reflection_prompt"].startswith(
            REFERENCE["session_close"]["response"]["reflection_prompt"].rstrip(".")
        )
        again = await refused(client, "session_open", session_id=SESSION, goal="Again")
        assert (again["error_code"], again["suggested_session_id"]) == ("session_exists", f"{SESSION}-2")
    told = thalweg.sql("SELECT count(*) FROM session_events WHERE event_type = 'knowledge.pattern_detected'")
    assert told == [[1]]


def _insight_that_led_to_a_belief(written: dict[str, Any]) -> dict[str, Any]:
    insight, *others = written["extracted_entities"]
    [belief] = [entity for entity in others if entity["type"] == "Belief"]
    assert insight["type"] == "Insight"
    assert {"type": "LED_TO", "from": insight["id"], "to": belief["id"]} in written["extracted_relationships"]
    found: dict[str, Any] = insight
    return found


async def _schemas_are_the_references(client: Client) -> None:
    tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    for tool, printed in REFERENCE.items():
        for name, schema in printed.get("input_schema", {}).get("properties", {}).items():
            found = tools[tool]["properties"][name]
            assert schema.items() <= found.items() or name in ("entity_types", "domains", "time_range"), (tool, name)
        assert tools[tool].get("required") == printed.get("input_schema", {"required": ["query"]})["required"]


async def _three_sessions(client: Client) -> None:
    """Three that show one friction, two of them also another: a pattern and a signal."""
    for number in range(3):
        session_id = f"2026-01-0{number + 1}-before"
        await call(client, "session_open", session_id=session_id, goal="Read everything")
        for description in ("Read tool truncation", "The linter hangs")[: 2 if number else 1]:
            await call(client, "friction_log", description=description, category="tooling", session_id=session_id)
        await call(client, "session_close", session_id=session_id, goal_achieved=True, skip_reflection=True)
