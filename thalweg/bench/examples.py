"""What `thalweg bench` calls a tool with.

Arguments follow the tool's schema. Here is also what has to be stored before the call, and what a search tool searches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_ingress.inventory import find_tools
from mcp_ingress.tool import Tool
from streams.errors import Refused
from thalweg.bench.report import Target

WRITE, SEARCH = "journal_write", "journal_query"
"""What is measured unless another tool is named."""
ANSWER_P95: Mapping[str, Target] = {
    "update_working_memory": Target(20.0),
    "compress_to_l2_insight": Target(40.0),
    "belief_create": Target(40.0),
    "inject_context": Target(40.0),
}
"""Promised: one caller, until answered. (`journal_write` is promised until it can be searched.)"""
ARGUMENTS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "journal_write": lambda text: {"category": "observation"},
    "session_open": lambda text: {"session_id": f"2026-01-05-bench-{text.rsplit(' ', 1)[-1]}"},
    "store_raw_dialogue": lambda text: {"session_id": "bench", "speaker": "user"},
    "store_episode": lambda text: {"reflection": f"Problem: {text}. Lesson: measure first."},
    "pattern_record": lambda text: {"type": "bench"},
    "search_teleological": lambda text: {"query_content": text},
    "graph_query": lambda text: {"cypher": "MATCH (i:Insight) RETURN i.id LIMIT 10"},
}
"""Arguments that the schema alone does not tell, by the text of the call."""


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """A call that has to be made before each measured one.

    The tool, where in its answer the id stands, and the argument that takes it.
    """

    tool: str
    id_path: Sequence[str]
    argument: str


PREREQUISITES: Mapping[str, Prerequisite] = {
    "session_close": Prerequisite("session_open", ("session_id",), "session_id"),
    "belief_supersede": Prerequisite("belief_create", ("belief", "id"), "old_belief_id"),
    "exchange_add": Prerequisite("session_start", ("session_id",), "session_id"),
    "insight_extract": Prerequisite("session_start", ("session_id",), "session_id"),
    "session_end": Prerequisite("session_start", ("session_id",), "session_id"),
    "pattern_reinforce": Prerequisite("pattern_record", ("pattern_id",), "pattern_id"),
    "belief_get": Prerequisite("belief_create", ("belief", "id"), "belief_id"),
    "exchange_list": Prerequisite("session_start", ("session_id",), "session_id"),
    "session_get": Prerequisite("session_start", ("session_id",), "session_id"),
    "pattern_check": Prerequisite("session_open", ("session_id",), "session_id"),
}


@dataclass(frozen=True, slots=True)
class RowRequest:
    """The request that makes the rows of a search tool: its type, and its data from a text.

    `is_ready`: the bench publishes what the stages find with it, so that a node only applies it.
    """

    short_type: str
    data: Callable[[str], dict[str, Any]]
    is_ready: bool = False


_JOURNAL = RowRequest("talos.journal.written", lambda text: {"content": text, "category": "observation"})
_BELIEF = RowRequest("valence.belief.created", lambda text: {"content": text})
_MEMORY = RowRequest("context.memory.stored", lambda text: {"content": text}, is_ready=True)
SEARCH_ROWS: Mapping[str, RowRequest] = {
    "journal_query": _JOURNAL,
    "inner_voice.retrieve": _JOURNAL,
    "hybrid_search": RowRequest("cm.l2.stored", lambda text: {"content": text, "source_ids": []}),
    "belief_query": _BELIEF,
    "search_graph": _MEMORY,
    "search_teleological": _MEMORY,
}
SEARCH_P95 = Target(30.0)
SEARCH_P99: Mapping[str, Target] = {"search_teleological": Target(60.0)}
"""Promised of these tools in place of SEARCH_P95."""

ROWS_BEFORE_WRITE: Mapping[str, RowRequest] = {
    WRITE: _JOURNAL,
    "belief_create": _BELIEF,
    "compress_to_l2_insight": SEARCH_ROWS["hybrid_search"],
}
"""What a store is filled with before one of these is measured on it."""


EXEMPT_TOOLS = frozenset({"tension_resolve", "store_dual_judge_scores", "get_golden_test_results"})
"""Writes that need what no other call gives them here: a tension, a ground truth, a golden set."""


def rows_before_write(name: str) -> RowRequest:
    """What `bench write --size` fills a store with. Raises Refused."""
    if name not in ROWS_BEFORE_WRITE:
        raise Refused(
            f"`bench write --size` fills a store for {', '.join(ROWS_BEFORE_WRITE)} only; "
            f"measure {name} without `--size`."
        )
    return ROWS_BEFORE_WRITE[name]


def write_tool(name: str) -> Tool:
    """The tool that `bench write` is to measure. Raises Refused when it cannot be measured."""
    tool = _tool(name)
    if tool.kind != "write" or name in EXEMPT_TOOLS:
        writes = sorted(tool.name for tool in find_tools() if tool.kind == "write" and tool.name not in EXEMPT_TOOLS)
        raise Refused(f"`bench write` cannot measure {name}; it measures {', '.join(writes)}.")
    return tool


def search_tool(name: str) -> Tool:
    """The tool that `bench search` is to measure. Raises Refused when it cannot be measured."""
    if name not in SEARCH_ROWS:
        raise Refused(f"`bench search` cannot measure {name}; it measures {', '.join(SEARCH_ROWS)}.")
    return _tool(name)


def _tool(name: str) -> Tool:
    tools = find_tools()
    tool = tools.tools.get(name)
    if tool is None:
        near = tools.nearest(name)
        raise Refused(f"There is no tool {name!r}." + (f" Did you mean {near!r}?" if near else ""))
    return tool


def example(tool: Tool, text: str) -> dict[str, Any]:
    """Its required arguments, made of the text, and those that `ARGUMENTS` adds.

    An id that `PREREQUISITES` gives is put in its place by the caller.
    """
    properties = tool.input_schema.get("properties", {})
    made = {name: _value(properties[name], text) for name in tool.input_schema.get("required", ())}
    given = ARGUMENTS.get(tool.name)
    return made | (given(text) if given else {})


def _value(schema: Mapping[str, Any], text: str) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    values = {
        "string": text,
        "integer": schema.get("minimum", 1),
        "number": schema.get("maximum", 1.0) / 2,
        "boolean": True,
    }
    return values.get(kind, [] if kind == "array" else {})
