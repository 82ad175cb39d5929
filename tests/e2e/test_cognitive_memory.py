"""Cognitive Memory as its printed documentation has it.

Each request over stdio by the real MCP client, each answer of the printed shape.

`data/cognitive_memory_printed.json` holds the document's JSON: of each tool the signature, a request and an answer, of
each resource a response and the URIs of its example calls.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters

from tests.e2e.program import Program
from tests.e2e.test_agent import answered
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.timeout(300)

PRINTED = json.loads((Path(__file__).parent / "data" / "cognitive_memory_printed.json").read_text())
DIMENSIONS = (1536, 384)
"""Of the printed vectors and of this node's."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
MAY_BE_NULL = frozenset({"baseline_precision"})
"""Null until three days have a result."""
GOLDEN = [3] * 20 + [12] * 20 + [30] * 10
"""Words of the golden queries."""
INSIGHT = "Insight about consciousness patterns: memory carries consciousness"
EPISODE = PRINTED["resources"]["memory://episode-memory"]["response"]["contents"][0]


def same_shape(printed: Any, given: Any, at: str = "") -> None:
    """Every printed key is there and of the printed type; a list holds something, all of the printed shape."""
    if isinstance(printed, dict):
        assert isinstance(given, dict), at
        for name, value in printed.items():
            assert name in given, f"{at}.{name} is missing"
            if value is not None and not (name in MAY_BE_NULL and given[name] is None):
                same_shape(value, given[name], f"{at}.{name}")
    elif isinstance(printed, list):
        assert isinstance(given, list) and given, f"{at} is no list with something in it"
        for number, value in enumerate(given):
            same_shape(printed[0], value, f"{at}[{number}]")
    elif isinstance(printed, (bool, str)):
        assert type(given) is type(printed), f"{at}: {given!r}"
        assert not TIME.fullmatch(str(printed)) or TIME.fullmatch(given), f"{at}: {given!r}"
    else:
        numbers = (int,) if isinstance(printed, int) else (int, float)
        assert isinstance(given, numbers) and not isinstance(given, bool), f"{at}: {given!r}"


def includes(served: Any, printed: Any, at: str = "") -> None:
    """A signature as printed; descriptions may say more, vectors have as many numbers as the node's model gives."""
    if isinstance(printed, dict):
        for name, value in printed.items():
            assert name in served, f"{at}.{name} is missing"
            includes(served[name], value, f"{at}.{name}")
    elif at.endswith(".description"):
        assert served.startswith(printed.replace(*map(str, DIMENSIONS))), f"{at}: {served}"
    else:
        assert served == (DIMENSIONS[1] if printed == DIMENSIONS[0] else printed), f"{at}: {served}"


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[Program]:
    """The program with a ground truth and a golden set, which operators import."""
    program = Program(tmp_path / "home")
    truth, golden = tmp_path / "truth.jsonl", tmp_path / "golden.jsonl"
    truth.write_text(json.dumps({"id": 42, "query": "What rests on memory?", "expected_docs": [1], "session_id": "t"}))
    rows = [
        {
            "query": " ".join(["memory", f"n{number}", *["rests"] * (words - 2)]),
            "expected_docs": [1, 2],
            "session_id": f"g{number}",
        }
        for number, words in enumerate(GOLDEN)
    ]
    golden.write_text("\n".join(map(json.dumps, rows)))
    assert program("memory", "import-ground-truth", str(truth), "--json").json() == {"read": 1, "imported": 1}
    assert program("memory", "import-golden-set", str(golden), "--json").json() == {
        "imported": 50,
        "short": 20,
        "medium": 20,
        "long": 10,
    }
    yield program
    program("stop")


async def test_every_printed_request_gives_an_answer_of_the_printed_shape(prepared: Program) -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "thalweg", "mcp"], env=prepared.env)
    async with Client(server, mode="legacy") as client:
        await _signatures(client)
        answers: dict[str, dict[str, Any]] = {}
        for tool, arguments in _requests(answers):
            result = await answered(client, tool, arguments)
            assert not result.is_error and result.structured_content is not None, (tool, result)
            answers[tool] = result.structured_content
            if (
                tool != "update_working_memory" or answers[tool]["evicted_id"] is not None
            ):  # printed is the answer that evicts
                same_shape(PRINTED["tools"][tool]["returns"], answers[tool], tool)
            assert answers[tool]["status"] == ("ok" if tool == "ping" else "success")
        assert answers["update_working_memory"]["evicted_id"] is not None
        await _resources(client)
        await _errors(client)
        kept = answers["update_working_memory"]["added_id"]
        assert prepared("memory", "archive", str(kept), "--json").json()["item_id"] == kept
        (gone,) = (await _read(client, "memory://stale-memory?reason=MANUAL_ARCHIVE"))["contents"]
        assert gone["original_content"] == "item 10"
    report = prepared("memory", "agreement", "--json").json()
    assert prepared("memory", "agreement").out.startswith(report["summary"] + "\n")
    assert prepared("memory", "archive", str(kept)).sentence == f"There is no item {kept} in working memory."
    (prepared.home / "bad.jsonl").write_text('{"query": "q", "session_id": "s", "expected_docs": [1]}\n{\n')
    assert "line 2: not JSON" in prepared("memory", "import-ground-truth", str(prepared.home / "bad.jsonl")).sentence


async def _signatures(client: Client) -> None:
    served = {tool.name: tool.model_dump(by_alias=True) for tool in (await client.list_tools()).tools}
    for name, printed in PRINTED["tools"].items():
        includes(served[name], printed["signature"], name)


def _requests(answers: dict[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The printed values, in an order in which each finds what it needs; `answers` are those given so far."""
    printed = PRINTED["tools"]
    said = PRINTED["resources"]["memory://l0-raw"]["response"]["contents"][0]
    yield "ping", {}
    yield "store_raw_dialogue", printed["store_raw_dialogue"]["request"]
    yield "store_raw_dialogue", {name: said[name] for name in ("session_id", "speaker", "content", "metadata")}
    yield "compress_to_l2_insight", {"content": INSIGHT, "source_ids": [answers["store_raw_dialogue"]["id"]]}
    yield "hybrid_search", {"query_text": "consciousness and memory"}
    yield (
        "hybrid_search",
        {"query_text": "consciousness", "top_k": 5, "weights": printed["hybrid_search"]["returns"]["weights"]},
    )
    yield from (("update_working_memory", {"content": f"item {number}", "importance": 0.5}) for number in range(11))
    yield "store_episode", {name: EPISODE[name] for name in ("query", "reward", "reflection")}
    document = printed["store_dual_judge_scores"]["document"]
    yield "store_dual_judge_scores", {"query_id": 42, "query": "What rests on memory?", "docs": [document]}
    yield "get_golden_test_results", {}


async def _resources(client: Client) -> None:
    """The printed URIs: those of the responses and those of the example calls."""
    listed = {str(resource.uri) for resource in (await client.list_resources()).resources}
    assert listed == set(PRINTED["resources"])
    for printed in PRINTED["resources"].values():
        for uri in [printed["response"]["uri"], *printed["calls"]]:
            envelope = await _read(client, uri)
            assert envelope["uri"] == uri and set(envelope) == set(printed["response"])
            same_shape(printed["response"], envelope, uri)


async def _read(client: Client, uri: str) -> dict[str, Any]:
    """What is read, once it is not `stale` any more."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        (content,) = (await client.read_resource(uri)).contents
        assert content.mime_type == "application/json"
        envelope: dict[str, Any] = json.loads(content.text)  # type: ignore[union-attr]
        if not envelope.get("stale") or time.monotonic() > deadline:
            return envelope
        await asyncio.sleep(0.1)


async def _errors(client: Client) -> None:
    """The printed error, from a tool and from a resource."""
    result = await answered(client, "hybrid_search", {"query_text": "x", "weights": {"semantic": 0.5}})
    assert result.is_error and result.structured_content is not None
    same_shape(PRINTED["error"], result.structured_content)
    assert result.structured_content["details"] == "Weights must sum to 1.0, got 0.8"
    with pytest.raises(MCPError) as caught:
        await client.read_resource("memory://episode-memory")
    same_shape(PRINTED["error"], caught.value.error.data)
