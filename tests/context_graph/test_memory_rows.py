"""Rows of memories beside the table: what a commit writes is known at once, and what changes is read anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.context_graph.memory_rows import MemoryRow, MemoryRows
from streams.ids import document_label
from tests.context_graph.sleeper import Sleeper
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

TIDE = "The tide turns at the harbour."


class Rows:
    """Rows that the node's writer tells of its commits, and others that read the table each time."""

    def __init__(self, node: EmbeddingNode) -> None:
        self.cursor, self.copy = node.store.database.cursor(), MemoryRows()
        self._writer = node.store.writer

    def follow(self) -> None:
        self._writer.follow(self.copy)

    def read(self, *ids: str, namespace: str = "default") -> list[MemoryRow]:
        """The rows of these memories; asserts that the table gives the same."""
        found = self.copy.read(self.cursor, namespace, ids)
        assert found == MemoryRows().read(self.cursor, namespace, ids)
        return [found[one] for one in ids if one in found]

    def read_without_table(self, *ids: str) -> list[MemoryRow]:
        self.cursor.execute("BEGIN")
        self.cursor.execute("DELETE FROM context_memories")
        try:
            found = self.copy.read(self.cursor, "default", ids)
            return [found[one] for one in ids if one in found]
        finally:
            self.cursor.execute("ROLLBACK")


@pytest.fixture
def rows(node: EmbeddingNode) -> Iterator[Rows]:
    rows = Rows(node)
    yield rows
    rows.cursor.close()


async def store(agent: Agent, content: str, **more: object) -> str:
    return str((await agent.call("store_memory", content=content, **more))["fingerprintId"])


@pytest.mark.parametrize("is_followed_first", [True, False])
async def test_what_came_before_and_after_the_start_is_not_read_from_the_table(
    agent: Agent, rows: Rows, is_followed_first: bool
) -> None:
    if is_followed_first:
        rows.follow()
    ids = [
        await store(agent, TIDE, importance=0.1 + 0.2, tags=["harbour", '東京 "quoted"'], rationale="seen\nfrom Å"),
        await store(agent, "Bread needs salt.\u2028 \U0001f30a"),
    ]
    if not is_followed_first:
        rows.follow()
    first, second = rows.read(*ids)
    assert first == MemoryRow(TIDE, 0.1 + 0.2, ["harbour", '東京 "quoted"'], "seen\nfrom Å", 1, "default")
    assert (second.rationale, second.tags, second.importance) == (None, [], 0.5)
    assert rows.read_without_table(*ids) == [first, second]
    assert rows.read(*ids, namespace="other") == []


async def test_a_memory_that_is_stored_again_is_read_from_the_table(agent: Agent, rows: Rows) -> None:
    rows.follow()
    one = await store(agent, TIDE, tags=["harbour"])
    assert rows.read(one)[0].times == 1
    for times in (2, 3):
        assert await store(agent, TIDE, tags=[f"ferry {times}"], importance=times / 4) == one
        [row] = rows.read(one)
        assert (row.times, row.importance, row.tags[-1]) == (times, times / 4, f"ferry {times}")
    assert rows.read_without_table(one) == []


async def test_a_memory_that_changes_while_all_are_loaded_is_read_from_the_table(agent: Agent, rows: Rows) -> None:
    one = await store(agent, TIDE)
    label = document_label("default", one)
    rows.copy.written([], [{"label": label}])  # as the writer tells of a commit that the load does not see
    rows.copy.load(rows.cursor)
    assert rows.read_without_table(one) == []
    assert rows.read(one)[0].content == TIDE


async def test_what_was_read_before_a_change_is_not_kept_after_it(agent: Agent, rows: Rows) -> None:
    one = await store(agent, TIDE)
    [former] = rows.read(one)
    rows.follow()
    await store(agent, TIDE)
    rows.copy._rows.keep({document_label("default", one): former})  # as a reader that was overtaken does
    assert [row.times for row in rows.read(one)] == [former.times + 1]


async def test_a_search_shows_what_holds_now(agent: Agent, rows: Rows, node: EmbeddingNode, tmp_path: Path) -> None:
    node.services.parts[MemoryRows] = rows.copy
    rows.follow()
    await store(agent, TIDE, importance=0.2)
    await store(agent, TIDE, importance=0.8, rationale="read on the quay")
    [row] = (await agent.call("search_graph", query="tide at the harbour"))["results"]
    assert (row["importance"], row["rationale"], row["times"]) == (0.8, "read on the quay", 2)


async def test_a_node_tells_its_rows_of_each_commit(sleeper: Sleeper) -> None:
    [one] = await sleeper.remember(TIDE)
    running, label = sleeper.node.running, document_label("default", one)
    kept = running.door.services.part(MemoryRows)
    assert kept._rows._known([label])[label].content == TIDE
    [again] = await sleeper.remember(TIDE)
    assert again == one and kept._rows._known([label]) == {}
    read = await running.store.reader.run(lambda cursor: kept.read(cursor, "default", [one]))
    assert read[one].times == 2
