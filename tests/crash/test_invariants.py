"""Each check of the invariants fails on a store, a log or a process that breaks it.

And none leaves out a table, or a tool that writes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pytest

from mcp_ingress.inventory import find_tools
from processors.embedding.hashing import HashingEmbedder
from processors.talos.stages.dedup import Dedup
from processors.talos.stages.extract import Extract
from storage.search.index_set import IndexSet
from storage.search.records.matches import DocumentMatches
from storage.search.vectors import vector_index as vector_module
from storage.search.vectors.dense_space import DenseSpace
from storage.vector_codec import stored_vector
from streams.positions import Partition, Position
from streams.progress import ProgressMark
from streams.topics import DERIVED, MEMORY
from tests.crash import invariants
from tests.crash.commits import Commits, committed_is_published
from tests.crash.invariants import KEYS, MOST, ONE_ROW, Ledger, Usage
from tests.crash.raw_store import Store
from tests.crash.writes import WRITES
from tests.schema import migrated_home, set_progress

SPACE = HashingEmbedder().info.space


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store()
    yield store
    store.connection.close()


def ledger_of(*, answered: str = "", refused: str = "") -> Ledger:
    """A caller that has asked for one thing and got its answer."""
    ledger = Ledger()
    request_id = answered or refused
    ledger.ask(request_id)
    if answered:
        ledger.answer(request_id, "entry", "SELECT entry_id FROM talos_journal")
    else:
        ledger.refuse(request_id)
    return ledger


# --- I1


def test_no_loss_fails_on_a_call_that_was_answered_ok_and_has_no_outcome_or_no_row(store: Store) -> None:
    ledger = ledger_of(answered="r")
    store.put("talos_journal", entry_id="entry")
    with pytest.raises(AssertionError, match="I1: answered ok, but not applied"):
        invariants.no_loss(store.connection, ledger)
    store.put("outcomes", request_id="r", status="applied")
    invariants.no_loss(store.connection, ledger)
    store.connection.execute("DELETE FROM talos_journal")
    with pytest.raises(AssertionError, match="I1: ids that were given"):
        invariants.no_loss(store.connection, ledger)


def test_no_loss_fails_on_an_event_that_the_log_took_and_nothing_became_of(store: Store) -> None:
    taken = Ledger(published={"e1"})
    with pytest.raises(AssertionError, match="I1: acknowledged"):
        invariants.no_loss(store.connection, taken)
    store.event("e1")
    invariants.no_loss(store.connection, taken)
    poison = Ledger(poison={Position(MEMORY.name, 0, 7)})
    store.put("dead_letters", topic=MEMORY.name, offset=7, stage="import", dead_letter_id="of another stage")
    with pytest.raises(AssertionError, match="I1: poison"):
        invariants.no_loss(store.connection, poison)
    store.put("dead_letters", topic=MEMORY.name, offset=7, stage="materialise", dead_letter_id="its own")
    invariants.no_loss(store.connection, poison)


# --- I2


def test_every_table_has_a_primary_key_or_a_key_of_ours(store: Store) -> None:
    tables = {name for (name,) in store.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    keyed = "SELECT table_name FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
    assert tables - {name for (name,) in store.connection.execute(keyed).fetchall()} == {*KEYS, ONE_ROW}


def test_no_duplicate_fails_on_progress_that_is_there_twice(store: Store) -> None:
    store.put(ONE_ROW, tokens="{}")
    invariants.no_duplicate(store.connection)
    store.put(ONE_ROW, tokens="{}")
    with pytest.raises(AssertionError, match="I2: progress_tokens holds 2 rows"):
        invariants.no_duplicate(store.connection)


@pytest.mark.parametrize("table", KEYS)
def test_no_duplicate_fails_on_a_row_that_is_there_twice(store: Store, table: str) -> None:
    store.put(table)
    invariants.no_duplicate(store.connection)
    store.put(table)
    with pytest.raises(AssertionError, match=f"I2: {table} holds 1 rows twice"):
        invariants.no_duplicate(store.connection)


COUNTED = {
    "clusters.record_count": [
        ("clusters", {"record_count": 3}),
        ("merges", {"record_id": "one"}),
        ("merges", {"record_id": "two"}),
    ],
    "valence_entities.link_count": [("valence_entities", {"link_count": 1}), ("valence_belief_entities", {})],
    "valence_beliefs.corroboration_count": [
        ("valence_beliefs", {"corroboration_count": 1}),
        ("belief_corroborations", {}),
    ],
    "context_utl.interactions": [("context_utl", {"interactions": 3}), ("context_memories", {"times": 3})],
    "context_profile_counts.profiles": [
        ("context_profile_counts", {"profiles": 1}),
        ("context_profiles", {"is_deleted": False}),
    ],
}


@pytest.mark.parametrize("name", invariants.AGGREGATES)
def test_a_count_that_is_not_the_number_of_what_it_counts_fails(store: Store, name: str) -> None:
    for table, values in COUNTED[name]:
        store.put(table, **values)
    invariants.aggregates_are_what_they_count(store.connection)
    table, column = name.split(".")
    store.connection.execute(f"UPDATE {table} SET {column} = {column} + 1")
    with pytest.raises(AssertionError, match=f"I2: {name}"):
        invariants.aggregates_are_what_they_count(store.connection)


# --- I3


def test_no_invention_fails_on_a_refused_call_that_was_applied_and_on_one_that_nobody_made(store: Store) -> None:
    store.put("outcomes", request_id="r", status="applied")
    for ledger in (Ledger(unknown={"r"}), Ledger(published={"r"}), ledger_of(answered="r")):
        invariants.no_invention(store.connection, ledger)
    for ledger in (ledger_of(refused="r"), Ledger()):
        with pytest.raises(AssertionError, match="I3: applied, but refused or never asked for"):
            invariants.no_invention(store.connection, ledger)


@pytest.mark.parametrize(
    "wrong", [{"event_id": "nobody's"}, {"offset": 6}, {"topic": "elsewhere"}], ids=lambda wrong: min(wrong)
)
def test_a_row_that_no_applied_event_made_fails(store: Store, wrong: dict[str, Any]) -> None:
    store.event("e1", offset=5)
    made = {"event_id": "e1", "topic": MEMORY.name, "offset": 5}
    store.put("talos_journal", **made)
    invariants.rows_come_from_events(store.connection)
    store.put("session_events", **made | wrong)
    with pytest.raises(AssertionError, match="I3: session_events holds 1 rows of no event"):
        invariants.rows_come_from_events(store.connection)


def test_a_repeat_of_no_event_fails(store: Store) -> None:
    store.put("duplicates", event_key=UUID(int=99))
    with pytest.raises(AssertionError, match="I3: 1 repeats of no event"):
        invariants.rows_come_from_events(store.connection)


# --- I4


def test_an_offset_that_nothing_accounts_for_fails(store: Store) -> None:
    set_progress(store.connection, materialise={MEMORY.name: {"0": 3}})
    store.event("e0", offset=0)
    store.put("duplicates", topic=MEMORY.name, offset=1)
    with pytest.raises(AssertionError, match="I4: offsets that nothing accounts for"):
        invariants.every_offset_accounted_for(store.connection)
    store.put("dead_letters", topic=MEMORY.name, offset=2, stage="materialise")
    invariants.every_offset_accounted_for(store.connection)


# --- I5, of Valence: what only the order of the log decides


BROKEN_LINES = {
    "sessions whose exchanges have gaps": [("vkb_exchanges", {"sequence": 1}), ("vkb_exchanges", {"sequence": 3})],
    "beliefs that were superseded twice": [
        ("valence_beliefs", {"belief_id": heir, "supersedes_id": "b", "extraction_method": "supersession:manual"})
        for heir in ("c", "d")
    ],
    "beliefs that are held beside their successors": [
        ("valence_beliefs", {"status": "active", "superseded_by_id": "c"})
    ],
}


@pytest.mark.parametrize("said", BROKEN_LINES)
def test_a_line_that_is_broken_fails(store: Store, said: str) -> None:
    invariants.lines_and_numbers_hold(store.connection)
    for table, values in BROKEN_LINES[said]:
        store.put(table, **values)
    with pytest.raises(AssertionError, match=said):
        invariants.lines_and_numbers_hold(store.connection)


# --- I6

ASKED, TOLD = Partition(MEMORY.name, 3), Partition(DERIVED.name, 3)


def mark(stage: str, offset: int, reached: int) -> tuple[Position, ProgressMark]:
    return Position(*TOLD, offset), ProgressMark(stage, (Position(*ASKED, reached),))


def test_a_stage_that_commits_before_it_publishes_fails() -> None:
    marks = [mark(Extract.name, 0, 5), mark("embed", 1, 8)]
    assert committed_is_published(Commits({Extract: {ASKED: 5}}, marks)) == 1
    with pytest.raises(AssertionError, match=r"I6: extract has committed .* up to 8, but marked .* up to 5 of 8"):
        committed_is_published(Commits({Extract: {ASKED: 8}}, marks))
    with pytest.raises(AssertionError, match="up to 0 of 5"):
        committed_is_published(Commits({Extract: {ASKED: 5}}, []))


def test_a_stage_that_follows_another_and_commits_before_it_publishes_fails() -> None:
    marks = [mark(Extract.name, 0, 5), mark(Dedup.name, 1, 5), mark(Extract.name, 2, 9)]
    assert committed_is_published(Commits({Dedup: {TOLD: 2}}, marks)) == 1
    with pytest.raises(AssertionError, match=r"I6: dedup has committed .* up to 3, but marked .* up to 5 of 9"):
        committed_is_published(Commits({Dedup: {TOLD: 3}}, marks))


# --- I7


def embed(store: Store, label: int, *, space: str = SPACE) -> None:
    store.put(
        "embeddings",
        label=label,
        space=space,
        record_id=str(label),
        vector=stored_vector(np.eye(1, HashingEmbedder().info.dim)[0]),
    )


def test_a_text_without_a_vector_and_an_index_that_lacks_a_row_fail(store: Store) -> None:
    for label in (1, 2):
        store.put("documents", label=label, record_id=str(label), kind="Insight", toolset="talos", text="some")
    embed(store, 1)
    counts = {"vector": {"space": SPACE, "count": 2}, "keyword": {"count": 2}}
    with pytest.raises(AssertionError, match="I7: without a vector"):
        invariants.index_counts_are_those_of(store.connection, counts)
    embed(store, 2)
    invariants.index_counts_are_those_of(store.connection, counts)
    for name in ("vector", "keyword"):
        with pytest.raises(AssertionError, match="against 2 rows"):
            invariants.index_counts_are_those_of(store.connection, counts | {name: {"space": SPACE, "count": 1}})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a node that has stopped: sixty memories with their vectors."""
    home = migrated_home(tmp_path_factory.mktemp("at rest") / "home")
    embedder, store = HashingEmbedder(), Store()
    store.connection = duckdb.connect(home / "thalweg.duckdb")
    for label in range(1, 61):
        text = f"The case {label} is like the case {label % 7}."
        store.put("documents", label=label, record_id=str(label), kind="Insight", toolset="talos", text=text)
        vector = stored_vector(embedder.encode([text])[0])
        model = {"space": SPACE, "model_id": embedder.info.model_id, "dim": embedder.info.dim, "dtype": "float32"}
        store.put("embeddings", label=label, record_id=str(label), vector=vector, **model)
    store.connection.close()
    return home


def test_indexes_at_rest_that_hold_the_rows_are_asked_exactly_and_through_a_graph(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph_sizes: list[int] = []
    ask = vector_module.query_graph
    monkeypatch.setattr(
        vector_module,
        "query_graph",
        lambda graph, *given: graph_sizes.append(graph.element_count) or ask(graph, *given),
    )
    invariants.indexes_at_rest_hold_the_rows(home)
    assert set(graph_sizes) == {60}


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], object]] = {
    "I7: the vector index": lambda patch: patch.setattr(IndexSet, "labels", without_last(IndexSet.labels, 1)),
    "I7: the keyword index": lambda patch: patch.setattr(IndexSet, "labels", without_last(IndexSet.labels, 0)),
    "I7: exact search misses": lambda patch: patch.setattr(
        DenseSpace, "nearest", lambda self, vector, k: DocumentMatches([(1, 1.0)] * k, {})
    ),
    "I7: the graph finds": lambda patch: patch.setattr(
        vector_module, "query_graph", lambda graph, query, k, allowed: [(1, 1.0)]
    ),
}


def without_last(labels: Callable[..., Any], side: int) -> Callable[..., Any]:
    def fewer(self: IndexSet) -> Any:
        both = list(labels(self))
        both[side] = both[side][:-1]
        return both

    return fewer


@pytest.mark.parametrize("said", FAULTS)
def test_indexes_at_rest_that_lack_a_row_or_do_not_find_what_is_near_fail(
    home: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    FAULTS[said](monkeypatch)
    with pytest.raises(AssertionError, match=said):
        invariants.indexes_at_rest_hold_the_rows(home)


# --- I8


def fill(store: Store) -> None:
    set_progress(store.connection, materialise={MEMORY.name: {"0": 10}})
    for _ in range(2):
        store.put("session_events", event_id="e1", text="twice")
    for offset in (3, 4):
        store.put("duplicates", topic=MEMORY.name, offset=offset)


@pytest.mark.parametrize(
    ("change", "table"),
    [
        ("DELETE FROM session_events WHERE rowid = 0", "session_events"),  # one of two equal rows
        ("INSERT INTO session_events FROM session_events LIMIT 1", "session_events"),
        ("UPDATE session_events SET text = 'other' WHERE rowid = 0", "session_events"),
        ('DELETE FROM duplicates WHERE "offset" = 3', "duplicates"),
        ('INSERT INTO duplicates SELECT * REPLACE (9 AS "offset") FROM duplicates LIMIT 1', "duplicates"),
    ],
)
def test_a_rebuild_that_gives_other_rows_or_another_number_of_them_fails(store: Store, change: str, table: str) -> None:
    fill(store)
    before = invariants.live(store.connection)
    invariants.rebuild_equals_live(before, store.connection)
    store.connection.execute(change)
    with pytest.raises(AssertionError, match=f"I8: {table} differs"):
        invariants.rebuild_equals_live(before, store.connection)


def test_only_a_repeat_that_came_onto_the_log_later_may_be_counted_beside_the_others(store: Store) -> None:
    fill(store)
    before = invariants.live(store.connection)
    store.put("duplicates", topic=MEMORY.name, offset=10)
    invariants.rebuild_equals_live(before, store.connection)


def test_a_rebuild_that_lacks_a_table_fails(store: Store) -> None:
    before = invariants.live(store.connection)
    store.connection.execute("DROP TABLE otel_metrics")
    with pytest.raises(AssertionError, match=r"I8: tables .*otel_metrics"):
        invariants.rebuild_equals_live(before, store.connection)


# --- I11


@pytest.mark.parametrize("name", vars(MOST))
def test_what_holds_more_than_it_may_fails(name: str) -> None:
    invariants.is_bounded(MOST)
    with pytest.raises(AssertionError, match="I11"):
        invariants.is_bounded(replace(MOST, **{name: getattr(MOST, name) + 1}))


def test_usage_counts_descriptors_files_and_memory(tmp_path: Path) -> None:
    before = invariants.read_usage(os.getpid(), tmp_path)
    with ExitStack() as opened:
        for number in range(5):
            opened.enter_context((tmp_path / str(number)).open("w"))
        ballast = np.ones(8 * 2**20)  # 64 MiB
        after = invariants.read_usage(os.getpid(), tmp_path)
    assert ballast.size and after.resident_mb - before.resident_mb > 32
    assert Usage(after.descriptors - before.descriptors, after.files - before.files, 0) == Usage(5, 5, 0)


# --- the load


def test_the_load_of_the_kills_calls_every_tool_that_writes() -> None:
    assert WRITES.keys() == {tool.name for tool in find_tools() if tool.kind != "read"}
