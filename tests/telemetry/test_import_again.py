"""Importing what the store holds already puts nothing on the log.

Of a transcript that has grown, its new lines only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams.clock import SystemClock
from tests.patience import SOON_S
from tests.schema import migrated_home
from thalweg.importing.importer import ImportReport, import_files
from thalweg.importing.stored import Stored
from thalweg.process.node import Node
from thalweg.settings import Settings


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(Settings(home=migrated_home(tmp_path / "home"), embedder="none", partitions=2))
    await node.start()
    yield node
    await node.stop()


async def imported(node: Node, path: Path, namespace: str = "ana") -> ImportReport:
    async def find(keys: Sequence[str], letters: Sequence[str]) -> Stored:
        answer = await node.control.handle({"command": "stored", "keys": list(keys), "letters": list(letters)})
        return Stored(answer["events"], set(answer["letters"]))

    report = await import_files(
        node.log, "claude-code", [path], namespace=namespace, clock=SystemClock(), find_stored=find
    )
    assert await node.running.store.applied.wait(report.freshness, timeout_s=SOON_S)
    return report


def line(number: int, content: str = "hello") -> bytes:
    message = {"role": "user", "content": content}
    said = {
        "type": "user",
        "sessionId": "s",
        "uuid": f"u-{number}",
        "timestamp": "2026-01-01T00:00:00Z",
        "message": message,
    }
    return orjson.dumps(said) + b"\n"


async def log_size(node: Node) -> int:
    return sum(
        (
            await node.log.end_offsets(
                [topic.name for topic in node.topics] + [topic.dlq.name for topic in node.topics]
            )
        ).values()
    )


async def rows(node: Node, query: str) -> list[Any]:
    return await node.running.store.reader.run(lambda cursor: cursor.execute(query).fetchall())


async def test_what_the_store_holds_is_not_put_on_the_log_again(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.importing.importer.BATCH_EVENTS", 3)
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"".join(map(line, range(8))) + b'{"type": "user", "cut o')
    first = await imported(node, path)
    assert (first.lines, first.new_lines, first.events, first.unreadable) == (9, 9, 8, 1)
    size = await log_size(node)
    again = await imported(node, path)
    assert (again.lines, again.new_lines, again.events, again.unreadable, again.records) == (9, 0, 8, 1, 0)
    assert await log_size(node) == size and await rows(node, "SELECT count(*) FROM duplicates") == [(0,)]


async def test_of_a_transcript_that_has_grown_only_the_new_lines_are_published(node: Node, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"".join(map(line, range(5))))
    await imported(node, path)
    path.write_bytes(path.read_bytes() + line(5) + line(6))
    grown = await imported(node, path)
    assert (grown.lines, grown.new_lines, grown.records) == (7, 2, 1)
    assert await rows(node, "SELECT count(*) FROM session_events") == [(7,)]
    assert await rows(node, "SELECT count(*) FROM duplicates") == [(0,)]


async def test_another_body_under_a_known_id_is_published_so_that_the_incident_is_recorded(
    node: Node, tmp_path: Path
) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(line(1) + line(2))
    await imported(node, path)
    path.write_bytes(line(1, "something else") + line(2))
    changed = await imported(node, path)
    assert (changed.new_lines, changed.records) == (1, 1)
    assert await rows(node, "SELECT same_body FROM duplicates") == [(False,)]
    assert await rows(node, "SELECT text FROM session_events ORDER BY event_id") == [("hello",), ("hello",)]


async def test_in_another_namespace_the_same_lines_are_new(node: Node, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(line(1))
    await imported(node, path, "ana")
    assert [(await imported(node, path, name)).new_lines for name in ("ana", "ben", "ben")] == [0, 1, 0]
