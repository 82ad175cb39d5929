"""A whole node whose log goes away: a read says `stale` while a write is spooled, and nothing overtakes that write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.door import Request, Visitor
from mcp_ingress.spool import Spool
from streams.errors import LogUnavailable
from streams.log.base import Outgoing
from streams.log.sqlite import SqliteLog
from streams.positions import Partition, Position
from streams.topics import MEMORY
from tests.ingress.parts import events_on
from tests.ingress.test_spool import record
from tests.schema import migrated_home
from thalweg.process.node import Node
from thalweg.process.running import Running
from thalweg.process.store_access import snapshot_of
from thalweg.settings import Settings

pytestmark = pytest.mark.process


class Outage:
    """The log of every node in this process is away while `is_on`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_on = False
        publish, end_offsets = SqliteLog.publish, SqliteLog.end_offsets

        async def fallible(log: SqliteLog, records: Sequence[Outgoing], **named: Any) -> list[Position]:
            if self.is_on:
                raise LogUnavailable("The log is away.")
            return await publish(log, records, **named)

        async def asked(log: SqliteLog, topics: Iterable[str]) -> dict[Partition, int]:
            if self.is_on:
                raise LogUnavailable("The log is away.")
            return await end_offsets(log, topics)

        monkeypatch.setattr(SqliteLog, "publish", fallible)
        monkeypatch.setattr(SqliteLog, "end_offsets", asked)


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    return Outage(monkeypatch)


@pytest.fixture
async def node(tmp_path: Path, outage: Outage, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    """What follows from its spool does so because somebody asked, not by and by."""

    async def wait(self: Node, running: Running) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Node, "_drain_spool", wait)
    node = Node(Settings(home=migrated_home(tmp_path / "home"), embedder="none", partitions=2))
    await node.start()
    yield node
    outage.is_on = False
    await node.stop()


async def spool(node: Node, content: str) -> dict[str, Any]:
    """A write while the log is away."""
    arguments = {"content": content, "category": "insight"}
    answer = (await node.running.door.call(Visitor(node.running.door.local), Request("journal_write", arguments))).body
    assert answer["spooled"]
    return answer


async def journal(node: Node) -> list[str]:
    """The entries in the store."""
    found = await node.running.store.reader.run(
        lambda cursor: cursor.execute("SELECT content FROM talos_journal").fetchall()
    )
    return [content for (content,) in found]


async def asked(node: Node, command: str, freshness: Any) -> bool:
    """Whether the answer of a command is stale."""
    more = {"record_id": "r"} if command == "why" else {}
    answer = await node.control.handle({"command": command, "query": "caches", "freshness": freshness, **more})
    assert answer["ok"], answer
    return bool(answer.get("stale"))


async def test_sql_search_and_why_say_stale_until_the_log_takes_what_was_spooled(node: Node, outage: Outage) -> None:
    for command in ("snapshot", "search", "why"):
        outage.is_on = True
        written = await spool(node, f"Caches lie to {command}.")
        assert await asked(node, command, written["freshness"])
        assert await asked(node, command, "now")
        outage.is_on = False
        assert not await asked(node, command, "now")
        assert node.running.services.spool.is_empty
        assert f"Caches lie to {command}." in await journal(node), "it was waited for"


async def test_the_empty_token_of_a_spooled_write_is_reached_once_that_is_applied(node: Node, outage: Outage) -> None:
    outage.is_on = True
    written = await spool(node, "Caches lie.")
    outage.is_on = False
    assert not await asked(node, "search", written["freshness"])
    assert await journal(node) == ["Caches lie."]


async def test_an_operators_request_does_not_overtake_what_was_spooled(node: Node, outage: Outage) -> None:
    request = {"command": "request", "namespace": "default", "type": "thalweg.talos.journal.written.v1"}
    request |= {"data": {"content": "From the command line.", "category": "insight"}}
    outage.is_on = True
    await spool(node, "Caches lie.")
    refused = await node.control.handle(request)
    assert (refused["ok"], refused["code"]) == (False, "log_unavailable")
    outage.is_on = False
    await node.control.handle(request)
    assert [event.data["content"] for event in await events_on(node.log, MEMORY.name)] == [
        "Caches lie.",
        "From the command line.",
    ]


async def test_sql_without_a_node_says_stale_while_the_last_one_left_something_in_its_spool(tmp_path: Path) -> None:
    settings = Settings(home=migrated_home(tmp_path / "home"), embedder="none", partitions=2)
    token: dict[str, Any] = {}
    assert not snapshot_of(settings, 0.0, token).lacks
    await Spool(settings.home / "spool").append([record("left")])
    assert snapshot_of(settings, 0.0, token).lacks == {"stale": True} and not snapshot_of(settings, 0.0).lacks
