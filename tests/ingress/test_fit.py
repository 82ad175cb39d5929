"""What of an answer is shown, and what it says of the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio
from mcp import MCPError
from mcp.client import Client

from mcp_ingress.fitting.fit import MAX_CHARACTERS, MAX_ROW, MAX_TEXT, fit, size_of
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.server import build_server
from tests.cognitive.node import CognitiveNode

KEY = "The spare key of the boathouse hangs behind the blue barometer."
PROSE = " ".join(f"Truck {number} whines in winter until its gearbox is warm." for number in range(400))
LONG = PROSE[:12_000] + f" {KEY} " + PROSE[12_000:]
TRUNCATION = Truncation(
    {"results": {"content": "{id}", "note": "{id}?field=note"}}, query="query", onward="{shown}, then {next}."
)


def shown_row(row: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    return fit({"results": [row]}, TRUNCATION, arguments)["results"][0]  # type: ignore[no-any-return]


def test_an_answer_that_fits_is_the_handlers_own() -> None:
    body = {"success": True, "results": [{"id": "a", "content": "x" * MAX_TEXT}], "total_found": 1}
    assert fit(body, TRUNCATION, {}) == body and list(fit(body, TRUNCATION, {})) == list(body)


def test_a_long_text_is_the_passage_that_fits_with_its_place_and_the_address_of_the_whole() -> None:
    row = shown_row({"id": "a/b é", "content": LONG}, query="Where is the spare key?")
    start, end = row["passage"]["start"], row["passage"]["end"]
    assert KEY in row["content"] == LONG[start:end] and len(row["content"]) <= MAX_TEXT
    assert row["truncated"] is True and row["whole"] == "thalweg://memory/a%2Fb%20%C3%A9"
    beginning = shown_row({"id": "a", "content": LONG})
    assert beginning["passage"]["start"] == 0 and LONG.startswith(beginning["content"])


def test_a_place_that_the_handlers_search_has_found_is_where_the_passage_is() -> None:
    at = LONG.index(KEY)
    row = shown_row({"id": "a", "content": LONG, "passage": {"start": at, "end": at + 500}})
    assert KEY in row["content"]


def test_a_second_long_text_of_a_row_has_a_place_and_an_address_of_its_own() -> None:
    row = shown_row({"id": "a", "content": LONG, "note": LONG[::-1]})
    assert row["note"] == LONG[::-1][row["note_passage"]["start"] : row["note_passage"]["end"]]
    assert row["note_whole"] == "thalweg://memory/a?field=note" and row["whole"] == "thalweg://memory/a"


def test_a_row_with_too_much_in_it_keeps_its_ids_and_does_not_push_the_others_out() -> None:
    full = {"id": "full", "content": "short", "tools": [{"name": "Bash", "input": PROSE}] * 50, "by": {PROSE: PROSE}}
    body = fit({"results": [full, {"id": "next", "content": "short"}]}, TRUNCATION, {})
    first, second = body["results"]
    assert (first["id"], first["truncated"], first["tools"][0]["name"]) == ("full", True, "Bash")
    assert size_of(first) <= MAX_ROW and second == {"id": "next", "content": "short"} and "more" not in body


def test_a_list_that_is_longer_ends_with_how_to_ask_on() -> None:
    rows = [{"id": str(number), "content": "x" * 1000} for number in range(100)]
    body = fit({"results": rows, "total_found": 100}, TRUNCATION, {"offset": 40})
    count = len(body["results"])
    assert body["results"] == rows[:count] and 15 < count < 25 and body["total_found"] == 100
    assert (body["more"], body["next"]) == (True, f"{count}, then {40 + count}.") and list(body)[-1] == "next"


def test_of_several_lists_the_largest_gives_and_each_keeps_a_row() -> None:
    rows = [{"id": str(number), "content": "x" * 1000} for number in range(100)]
    body = fit({"results": rows, "few": rows[:3]}, TRUNCATION, {})
    assert len(body["few"]) == 3 and 10 < len(body["results"]) < 22 and size_of(body) <= MAX_CHARACTERS


def test_an_object_that_is_answered_alone_has_its_text_whole_where_it_fits() -> None:
    of = Truncation({"belief": {"content": "{id}"}})
    fitting = {"belief": {"id": "a", "content": LONG[:10_000]}}
    assert fit(fitting, of, {}) == fitting
    cut = fit({"belief": {"id": "a", "content": LONG}}, of, {})["belief"]
    assert 7_000 < len(cut["content"]) <= 8_000 and cut["truncated"] and cut["whole"]


@pytest.mark.parametrize(
    "text",
    ["\x01" * 9000, '"' * 9000, "字" * 9000, "👩‍👩‍👧‍👦" * 2000],
    ids=["control sign", "quote", "Chinese", "family"],
)
def test_what_takes_several_characters_as_json_is_counted_as_the_client_gets_it(text: str) -> None:
    body = fit({"results": [{"id": str(number), "content": text} for number in range(50)]}, TRUNCATION, {})
    assert size_of(body) <= MAX_CHARACTERS and len(body["results"]) >= 5
    assert fit({"plan": text * 9, "message": text}, TRUNCATION, {})["truncated"] is True


def test_rows_without_names_are_cut_and_the_answer_says_so() -> None:
    body = fit({"columns": ["a"], "rows": [[1, PROSE], [2, "b"]]}, Truncation(), {})
    assert body["truncated"] is True and body["rows"][1] == [2, "b"] and body["rows"][0][0] == 1
    assert fit({"columns": ["a"], "rows": [[1, "a"]]}, Truncation(), {}) == {"columns": ["a"], "rows": [[1, "a"]]}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[CognitiveNode]:
    node = CognitiveNode(tmp_path)
    yield node
    node.close()


def connected(node: CognitiveNode) -> Client:
    return Client(build_server(node.door, "0"))


async def insight(client: Client, text: str = LONG) -> str:
    stored = await client.call_tool("compress_to_l2_insight", {"content": text, "source_ids": []})
    return f"thalweg://memory/l2-{stored.structured_content['id']}"  # type: ignore[index]


async def read(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    return content.text  # type: ignore[union-attr, no-any-return]


@pytest_asyncio.fixture(scope="module")
async def kept(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[CognitiveNode, str]]:
    """A node with one insight, and its address: for tests that only read."""
    node = CognitiveNode(tmp_path_factory.mktemp("kept"))
    async with connected(node) as client:
        uri = await insight(client)
    yield node, uri
    node.close()


async def test_a_search_shows_the_passage_that_is_nearest_in_meaning_where_no_word_is_said(node: CognitiveNode) -> None:
    """The hashing model knows words by their letters: a misspelt one is near to what it means."""
    async with connected(node) as client:
        await insight(client)
        answer = await client.call_tool(
            "hybrid_search", {"query_text": "zparezkeyzofzthezboathousezhangszbehindzthezbluezbarometer"}
        )
    [found] = answer.structured_content["results"]  # type: ignore[index]
    assert KEY in found["content"] and len(found["content"]) <= MAX_TEXT


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("?offset=-1", "`offset` is -1"),
        ("?offset=999999", "`offset` is 999999; it must be below "),
        ("?offset=1.5", "`offset` is '1.5'"),
        ("?offset=nan", "`offset` is 'nan'"),
        ("?offset=", "`offset` is ''"),
        ("?offset=1&offset=2", "`offset` is given twice"),
        ("?field=colour", "`field`"),
        ("?page=2", "no parameter `page`"),
        ("?id=l2-1", "no parameter `id`"),
        ("?field=reflection", "no memory with a reflection"),
    ],
)
async def test_a_page_that_cannot_be_is_refused_with_a_sentence(
    kept: tuple[CognitiveNode, str], asked: str, said: str
) -> None:
    node, uri = kept
    async with connected(node) as client:
        with pytest.raises(MCPError) as caught:
            await read(client, uri + asked)
    details = caught.value.error.data["details"]
    assert said in details and details.endswith(".") and details[0].isupper(), details


@pytest.mark.parametrize("identity", ["l2-1", "", "%FF", "a" * 5000, quote("' OR true --"), "x/../y"])
async def test_an_id_that_nothing_has_is_answered_as_any_resource_that_is_not_there(
    kept: tuple[CognitiveNode, str], identity: str
) -> None:
    async with connected(kept[0]) as client:
        with pytest.raises(MCPError) as caught:
            await read(client, f"thalweg://memory/{identity}")
    error = caught.value.error
    assert error.message == ("Parameter validation failed" if identity == "%FF" else "Resource not found")
    assert len(error.data["details"]) < 300 and error.data["tool"] == "thalweg://memory"
