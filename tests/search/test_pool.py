"""Memories and turns share the candidates of a search of both: as many as of one alone, the best of each side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from processors.embedding.loader import load_embedder
from processors.embedding.model import encode_query
from storage.search.query import Query
from storage.search.ranking.pool import WHOLE, Share, shares
from storage.search.records.filter import Filter
from storage.search.search import ranked
from storage.search.why import explain
from tests.search.test_captured import Node, line

NOTHING = np.empty(0)


def test_both_are_whole_where_together_they_are_no_more_than_the_pool() -> None:
    few = np.array([0.9, 0.5])
    assert shares(4, (few, few), (few, NOTHING)) == [WHOLE, WHOLE]


def test_each_has_the_part_of_the_best_that_is_its_own() -> None:
    near, far = np.array([0.9, 0.8, 0.7, 0.6]), np.array([0.5, 0.4, 0.3, 0.2])
    assert shares(4, (near, far), (far, near)) == [Share(1.0, 0.0), Share(0.0, 1.0)]
    mixed = np.array([0.85, 0.75, 0.1, 0.0])
    assert shares(4, (near, mixed), (NOTHING, NOTHING)) == [Share(0.5, 1.0), Share(0.5, 1.0)]


def test_what_is_tied_is_nobodys_loss() -> None:
    same = np.full(4, 0.5)
    assert shares(4, (same, same), (same, same)) == [WHOLE, WHOLE]


@pytest.fixture
def node(tmp_path: Path, model_cache: Path) -> Iterator[Node]:
    node = Node(tmp_path, load_embedder("minilm", cache_dir=model_cache))
    yield node
    node.close()


def asked(node: Node, text: str, *, with_turns: bool, pool: int = 10) -> Query:
    assert node.embedder is not None
    vector, tokens = encode_query(node.embedder, text)
    return Query(text, vector, Filter("default"), 10, tokens, pool=pool, with_turns=with_turns)


async def told(node: Node, *texts: str) -> None:
    for text in texts:
        await node.call("belief_create", content=text)


def gauges(first: int) -> list[str]:
    """Texts of different lengths, so that none is tied with another."""
    return [f"Gauge {number} of the weir drifts{' once more' * number}." for number in range(first, first + 20)]


async def test_a_search_of_both_has_as_many_candidates_as_one_of_memories_alone(node: Node) -> None:
    for text in gauges(0):
        node.clock.time += timedelta(hours=1)  # each stands alone
        await told(node, text)
    node.capture(*(line(number, text, session_id=f"s{number}") for number, text in enumerate(gauges(20))))
    node.fill()
    cursor, text = node.store.database.cursor(), "which gauge of the weir drifts?"
    alone = ranked(cursor, node.indexes, asked(node, text, with_turns=False))
    both = ranked(cursor, node.indexes, asked(node, text, with_turns=True))
    assert 10 <= alone.total <= 20 and 10 <= both.total <= 20, "of each side ten at most"
    assert {"Turn", "Belief"} <= {hit.kind for hit in both.read(both.total)}


async def test_turns_that_are_far_from_the_question_take_no_memory_its_place(node: Node) -> None:
    await told(node, *gauges(0))
    node.capture(*(line(number, f"Bread {number} needs salt and an oven.") for number in range(40)))
    node.fill(2)
    cursor, text = node.store.database.cursor(), "which gauge of the weir drifts?"
    alone = ranked(cursor, node.indexes, asked(node, text, with_turns=False)).read(10)
    both = ranked(cursor, node.indexes, asked(node, text, with_turns=True)).read(10)
    assert [hit.text for hit in both] == [hit.text for hit in alone]


async def test_why_says_of_a_memory_behind_many_turns_that_both_are_looked_at_together(node: Node) -> None:
    answer = await node.call("belief_create", content="A gauge hangs in the hall.")
    turns = [f"Gauge {number} of the weir drifts." for number in range(60)]
    node.capture(*(line(number, text, session_id=f"s{number}") for number, text in enumerate(turns)))
    node.fill(2)
    question = replace(asked(node, "which gauge of the weir drifts?", with_turns=True), pool=None)
    found = explain(node.store.database.cursor(), node.indexes, question, answer["belief"]["id"])
    assert found.verdict == "outranked" and found.place is None
    together = "and of memories and turns together the best 50 are looked at."
    assert f"On the vector side it is number 1, {together}" in found.reasons
