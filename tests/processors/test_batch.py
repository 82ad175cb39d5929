"""What becomes of a batch: rows, outcomes, duplicates, dead letters and positions, all from one fold in log order."""

from collections import Counter

import duckdb
import pytest

from processors.frame import reducer as frame
from processors.frame.batch import reduce_batch
from storage.writer import Changes
from streams.codec import encode, encode_batch
from streams.event_types.stages import PROGRESS
from streams.events import Event
from streams.log.base import UNREADABLE, Outgoing
from streams.partitioning import partition_for
from streams.positions import Partition, Position
from streams.progress import mark
from streams.topics import DERIVED, INVOCATIONS, MEMORY, TELEMETRY
from tests.processors.harness import Store, batch_of, event, opened
from tests.properties.all_types import every_type
from tests.schema import NOW


@pytest.fixture
def store():
    return Store()


def invoked(id="i1", tool="reflect"):
    return event("tool.invoked", {"tool": tool, "outcome": "ok"}, id=id)


def test_an_event_becomes_rows_and_its_position_moves_in_the_same_transaction(store):
    store.publish(invoked(), topic=INVOCATIONS.name)
    assert store.sql('SELECT tool_name, outcome, topic, "offset" FROM invocations') == [
        ("reflect", "ok", INVOCATIONS.name, 0)
    ]
    assert store.sql("SELECT next_offset FROM positions") == [(1,)]


def test_of_two_marks_of_a_stage_the_further_one_counts_in_whatever_order_they_come(store):
    source = Partition(MEMORY.name, 0)
    carried = [mark("embed", [Position(MEMORY.name, 0, offset)]) for offset in (7, 4)]
    progress = [
        Event(f"p{number}", "test", PROGRESS, "default", NOW, {}, extensions=each)
        for number, each in enumerate(carried)
    ]
    reduced = store.apply(*(store.record(encode_batch(DERIVED.name, each, [])) for each in progress))
    assert reduced.changes.stages == {("embed", source): 7}


def test_the_same_event_twice_is_applied_once_and_the_second_is_counted_as_a_duplicate(store):
    store.publish(invoked(), invoked(), topic=INVOCATIONS.name)
    store.publish(invoked(), topic=INVOCATIONS.name)
    assert store.sql("SELECT count(*) FROM invocations") == [(1,)]
    assert store.sql('SELECT "offset", same_body FROM duplicates ORDER BY 1') == [(1, True), (2, True)]
    assert store.sql("SELECT next_offset FROM positions") == [(3,)]


def test_the_same_id_with_another_body_keeps_the_first_and_records_the_incident(store):
    store.publish(invoked(tool="reflect"), topic=INVOCATIONS.name)
    store.publish(invoked(tool="journal_write"), topic=INVOCATIONS.name)
    assert store.sql("SELECT tool_name FROM invocations") == [("reflect",)]
    assert store.sql("SELECT same_body FROM duplicates") == [(False,)]


def test_a_request_leaves_one_outcome_under_its_request_id(store):
    store.publish(opened("2026-01-05-a", request_id="r1"))
    [(status, topic)] = store.sql("SELECT status, topic FROM outcomes WHERE request_id = 'r1'")
    assert (status, topic) == ("applied", MEMORY.name)


def test_a_request_id_used_again_for_another_request_changes_nothing(store):
    store.publish(opened("2026-01-05-a", request_id="r1"))
    store.publish(opened("2026-01-05-b", request_id="r1"))
    assert store.sql("SELECT session_id FROM talos_sessions") == [("2026-01-05-a",)]
    assert store.sql("SELECT count(*) FROM outcomes") == [(1,)]
    assert store.sql("SELECT same_body FROM duplicates") == [(False,)]


def test_a_refused_request_has_an_outcome_and_changes_no_row(store):
    store.publish(opened("2026-01-05-a"))
    store.publish(opened("2026-01-05-a", id="again", request_id="r2", goal="other"))
    assert store.sql("SELECT goal FROM talos_sessions") == [("learn",)]
    assert store.sql("SELECT status, code FROM outcomes WHERE request_id = 'r2'") == [("refused", "session_exists")]


def test_events_of_one_batch_see_what_earlier_ones_of_it_decided(store):
    first, second = opened("2026-01-05-a"), opened("2026-01-05-a", id="again", request_id="r2")
    store.publish(first, second)
    assert store.sql('SELECT status FROM outcomes ORDER BY "offset"') == [("applied",), ("refused",)]


@pytest.mark.parametrize(
    ("value", "key", "reason"),
    [
        (b"{", b"default", "not JSON"),
        (b'{"tool": 1, "outcome": "ok"}', b"default", "tool"),
        (b'{"tool": "x", "outcome": "ok"}', b"", "no key"),
        (None, b"default", "no value"),
    ],
)
def test_poison_becomes_a_dead_letter_with_its_reason_and_the_others_are_unaffected(store, value, key, reason):
    good = store.record(Outgoing(INVOCATIONS.name, b"default", b'{"tool": "x", "outcome": "ok"}', _headers("good")))
    bad = store.record(Outgoing(INVOCATIONS.name, key, value, _headers("bad")))
    last = store.record(Outgoing(INVOCATIONS.name, b"default", b'{"tool": "y", "outcome": "ok"}', _headers("last")))
    store.apply(good, bad, last)
    assert store.sql("SELECT tool_name FROM invocations ORDER BY 1") == [("x",), ("y",)]
    [(offset, stage, message)] = store.sql('SELECT "offset", stage, error_message FROM dead_letters')
    assert (offset, stage) == (1, "materialise")
    assert reason in message
    assert store.sql("SELECT next_offset FROM positions WHERE topic = ?", INVOCATIONS.name) == [(3,)]


@pytest.mark.parametrize("topic", [MEMORY.name, DERIVED.name, MEMORY.dlq.name, "otlp_logs"])
def test_what_cannot_be_read_from_the_log_is_one_dead_letter_whichever_topic_it_lies_on(store, topic):
    sentence = "The records 3 to 5 cannot be read: the batch on the log is damaged (its checksum is wrong)."
    store.apply(store.record(Outgoing(topic, None, b"\x1f\x8b", ((UNREADABLE, sentence.encode()),))))
    assert store.sql("SELECT topic, error_type, error_message FROM dead_letters") == [(topic, "Poison", sentence)]


def test_a_record_on_another_partition_than_its_keys_is_applied_and_counted_by_its_source(store):
    partitions = {MEMORY.name: 12, TELEMETRY.name: 12}
    right = partition_for(b"default", 12)
    there, elsewhere = [
        [
            store.record(encode(MEMORY.name, event("talos.journal.written", entry, id=f"{partition}-{n}")), partition)
            for n in range(2)
        ]
        for partition, entry in (
            (right, {"content": "right", "category": "insight"}),
            (right - 1, {"content": "wrong", "category": "insight"}),
        )
    ]
    derived = store.record(encode(DERIVED.name, event("entity.extracted", {}, id="d")), right - 1)
    poison = store.record(Outgoing(MEMORY.name, b"default", b"{", _headers("p")), right - 1)
    reduced = reduce_batch(store.writer, [*there, *elsewhere, derived, poison], NOW, partitions=partitions)
    store.writer.commit(reduced.changes)
    assert reduced.misplaced == {"test"}
    again = store.record(
        encode(MEMORY.name, event("talos.journal.written", {"content": "x", "category": "insight"}, id="x")), right - 2
    )
    store.writer.commit(reduce_batch(store.writer, [again], NOW, partitions=partitions).changes)
    assert store.sql("SELECT * FROM misplaced_records") == [("default", "test", MEMORY.name, 3)]
    assert store.sql("SELECT content FROM talos_journal ORDER BY ALL") == [
        ("right",),
        ("right",),
        ("wrong",),
        ("wrong",),
        ("x",),
    ]


def _headers(id):
    pairs = {"specversion": "1.0", "id": id, "source": "s", "type": "thalweg.tool.invoked.v1"}
    return tuple((f"ce_{name}", value.encode()) for name, value in pairs.items())


def test_an_event_on_which_its_reducer_fails_is_buried_without_a_trace_and_its_record_mates_stand(store, monkeypatch):
    real = frame.reducers()

    def explode(logged, rows):
        rows.insert(
            "invocations", {"invocation_id": "half", "tool_name": "half", "outcome": "ok", "started_at": "2026-01-01"}
        )
        if logged.event.id == "bad":
            raise KeyError("a bug")
        return real[logged.event.type].apply(logged, rows)

    broken = {**real, "thalweg.tool.invoked.v1": frame.Reducer(explode)}
    monkeypatch.setattr("processors.frame.batch.reducers", lambda: broken)
    records = batch_of([invoked("a"), invoked("bad"), invoked("c")], topic=INVOCATIONS.name)
    store.apply(store.record(records))
    assert store.sql("SELECT invocation_id FROM invocations ORDER BY 1") == [("a",), ("c",), ("half",), ("half",)]
    assert store.sql("SELECT error_type FROM dead_letters") == [("KeyError",)]


def test_every_offset_is_accounted_for(store):
    store.publish(invoked("a"), invoked("a"), topic=INVOCATIONS.name)
    store.apply(store.record(Outgoing(INVOCATIONS.name, b"default", b"{", _headers("bad"))))
    fates = store.sql('SELECT "offset", fate FROM offsets_accounted ORDER BY 1')
    assert fates == [(0, "applied"), (1, "duplicate"), (2, "dead_letter")]


def line(id, session_id="s1", **data):
    return event("session.event", {"session_id": session_id, "event_type": "assistant", **data}, id=id)


def test_a_tool_call_is_completed_by_its_result_whichever_comes_first(store):
    use = line(
        "u1",
        tool_calls=[
            {"tool_call_id": "t1", "tool_name": "Read", "started_at": "2026-01-05T10:00:00Z", "input": {"f": "a"}}
        ],
    )
    result = line(
        "u2",
        tool_results=[
            {"tool_call_id": "t1", "ended_at": "2026-01-05T10:00:02Z", "is_error": True, "error_type": "timeout"}
        ],
    )
    expected = [("Read", 2000.0, True, "timeout", '{"f":"a"}')]
    query = "SELECT tool_name, duration_ms, is_error, error_type, input FROM tool_calls"
    store.publish(use, topic=TELEMETRY.name)
    store.publish(result, topic=TELEMETRY.name)
    assert store.sql(query) == expected
    other = Store()
    other.publish(result, use, topic=TELEMETRY.name)
    assert other.sql(query) == expected


def test_tokens_count_once_per_message_and_the_complete_line_wins(store):
    def usage(tokens):
        return [{"message_id": "m1", "model": "opus", "input_tokens": 10, "output_tokens": tokens}]

    store.publish(line("u1", model_calls=usage(3)), line("u2", model_calls=usage(40)), topic=TELEMETRY.name)
    store.publish(line("u3", model_calls=usage(7)), topic=TELEMETRY.name)
    assert store.sql("SELECT model, calls, input_tokens, output_tokens FROM model_usage") == [("opus", 1, 10, 40)]


def test_namespaces_do_not_meet(store):
    store.publish(opened("2026-01-05-a"))
    other = event("talos.session.opened", {"session_id": "2026-01-05-a", "goal": "mine"}, id="o2", namespace="other")
    store.publish(other)
    assert store.sql("SELECT namespace, goal FROM talos_sessions ORDER BY 1") == [
        ("default", "learn"),
        ("other", "mine"),
    ]


def test_the_same_id_in_another_namespace_is_another_event(store):
    store.publish(opened("2026-01-05-a", request_id="r1"))
    elsewhere = event(
        "talos.session.opened", {"session_id": "2026-01-05-a", "goal": "x"}, id="open-2026-01-05-a", namespace="other"
    )
    store.publish(elsewhere)
    assert store.sql("SELECT namespace FROM talos_sessions ORDER BY 1") == [("default",), ("other",)]
    assert store.sql("SELECT * FROM duplicates") == []


def test_a_merge_joins_the_oldest_cluster_and_counts_occurrences(store):
    def similar(record, *found):
        data = {"record_id": record, "label": "Friction", "category": "tooling"}
        return event(
            "memory.similar_found",
            {**data, "similar": [{"record_id": f, "how": "canonical_form", "cosine": None} for f in found]},
            id=f"s-{record}",
        )

    store.publish(similar("f1"), similar("f2", "f1"), similar("f3", "f2", "f1"), topic=DERIVED.name)
    assert store.sql("SELECT record_id, into_id, merge_count FROM merges ORDER BY 1") == [
        ("f2", "f1", 2),
        ("f3", "f1", 3),
    ]
    assert store.sql("SELECT canonical_id, record_count FROM clusters") == [("f1", 3)]


@pytest.mark.parametrize("count", [1, 8, 9, 40])
def test_so_many_rows_of_one_table_can_change_in_one_batch(store, count):
    names = [f"2026-01-05-s{number}" for number in range(count)]
    store.publish(*(opened(name, request_id=f"o-{name}") for name in names))
    store.publish(
        *(
            event("talos.session.closed", {"session_id": name, "request_id": f"c-{name}"}, id=f"c-{name}")
            for name in names
        )
    )
    assert store.sql("SELECT status, count(*) FROM talos_sessions GROUP BY ALL") == [("closed", count)]


def test_what_a_failed_commit_may_have_changed_is_read_from_the_table_again(store):
    store.publish(opened("2026-01-05-a"))
    key = ("default", "2026-01-05-a")
    [row] = store.writer.find("talos_sessions", [key]).values()
    row["goal"] = "as the batch that failed would have it"
    with pytest.raises(duckdb.Error):
        store.writer.commit(Changes(appended={"talos_sessions": [{**row, "session_id": None}]}))
    assert store.writer.recent("talos_sessions", key) is None
    assert store.writer.find("talos_sessions", [key])[key]["goal"] == "learn"


AFTER_OTHERS = {"valence_sources", "belief_corroborations", "context_ends"}
"""Tables whose keys stand in rows that have to be read first."""


def test_a_batch_reads_each_table_once_whatever_is_in_it(store, monkeypatch):
    """Every row that a reducer asks for is one that it has named: asked for one by one they cost a query each."""
    find, asked = store.writer.find, Counter()

    def counted(table, keys):
        asked[table] += 1
        return find(table, keys)

    monkeypatch.setattr(store.writer, "find", counted)
    reduce_batch(store.writer, [store.record(outgoing) for outgoing in every_type("default")], NOW)
    again = {table: count for table, count in asked.items() if count > 1 and table not in AFTER_OTHERS}
    assert len(asked) > 20 and not again
