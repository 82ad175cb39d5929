"""R14: what lies on different partitions may be read in any order and in any batches; the store is the same."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from processors.frame.batch import reduce_batch
from processors.frame.stage import StageRunner
from processors.talos.stages.extract import Extract
from streams.clock import SystemClock
from streams.codec import encode
from streams.dlq import bury
from streams.events import event_types, wire_type
from streams.log.base import Log, Outgoing, Record
from streams.positions import Position
from streams.topics import MEMORY, TELEMETRY
from tests.examples import examples
from tests.processors.harness import NOW, Store, event, run_stage
from tests.properties.all_types import every_type

NAMESPACES = ("north", "south")
NOT_COMPARED = ("progress_tokens", "schema_migrations", "duplicates")
Partitions = dict[tuple[str, int], list[Record]]


class Derived:
    """Keeps what the stage publishes."""

    def __init__(self) -> None:
        self.records: list[Outgoing] = []

    largest = Log.largest

    async def publish(self, records: list[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        self.records += records
        return []


@cache
def log() -> Partitions:
    """A partition for each namespace and topic: requests that decide on state, repeats, poison; facts; telemetry."""
    lying: Partitions = {}
    for number, namespace in enumerate(NAMESPACES):
        for outgoing in _requests(namespace):
            _append(lying, outgoing, number)
        derived = Derived()
        runner = StageRunner(Extract(), _as_log(derived), SystemClock())
        asyncio.run(run_stage(runner, lying[MEMORY.name, number]))
        for outgoing in derived.records:
            _append(lying, outgoing, number)
        for step in range(3):
            data = {"session_id": "2026-01-05-a", "event_type": "user", "text": f"{namespace} {step}"}
            _append(
                lying, encode(TELEMETRY.name, event("session.event", data, id=f"t{step}", namespace=namespace)), number
            )
    return lying


def _as_log(derived: Any) -> Log:
    return derived  # type: ignore[no-any-return]


def _requests(namespace: str) -> list[Outgoing]:
    def request(kind: str, identity: str, **data: Any) -> Outgoing:
        return encode(
            MEMORY.name, event(f"talos.{kind}", {**data, "request_id": identity}, id=identity, namespace=namespace)
        )

    write = {"content": f"I realized that {namespace} winds are cold.", "category": "insight"}
    return [
        request("session.opened", "o1", session_id="2026-01-05-a", goal="first"),
        request("journal.written", "j1", session_id="2026-01-05-a", **write),
        request("session.opened", "o2", session_id="2026-01-05-a", goal="refused"),
        request("journal.written", "j1", session_id="2026-01-05-a", **write),
        Outgoing(MEMORY.name, namespace.encode(), b"{", request("journal.written", "p", **write).headers),
        request("session.closed", "c1", session_id="2026-01-05-a"),
        request("journal.written", "j2", **write),
    ]


def _append(lying: Partitions, outgoing: Outgoing, partition: int) -> None:
    records = lying.setdefault((outgoing.topic, partition), [])
    records.append(Record(outgoing.topic, partition, len(records), 0, outgoing.key, outgoing.value, outgoing.headers))


def apply(store: Store, records: list[Record], lying_letters: Partitions) -> None:
    """A batch as the materialiser applies it; what it buries lies on the dead letters' partition of its source."""
    reduced = reduce_batch(store.writer, records, NOW)
    for record, letter in reduced.buried:
        _append(lying_letters, bury(record, letter), record.partition)
    store.writer.commit(reduced.changes)


def contents(store: Store) -> dict[str, list[Any]]:
    tables = [
        name for (name,) in store.sql("SELECT table_name FROM duckdb_tables() ORDER BY 1") if name not in NOT_COMPARED
    ]
    return {name: sorted(map(repr, store.sql(f"SELECT * FROM {name}"))) for name in tables}


def folded(order: list[tuple[str, int]], sizes: list[int], lying: Partitions | None = None) -> dict[str, list[Any]]:
    """The store after the partitions were read in this order, cut into batches of these sizes."""
    store = Store()
    letters: Partitions = {}
    waiting = {at: list(records) for at, records in (log() if lying is None else lying).items()}
    sequence = [waiting[at].pop(0) for at in order]
    start = turn = 0
    while start < len(sequence):
        size = sizes[turn % len(sizes)]
        apply(store, sequence[start : start + size], letters)
        start, turn = start + size, turn + 1
    for records in list(letters.values()):
        apply(store, records, letters)
    found = contents(store)
    found["positions"] = store.sql("SELECT * FROM positions ORDER BY ALL")
    found["duplicates"] = store.sql(
        'SELECT event_id, topic, partition, "offset", same_body FROM duplicates ORDER BY ALL'
    )
    store.database.close()
    return found


@cache
def in_turn() -> dict[str, list[Any]]:
    """What one partition after the other gives, a record at a time."""
    return folded([at for at, records in log().items() for _ in records], [1])


ORDERS = st.deferred(lambda: st.permutations([at for at, records in log().items() for _ in records]))


@settings(max_examples=examples(4, 20), deadline=None)
@given(order=ORDERS, sizes=st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_every_interleaving_that_keeps_the_order_of_each_partition_gives_the_same_store(
    order: Any, sizes: list[int]
) -> None:
    assert folded(list(order), sizes) == in_turn()


@cache
def log_of_all_types() -> Partitions:
    """Every type of event of every toolset, twice, on the partitions of one namespace: one for each topic."""
    lying: Partitions = {}
    for outgoing in every_type(NAMESPACES[0]):
        _append(lying, outgoing, 0)
    return lying


@cache
def all_types_in_turn() -> dict[str, list[Any]]:
    return folded([at for at, records in log_of_all_types().items() for _ in records], [1], log_of_all_types())


ORDERS_OF_ALL = st.deferred(
    lambda: st.permutations([at for at, records in log_of_all_types().items() for _ in records])
)


@settings(max_examples=examples(3, 30), deadline=None)
@given(order=ORDERS_OF_ALL, sizes=st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_topics_may_be_read_in_any_order_whatever_types_of_events_they_hold(order: Any, sizes: list[int]) -> None:
    assert folded(list(order), sizes, log_of_all_types()) == all_types_in_turn()


def test_the_log_of_all_types_has_each_of_them_applied_and_most_requests_granted() -> None:
    store = Store()
    for records in log_of_all_types().values():
        apply(store, records, {})
    applied = {kind for (kind,) in store.sql("SELECT DISTINCT event_type FROM events")}
    assert applied == set(event_types()) - {wire_type("stage.progressed")}
    outcomes = dict(store.sql("SELECT status, count(*) FROM outcomes GROUP BY ALL"))
    assert outcomes["applied"] > 3 * outcomes["refused"] > 0
    store.database.close()


def test_the_log_that_is_interleaved_holds_decisions_facts_repeats_and_poison() -> None:
    rows = in_turn()
    assert [
        len(rows[name]) for name in ("talos_sessions", "talos_journal", "session_events", "dead_letters", "duplicates")
    ] == [
        2,
        4,
        6,
        2,
        4,
    ]
    assert len(rows["entities"]) >= 2 and sum("refused" in row for row in rows["outcomes"]) == 2
