"""journal_query: filters first, then what fits best, with its neighbours. Keywords and graph only: no model here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from streams.errors import Refused, Unavailable
from tests.talos.node import SmallNode

SESSION = "2026-01-05-ontology-design"


async def write(node: SmallNode, content: str, category: str = "insight", **more: Any) -> dict[str, Any]:
    return await node.call("journal_write", content=content, category=category, **more)


def found(answer: dict[str, Any]) -> set[tuple[str, str]]:
    return {(result["entity_type"], result["id"]) for result in answer["results"]}


async def test_a_written_insight_is_found_with_its_neighbours(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal="Learn")
    written = await write(node, "Xylophones resonate.", session_id=SESSION, domain="technical")
    [insight] = written["extracted_entities"]
    answer = await node.call("journal_query", query="xylophones")
    assert [result["entity_type"] for result in answer["results"]] == ["Insight", "Goal"], (
        "the insight stands for its entry, and then what stands beside it in the session"
    )
    assert answer["total_found"] == 2
    result = answer["results"][0]
    assert result["id"] == insight["id"]
    assert result["also"] == [{"kind": "JournalEntry", "id": written["entry_id"]}]
    assert (result["content"], result["domain"], result["created_at"]) == (
        "Xylophones resonate.",
        "technical",
        "2026-01-05T12:00:01Z",
    )
    assert result["related"][0] == {"type": "Session", "id": SESSION}
    assert 0 < result["score"] <= 1
    assert "stale" not in answer


async def test_without_a_model_the_answer_says_so(node: SmallNode) -> None:
    answer = await node.call("journal_query", query="xylophones")
    assert (answer["success"], answer["results"], answer["total_found"], answer["degraded"]) == (True, [], 0, True)
    assert "embedder" in answer["message"]


async def test_entity_types_leave_out_all_others(node: SmallNode) -> None:
    await write(node, "Xylophones resonate. I believe in xylophones.")
    answer = await node.call("journal_query", query="xylophones", entity_types=["Belief"])
    assert {result["entity_type"] for result in answer["results"]} == {"Belief"}
    both = await node.call("journal_query", query="xylophones", entity_types=["Belief", "JournalEntry"])
    assert {result["entity_type"] for result in both["results"]} == {"Belief", "JournalEntry"}


async def test_domains_compare_without_case(node: SmallNode) -> None:
    await write(node, "Xylophones resonate.", domain="Technical")
    await write(node, "Xylophones shine.", domain="relational")
    answer = await node.call("journal_query", query="xylophones", domains=["TECHNICAL"], entity_types=["Insight"])
    assert [result["content"] for result in answer["results"]] == ["Xylophones resonate."]


async def test_the_last_second_of_the_end_day_is_in_and_the_next_is_not(node: SmallNode) -> None:
    node.clock.time = datetime(2026, 1, 7, 23, 59, 59, tzinfo=UTC)
    await write(node, "Xylophones at night.")
    assert node.clock.time == datetime(2026, 1, 8, tzinfo=UTC)
    await write(node, "Xylophones in the morning.")

    async def contents(**time_range: str) -> list[str]:
        answer = await node.call(
            "journal_query", query="xylophones", entity_types=["JournalEntry"], time_range=time_range
        )
        return sorted(result["content"] for result in answer["results"])

    assert await contents(start="2026-01-07", end="2026-01-07") == ["Xylophones at night."]
    assert await contents(start="2026-01-08") == ["Xylophones in the morning."]
    assert await contents(end="2026-01-06") == []
    assert len(await contents(start="0001-01-01", end="9999-12-31")) == 2


async def test_a_merged_insight_is_not_listed(node: SmallNode) -> None:
    first, _ = await write(node, "Xylophones resonate."), await write(node, "xylophones RESONATE")
    answer = await node.call("journal_query", query="xylophones", entity_types=["Insight"])
    assert found(answer) == {("Insight", first["extracted_entities"][0]["id"])}


async def test_the_limit_cuts_the_results_and_not_the_count(node: SmallNode) -> None:
    for number in range(5):
        await write(node, f"Xylophone number {number}.")
    answer = await node.call("journal_query", query="xylophone", entity_types=["Insight"], limit=2)
    assert (len(answer["results"]), answer["total_found"]) == (2, 5)
    assert (await node.call("journal_query", query="xylophone", limit=5000))["total_found"] == 5, "clusters"


async def test_sessions_are_named_also_of_what_no_row_shows(node: SmallNode) -> None:
    for number in range(1, 4):
        await write(node, f"Xylophone number {number}.", session_id=f"2026-01-0{number}-music")
    await write(node, "Xylophones without a session.")
    await write(node, "Trumpets.", session_id="2026-01-09-brass")
    answer = await node.call("journal_query", query="xylophone", entity_types=["Insight"], limit=1)
    [row] = answer["results"]
    assert answer["sessions"][0] == f"2026-01-0{row['content'].split()[2].strip('.')}-music"
    assert sorted(answer["sessions"]) == ["2026-01-01-music", "2026-01-02-music", "2026-01-03-music"]
    assert "sessions" not in await node.call("journal_query", query="tuba")


async def test_of_many_sessions_the_ten_best_are_named(node: SmallNode) -> None:
    for number in range(12):
        await write(node, "Xylophone" + " and drum" * number + ".", session_id=f"2026-01-{10 + number}-music")
    answer = await node.call("journal_query", query="xylophone", entity_types=["Insight"], limit=2)
    assert answer["sessions"] == [f"2026-01-{10 + number}-music" for number in range(10)], "the shorter, the better"


async def test_a_session_that_says_more_on_the_query_is_named_before_one_with_a_better_row(node: SmallNode) -> None:
    await write(node, "Xylophone.", session_id="2026-01-01-first")
    await write(node, "Xylophone and drum.", session_id="2026-01-02-once")
    for number in range(3):
        for content in (f"Xylophone and drum and day {number}.", "A trumpet.", "Another trumpet."):
            await write(node, content, session_id="2026-01-03-often")  # the trumpets: neighbours count for each other
    rows = (await node.call("journal_query", query="xylophone", entity_types=["Insight"]))["results"]
    assert [row["content"] for row in rows][:2] == ["Xylophone.", "Xylophone and drum."]
    answer = await node.call("journal_query", query="xylophone", entity_types=["Insight"], limit=1)
    assert answer["sessions"] == ["2026-01-01-first", "2026-01-03-often", "2026-01-02-once"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"query": "  "}, "empty_query"),
        ({"query": "x", "limit": 0}, "invalid_argument"),
        ({"query": "x", "entity_types": ["Mood"]}, "unknown_entity_type"),
        ({"query": "x", "time_range": {"start": "2026-02-30"}}, "invalid_time_range"),
        ({"query": "x", "time_range": {"end": "20260105"}}, "invalid_time_range"),
        ({"query": "x", "time_range": {"start": "2026-01-06", "end": "2026-01-05"}}, "invalid_time_range"),
    ],
)
async def test_what_cannot_be_asked_is_refused_with_its_code(
    node: SmallNode, arguments: dict[str, Any], code: str
) -> None:
    with pytest.raises(Refused) as caught:
        await node.call("journal_query", **arguments)
    assert caught.value.error_code == code
    if code == "unknown_entity_type":
        assert len(caught.value.extra["valid_options"]) == 21


async def test_an_answer_that_may_lack_the_callers_writes_is_stale(node: SmallNode) -> None:
    node.is_behind = True
    await write(node, "Xylophones resonate.")
    assert (await node.call("journal_query", query="xylophones"))["stale"]


async def test_with_the_store_down_the_door_is_told(node: SmallNode) -> None:
    node.reader.is_down = True
    with pytest.raises(Unavailable):
        await node.call("journal_query", query="xylophones")
