"""What an agent writes without a session: its connection is on the log, and its memories stand together."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from mcp_ingress.call import ClientConnection
from processors.talos.stages.extract import Extract
from storage.search.index_set import IndexSet
from storage.search.records.timeline import Timelines
from streams.codec import decode, encode, encode_batch
from streams.events import CONNECTION, Event
from streams.ids import document_label
from streams.log.base import Record
from streams.topics import DERIVED, MEMORY
from tests.processors.harness import NOW, Store, event
from tests.talos.node import SmallNode

SESSION = "2026-01-05-weir"


async def replayed(store: Store, records: list[Record]) -> None:
    """The records applied, with what the real stage `extract` publishes of them: all facts in one array."""
    for record in records:
        store.apply(record)
        for logged in decode(record):
            for fact in (await Extract().facts([logged]))[0]:
                envelope = fact.changed(id=f"batch-{fact.id}", data={}, extensions={})
                store.apply(store.record(encode_batch(DERIVED.name, envelope, [fact])))


async def applied(*events: Event) -> Store:
    store = Store()
    await replayed(store, [store.record(encode(MEMORY.name, one)) for one in events])
    return store


def written(number: int, content: str, connection: str | None, *, minute: float = 0, **more: str) -> Event:
    namespace = more.pop("namespace", "default")
    data = {"content": content, "category": "insight", **more}
    made = event(
        "talos.journal.written", data, id=f"w{number}", time=NOW + timedelta(minutes=minute), namespace=namespace
    )
    return made if connection is None else made.changed(extensions={CONNECTION: connection})


def connections(store: Store, *, namespace: str = "default") -> list[tuple[str, str | None, str | None]]:
    """(kind, session, connection) of every document, in the order of the log."""
    query = 'SELECT kind, session_id, connection FROM documents WHERE namespace = ? ORDER BY created_at, kind, "offset"'
    return store.sql(query, namespace)  # type: ignore[return-value]


def beside(timelines: Timelines, label: int) -> set[int]:
    return set(timelines.around([label]).labels.tolist())


async def test_the_tools_write_their_connection_to_the_log_and_a_replay_ranks_alike(
    node: SmallNode, tmp_path: Path
) -> None:
    first, second = ClientConnection(), ClientConnection()
    entries: dict[str, list[str]] = {first.id: [], second.id: []}
    for number in range(6):
        node.connection = (first, second)[number % 2]
        text = f"I realized that weir {number} leaks."
        answer = await node.call("journal_write", content=text, category="insight")
        entries[node.connection.id].append(answer["entry_id"])
    assert {logged.connection for logged in node.published} == {first.id, second.id}
    anew = Store()
    sent = [one for one in node.published if one.type.startswith("thalweg.talos.journal")]
    await replayed(anew, [anew.record(encode(MEMORY.name, one)) for one in sent])
    assert len(connections(anew)) == 12, "each entry with its insight"
    indexes = IndexSet(tmp_path / "anew", anew.database.cursor, None)
    indexes.open({})
    labels = [[document_label("default", entry) for entry in written] for written in entries.values()]
    for timelines in (node.indexes.records.timelines, indexes.records.timelines):
        for own in labels:
            around = beside(timelines, own[1])
            assert {own[0], own[2]} <= around, "of the same connection"
            assert not around.intersection(*(other for other in labels if other is not own)), "of the other one"
    indexes.close(save=False)
    anew.database.close()


async def test_a_connection_makes_no_session_anywhere() -> None:
    store = await applied(
        *(written(number, "I realized that the weir leaks.", SESSION, minute=number) for number in range(3))
    )
    assert {row[1:] for row in connections(store)} == {(None, SESSION)}
    assert store.sql("SELECT count(*) FROM sessions") == [(0,)]
    assert store.sql("SELECT count(*) FROM journal WHERE session_id IS NOT NULL") == [(0,)]
    assert store.sql("SELECT count(*) FROM entities WHERE session_id IS NOT NULL") == [(0,)]
    store.database.close()


async def test_what_is_found_in_an_entry_belongs_where_its_entry_belongs() -> None:
    store = await applied(
        written(1, "I realized that the weir leaks.", "c"),
        written(2, "I realized that the lock sticks.", "c", minute=1, session_id=SESSION),
        written(3, "I realized that the gate is open.", None, minute=2),
    )
    assert connections(store) == [
        ("Insight", None, "c"),
        ("JournalEntry", None, "c"),
        ("Insight", SESSION, None),
        ("JournalEntry", SESSION, None),
        ("Insight", None, None),
        ("JournalEntry", None, None),
    ]
    store.database.close()


async def test_one_connection_in_two_namespaces_is_two_groups(tmp_path: Path) -> None:
    store = await applied(
        *(written(number, f"I realized that weir {number} leaks.", "c", minute=number) for number in range(2)),
        *(
            written(9 + number, f"I realized that lock {number} sticks.", "c", minute=number, namespace="b")
            for number in range(2)
        ),
    )
    indexes = IndexSet(tmp_path, store.database.cursor, None)
    indexes.open({})
    labels = dict(store.sql("SELECT namespace, list(label) FROM documents GROUP BY namespace"))
    assert {name: len(own) for name, own in labels.items()} == {"default": 4, "b": 4}
    for own in labels.values():
        for label in own:
            around = beside(indexes.records.timelines, label)
            assert len(around) == 2 and around < set(own), "the other entry and what was found in it"
    indexes.close(save=False)
    store.database.close()
