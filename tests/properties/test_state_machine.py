"""The store under every order of delivery, redelivery, crash and rebuild, against a model that is a dict.

Real codec, reducers and DuckDB over a log in memory; clock and ids are injected. Invariants I1 to I7 (those that need
no broker and no index files) hold after each step, and a rebuild from the log gives the same rows.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from processors.frame.batch import reduce_batch
from streams.codec import encode
from streams.dlq import bury
from streams.log.base import Outgoing, Record
from streams.topics import MEMORY
from tests.examples import examples
from tests.processors.harness import NOW, Store, event

SESSIONS = ["2026-01-05-a", "2026-01-05-b"]
TABLES = {
    "talos_sessions": "session_id, goal, status, namespace",
    "talos_journal": "entry_id, content, category, session_id, namespace",
    "outcomes": "request_id, status, code, result::VARCHAR",
    "events": 'event_id, topic, partition, "offset", idx',
    "duplicates": 'event_id, same_body, "offset"',
    "dead_letters": 'dead_letter_id, topic, "offset", stage',
    "documents": "record_id, kind, text",
}


class Delivery(RuleBasedStateMachine):
    """The log is a list; a crash loses what the process had in hand and nothing else."""

    @initialize()
    def start(self) -> None:
        self.log: list[Record] = []
        self.letters: list[Record] = []
        self.store = Store()
        self.accepted: dict[str, dict[str, str]] = {}
        self.poisoned: set[int] = set()

    def append(self, outgoing: Outgoing) -> int:
        offset = len(self.log)
        self.log.append(Record(MEMORY.name, 0, offset, 0, outgoing.key, outgoing.value, outgoing.headers))
        return offset

    @rule(content=st.sampled_from(["the cache is stale", "reads are slow", "tests lie"]), number=st.integers(0, 5))
    def write(self, content: str, number: int) -> None:
        identity = f"j{number}"
        data = {"content": content, "category": "insight", "request_id": identity}
        self.append(encode(MEMORY.name, event("talos.journal.written", data, id=identity)))
        self.accepted.setdefault(identity, data)

    @rule(session=st.sampled_from(SESSIONS), number=st.integers(0, 3))
    def open_session(self, session: str, number: int) -> None:
        identity = f"o{number}-{session}"
        data = {"session_id": session, "goal": f"goal {number}", "request_id": identity}
        self.append(encode(MEMORY.name, event("talos.session.opened", data, id=identity)))
        self.accepted.setdefault(identity, data)

    @rule(session=st.sampled_from(SESSIONS), number=st.integers(0, 3))
    def close_session(self, session: str, number: int) -> None:
        identity = f"c{number}-{session}"
        data = {"session_id": session, "request_id": identity}
        self.append(encode(MEMORY.name, event("talos.session.closed", data, id=identity)))
        self.accepted.setdefault(identity, data)

    @rule(value=st.sampled_from([b"{", b"[]]", b'{"category": "insight"}', b"\xff"]))
    def poison(self, value: bytes) -> None:
        headers = (("ce_id", b"p"), ("ce_source", b"test"), ("ce_type", b"thalweg.talos.journal.written.v1"))
        self.poisoned.add(self.append(Outgoing(MEMORY.name, b"default", value, headers)))

    def position(self) -> int:
        rows = self.store.sql("SELECT next_offset FROM positions WHERE topic = ?", MEMORY.name)
        return rows[0][0] if rows else 0

    @rule(count=st.integers(1, 6))
    def deliver(self, count: int) -> None:
        """What the materialiser does: from its own position, a batch at a time."""
        start = self.position()
        self._apply(self.log[start : start + count])

    def _apply(self, records: list[Record]) -> None:
        if not records:
            return
        reduced = reduce_batch(self.store.writer, records, NOW)
        for record, letter in reduced.buried:
            self._bury(record, letter)
        self.store.writer.commit(reduced.changes)
        self._read_letters()

    def _bury(self, record, letter) -> None:
        if self.store.sql("SELECT 1 FROM dead_letters WHERE dead_letter_id = ?", letter.id):
            return
        outgoing = bury(record, letter)
        self.letters.append(
            Record(outgoing.topic, 0, len(self.letters), 0, outgoing.key, outgoing.value, outgoing.headers)
        )

    def _read_letters(self) -> None:
        rows = self.store.sql("SELECT next_offset FROM positions WHERE topic = ?", MEMORY.dlq.name)
        pending = self.letters[rows[0][0] if rows else 0 :]
        if pending:
            self.store.writer.commit(reduce_batch(self.store.writer, pending, NOW).changes)

    @precondition(lambda self: self.log)
    @rule(count=st.integers(1, 4))
    def crash_before_commit(self, count: int) -> None:
        """Decoded, reduced, buried, and then gone: the dead letters may be on their topic already."""
        start = self.position()
        reduced = reduce_batch(self.store.writer, self.log[start : start + count], NOW)
        for record, letter in reduced.buried:
            self._bury(record, letter)

    @rule()
    def rebuild(self) -> None:
        """Delete the store and replay: the letters first, then the log, up to where it was."""
        reached, before = self.position(), self._contents()
        self.store = Store()
        self._read_letters()
        for start in range(0, reached, 3):
            self._apply(self.log[start : min(start + 3, reached)])
        letters_before = {row for row in before["dead_letters"]}
        after = self._contents()
        assert {name: rows for name, rows in after.items() if name != "dead_letters"} == {
            name: rows for name, rows in before.items() if name != "dead_letters"
        }
        assert letters_before <= set(after["dead_letters"])

    def _contents(self):
        return {name: self.store.sql(f"SELECT {columns} FROM {name} ORDER BY ALL") for name, columns in TABLES.items()}

    @invariant()
    def nothing_is_twice(self) -> None:
        assert self.store.sql("SELECT count(*) - count(DISTINCT event_key) FROM events") == [(0,)]
        assert self.store.sql("SELECT count(*) - count(DISTINCT (namespace, request_id)) FROM outcomes") == [(0,)]

    @invariant()
    def what_was_delivered_is_an_outcome_or_a_dead_letter_and_nothing_is_invented(self) -> None:
        reached = self.position()
        decided = {row[0] for row in self.store.sql("SELECT request_id FROM outcomes")}
        assert decided <= set(self.accepted)
        accounted = {
            row[0] for row in self.store.sql('SELECT "offset" FROM offsets_accounted WHERE topic = ?', MEMORY.name)
        }
        assert {offset for offset in range(reached)} <= accounted
        buried = {row[0] for row in self.store.sql('SELECT "offset" FROM dead_letters')}
        assert {offset for offset in self.poisoned if offset < reached} == {
            offset for offset in buried if offset < reached
        }

    @invariant()
    def the_state_is_the_fold_of_the_events_in_order(self) -> None:
        status: dict[str, str] = {}
        for record in self.log[: self.position()]:
            if b"talos.session.opened" in dict(record.headers)["ce_type"]:
                session = next(name for name in SESSIONS if name.encode() in (record.value or b""))
                status.setdefault(session, "open")
            elif b"talos.session.closed" in dict(record.headers)["ce_type"]:
                session = next(name for name in SESSIONS if name.encode() in (record.value or b""))
                if session in status and record.offset not in self._repeats():
                    status[session] = "closed"
        assert dict(self.store.sql("SELECT session_id, status FROM talos_sessions")) == status

    def _repeats(self) -> set[int]:
        return {row[0] for row in self.store.sql('SELECT "offset" FROM duplicates')}


Delivery.TestCase.settings = settings(max_examples=examples(3, 40), stateful_step_count=25, deadline=None)
TestDelivery = Delivery.TestCase
