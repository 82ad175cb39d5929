"""A freshness token of a caller: of the printed shape, and of partitions that there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.door import FRESHNESS_META, Request, Visitor
from storage.applied import AppliedPositions
from streams.errors import Refused
from streams.positions import Freshness, Partition
from streams.topics import MEMORY
from tests.ingress.parts import opened_door

PARTITIONS = {"a": 2, "b": 1}


class Walked(dict[str, Any]):
    """A part of a token that may not be looked into."""

    def items(self) -> Any:
        raise AssertionError("it was walked")


def test_a_token_of_partitions_that_exist_is_read() -> None:
    token = {"a": {"0": 5, "1": 0}, "b": {"0": 7}}
    assert Freshness.from_json(token, PARTITIONS) == Freshness(
        {Partition("a", 0): 5, Partition("a", 1): 0, Partition("b", 0): 7}
    )
    assert Freshness.from_json({}, PARTITIONS) == Freshness()


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ({"c": {"0": 1}}, r"names the topic 'c', which this node does not follow"),
        ({"a": {"2": 1}}, r"names the partition 2 of a, which has 2"),
        ({"a": {"-1": 1}}, r"names the partition -1 of a, which has 2"),
        ({"a": Walked({str(number): 1 for number in range(60_000)})}, r"names 60000 partitions of a, which has 2"),
        ({f"topic-{number}": Walked() for number in range(60_000)}, r"names the topic 'topic-0'"),
        ({"a": {"0": -1}}, "is not of the form"),
        ({"a": 5}, "is not of the form"),
        ("later", "is not of the form"),
    ],
)
def test_a_token_that_names_more_than_there_is_is_refused_before_anything_walks_it(token: Any, said: str) -> None:
    with pytest.raises(Refused, match=said) as refusal:
        Freshness.from_json(token, PARTITIONS)
    assert refusal.value.message.endswith("pass the `freshness` of a write's answer back unchanged.")


def test_the_positions_that_are_waited_for_know_the_topics() -> None:
    assert AppliedPositions().token({MEMORY.name: {"11": 3}})
    with pytest.raises(Refused, match="which has 12"):
        AppliedPositions().token({MEMORY.name: {"12": 3}})


async def test_a_call_with_such_a_token_is_refused_and_nothing_waits(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as door:
        meta = {FRESHNESS_META: {MEMORY.name: {str(number): 10**9 for number in range(60_001)}}}
        answer = await door.call(Visitor(door.local), Request("echo", {}, meta))
    assert answer.is_error and answer.body["error_code"] == "invalid_argument"
    assert "names 60001 partitions of thalweg.memory.v1, which has 12" in answer.body["message"]
