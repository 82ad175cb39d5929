"""I1 to I4, I6 to I8 and I11 of the guarantee, checked on a running node after a fault.

Every recipe ends with `check_all`.

Each is a function of a store (or of what was read of a process or a log), so that a test can show it one that breaks
it.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from processors.embedding.hashing import HashingEmbedder
from processors.memory.reembedding import missing_labels, partial_labels, read_texts
from storage.database import Database
from storage.search.index_set import IndexSet
from storage.search.vectors import vector_index as vector_module
from storage.vector_codec import read_vector, read_vectors
from streams.positions import Position
from tests.crash.commits import committed_is_published, read_commits
from tests.node_process import NodeProcess
from tests.patience import PATIENCE_S
from thalweg.control.requests import ask

KEYS = {
    "context_edge_changes": "(namespace, event_id, source_id, target_id, kind)",
    "context_recalls": "(namespace, event_id, rank)",
    "context_traversals": "(namespace, event_id, path)",
    "dead_letter_marks": "(event_id, dead_letter_id, to_topic, to_partition, to_offset)",
    "duplicates": '(topic, partition, "offset", idx)',
    "invocations": "(namespace, invocation_id)",
    "judge_runs": '(topic, partition, "offset")',
    "judgements": "(namespace, event_id, document_id)",
    "l2_sources": "(namespace, insight_id, source_id)",
    "otel_logs": "(namespace, event_id)",
    "otel_metrics": "(namespace, event_id)",
    "otel_spans": "(namespace, event_id)",
    "session_events": "(namespace, event_id)",
    "signal_evidence": "(namespace, signal_id, session_id, relation_type, node_id)",
    "state_changes": "(namespace, event_id)",
    "talos_journal": "(namespace, entry_id)",
    "valence_belief_changes": '(namespace, topic, partition, "offset", idx, belief_id)',
    "restatements": "(namespace, record_id, event_id)",
    "agreements": "(namespace, one_id, other_id)",
    "supersessions": "(namespace, record_id)",
    "valence_belief_entities": "(namespace, belief_id, entity_id, role)",
    "vkb_exchanges": "(namespace, session_id, sequence)",
}
"""What makes a row one thing, of each table without a primary key. Of the others DuckDB sees to it."""
ONE_ROW = "progress_tokens"
"""The table that never has more than one row."""

NOT_COMPARED = {ONE_ROW, "schema_migrations", "duplicates"}
"""How far reading has come and when the schema was made are of one store; of repeats see `rebuild_equals_live`."""


@dataclass
class Ledger:
    """What the callers and producers know.

    What was answered ok and what has to be there for it, what was refused, what never was answered.
    """

    answered: dict[str, Any] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    rows: dict[str, set[Any]] = field(default_factory=dict)
    """By query: ids that are among its rows."""
    published: set[str] = field(default_factory=set)
    """Ids of events that the log has acknowledged to a producer or an import."""
    poison: set[Position] = field(default_factory=set)
    """Where records lie that can never be applied."""

    def ask(self, request_id: str) -> None:
        """Before a call is made: from now on it may have an effect."""
        self.unknown.add(request_id)

    def answer(self, request_id: str, identity: Any, rows: str) -> None:
        """It was answered ok with this id, which is from now on among the rows of this query."""
        self.answered[request_id] = identity
        self.rows.setdefault(rows, set()).add(identity)
        self.unknown.discard(request_id)

    def refuse(self, request_id: str) -> None:
        """It was refused: it has no effect, and never will."""
        self.refused.add(request_id)
        self.unknown.discard(request_id)


def check_all(node: NodeProcess, ledger: Ledger) -> dict[str, int]:
    """Assert every invariant on the settled node; returns counts for the report."""
    node.settle()
    committed_is_published(read_commits(node))
    with node.store() as store:
        no_loss(store, ledger)
        no_duplicate(store)
        aggregates_are_what_they_count(store)
        no_invention(store, ledger)
        rows_come_from_events(store)
        lines_and_numbers_hold(store)
        every_offset_accounted_for(store)
        live = contents(store)
        index_equals_table(node, store)
    if node.is_alive() and node.process is not None:
        usage = read_usage(node.process.pid, node.home)
        print(usage)
        is_bounded(usage)
    return {name: len(rows) for name, rows in live.items() if rows}


def no_loss(store: duckdb.DuckDBPyConnection, ledger: Ledger) -> None:
    """I1: what was answered ok is applied and there; what the log took of a producer is an event or a dead letter."""
    status = dict(store.execute("SELECT request_id, status FROM outcomes").fetchall())
    lost = [request for request in ledger.answered if status.get(request) != "applied"]
    assert not lost, f"I1: answered ok, but not applied: {lost[:5]} of {len(lost)}"
    for query, ids in ledger.rows.items():
        missing = ids - {identity for (identity,) in store.execute(query).fetchall()}
        assert not missing, f"I1: ids that were given, but are not in {query}: {list(missing)[:5]} of {len(missing)}"
    gone = ledger.published - {identity for (identity,) in store.execute("SELECT event_id FROM events").fetchall()}
    assert not gone, f"I1: acknowledged by the log, but not applied: {list(gone)[:5]} of {len(gone)}"
    buried = store.execute(
        """SELECT topic, partition, "offset" FROM dead_letters WHERE stage = 'materialise'"""
    ).fetchall()
    unburied = ledger.poison - {Position(*place) for place in buried}
    assert not unburied, f"I1: poison without a dead letter: {list(unburied)[:5]} of {len(unburied)}"


def no_duplicate(store: duckdb.DuckDBPyConnection) -> None:
    """I2: nothing is there twice."""
    for table, key in KEYS.items():
        [(twice,)] = store.execute(f"SELECT count(*) - count(DISTINCT {key}) FROM {table}").fetchall()
        assert twice == 0, f"I2: {table} holds {twice} rows twice"
    [(rows,)] = store.execute(f"SELECT count(*) FROM {ONE_ROW}").fetchall()
    assert rows <= 1, f"I2: {ONE_ROW} holds {rows} rows"


AGGREGATES = {
    "clusters.record_count": """SELECT c.record_count, 1 + count(m.record_id) FROM clusters c LEFT JOIN merges m
        ON m.namespace = c.namespace AND m.into_id = c.canonical_id
        GROUP BY c.namespace, c.canonical_id, c.record_count""",
    "valence_entities.link_count": """SELECT e.link_count, count(b.belief_id) FROM valence_entities e
        LEFT JOIN valence_belief_entities b USING (namespace, entity_id)
        GROUP BY e.namespace, e.entity_id, e.link_count""",
    "valence_beliefs.corroboration_count": """SELECT b.corroboration_count, count(c.source_id) FROM valence_beliefs b
        LEFT JOIN belief_corroborations c USING (namespace, belief_id)
        GROUP BY b.namespace, b.belief_id, b.corroboration_count""",
    "context_utl.interactions": """SELECT u.interactions, sum(m.times) FROM context_utl u
        LEFT JOIN context_memories m USING (namespace) GROUP BY u.namespace, u.interactions""",
    "context_profile_counts.profiles": """SELECT c.profiles, count(p.profile_id) FROM context_profile_counts c
        LEFT JOIN context_profiles p ON p.namespace = c.namespace AND NOT p.is_deleted
        GROUP BY c.namespace, c.profiles""",
}
"""What a reducer counts beside the rows that it counts."""


def aggregates_are_what_they_count(store: duckdb.DuckDBPyConnection) -> None:
    """I2: every count that a reducer keeps equals its recomputation."""
    for name, query in AGGREGATES.items():
        wrong = [row for row in store.execute(query).fetchall() if row[0] != row[1]]
        assert not wrong, f"I2: {name} and what it counts: {wrong[:5]} of {len(wrong)}"


def no_invention(store: duckdb.DuckDBPyConnection, ledger: Ledger) -> None:
    """I3: what is applied was asked for and not refused.

    It was answered ok, never answered, or comes from a producer.
    """
    applied = {row[0] for row in store.execute("SELECT request_id FROM outcomes WHERE status = 'applied'").fetchall()}
    invented = applied - set(ledger.answered) - ledger.unknown - ledger.published
    assert not invented, f"I3: applied, but refused or never asked for: {sorted(invented)[:5]} of {len(invented)}"


def rows_come_from_events(store: duckdb.DuckDBPyConnection) -> None:
    """I3: every row names an event that was applied, and the place on the log of one that was.

    A repeat names the first.
    """
    for (table,) in store.execute(_WITH_EVENT).fetchall():
        places = f"""SELECT count(*) FROM {table} WHERE event_id NOT IN (SELECT event_id FROM events)
            OR (topic, partition, "offset") NOT IN (SELECT (topic, partition, "offset") FROM events)"""
        [(count,)] = store.execute(places).fetchall()
        assert count == 0, f"I3: {table} holds {count} rows of no event"
    [(count,)] = store.execute(
        "SELECT count(*) FROM duplicates WHERE event_key NOT IN (SELECT event_key FROM events)"
    ).fetchall()
    assert count == 0, f"I3: {count} repeats of no event"


_WITH_EVENT = """SELECT table_name FROM duckdb_columns()
    WHERE column_name IN ('event_id', 'topic', 'partition', 'offset')
    AND table_name IN (SELECT table_name FROM duckdb_tables()) AND table_name NOT IN ('events', 'duplicates')
    GROUP BY table_name HAVING count(*) = 4 ORDER BY table_name"""


def lines_and_numbers_hold(store: duckdb.DuckDBPyConnection) -> None:
    """Valence's own: exchanges are 1 to n, a belief has at most one successor and only the head of a line is held."""
    gaps = store.execute(
        "SELECT session_id FROM vkb_exchanges GROUP BY session_id "
        "HAVING min(sequence) <> 1 OR max(sequence) <> count(*)"
    ).fetchall()
    assert not gaps, f"sessions whose exchanges have gaps: {gaps}"
    forked = store.execute(
        "SELECT supersedes_id FROM valence_beliefs WHERE extraction_method LIKE 'supersession:%' "
        "GROUP BY supersedes_id HAVING count(*) > 1"
    ).fetchall()
    assert not forked, f"beliefs that were superseded twice: {forked}"
    held = store.execute(
        "SELECT belief_id FROM valence_beliefs WHERE (status = 'superseded') <> (superseded_by_id IS NOT NULL)"
    ).fetchall()
    assert not held, f"beliefs that are held beside their successors: {held}"


def every_offset_accounted_for(store: duckdb.DuckDBPyConnection) -> None:
    """I4: per partition, 0 … end-1 is applied, duplicate or dead letter (records that carry no event are progress
    marks).
    """
    rows = store.execute(
        """
        SELECT p.topic, p.partition, p.next_offset - count(DISTINCT a."offset") FROM positions p
        LEFT JOIN offsets_accounted a ON a.topic = p.topic AND a.partition = p.partition AND a."offset" < p.next_offset
        WHERE p.topic NOT LIKE '%.dlq' AND p.topic <> 'thalweg.derived.v1'
        GROUP BY p.topic, p.partition, p.next_offset HAVING p.next_offset <> count(DISTINCT a."offset")"""
    ).fetchall()
    assert not rows, f"I4: offsets that nothing accounts for: {rows}"


def index_equals_table(node: NodeProcess, store: duckdb.DuckDBPyConnection) -> None:
    """I7 of a node that runs: every text has its vector, and the indexes hold as many as there are rows.

    A document that is moved from the overlay into the index just then counts twice for a moment: so look again before
    it counts as wrong.
    """
    deadline = time.monotonic() + PATIENCE_S
    while (
        (indexes := ask(node.home, "status")["indexes"])
        and not _is_whole(indexes, store)
        and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    index_counts_are_those_of(store, indexes)


def _is_whole(indexes: Mapping[str, Any], store: duckdb.DuckDBPyConnection) -> bool:
    try:
        index_counts_are_those_of(store, indexes)
    except AssertionError:
        return False
    return True


def index_counts_are_those_of(store: duckdb.DuckDBPyConnection, indexes: Mapping[str, Any]) -> None:
    """I7: no text lacks its vector, and what `status` says of the indexes is what the tables hold."""
    space = indexes["vector"]["space"]
    [(documents,)] = store.execute("SELECT count(*) FROM documents").fetchall()
    [(vectors,)] = store.execute("SELECT count(*) FROM embeddings WHERE space = ?", [space]).fetchall()
    lacking, _ = missing_labels(store, space)
    lacking = np.union1d(lacking, partial_labels(store, space)).astype(np.int64)
    assert not len(lacking), f"I7: without a vector: {[missing.text for missing in read_texts(store, lacking)][:3]}"
    assert indexes["vector"]["count"] == vectors, f"I7: {indexes['vector']} against {vectors} rows"
    assert indexes["keyword"]["count"] == documents, f"I7: {indexes['keyword']} against {documents} rows"


@dataclass(frozen=True)
class Usage:
    """What a node holds: open descriptors, files in its home, resident memory."""

    descriptors: int
    files: int
    resident_mb: int


MOST = Usage(descriptors=80, files=160, resident_mb=600)
"""After some hundred calls a node of these tests holds up to 45 descriptors, 50 files (100 beside a second space) and
400 MB; a leak of each call soon holds more.
"""


def read_usage(pid: int, home: Path) -> Usage:
    """Of a process and its data directory (Linux)."""
    process = Path(f"/proc/{pid}")
    resident = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return Usage(
        len(list((process / "fd").iterdir())), sum(len(names) for _, _, names in os.walk(home)), round(resident / 2**20)
    )


def is_bounded(usage: Usage) -> None:
    """I11: no descriptor, no file and no memory is left behind by calls, kills and starts."""
    for name, most in vars(MOST).items():
        assert getattr(usage, name) <= most, f"I11: {usage}, at most {MOST}"


RECALL = 0.95


def indexes_at_rest_hold_the_rows(home: Path) -> None:
    """I7 of a node that has stopped.

    The ids of each index are those of the rows, the ten nearest are found exactly as by comparing every vector, and of
    them RECALL once the rows are in a graph, as they are where there are very many.
    """
    database = Database(home)
    cursor = database.cursor()
    covered = {
        f"{topic}/{at}": end
        for topic, at, end in cursor.execute("SELECT topic, partition, next_offset FROM positions").fetchall()
    }
    indexes = IndexSet(home / "indexes", database.cursor, HashingEmbedder().info)
    exact_rows = vector_module.EXACT_ROWS
    try:
        indexes.open(covered)
        assert indexes.wait_ready(PATIENCE_S)
        space = HashingEmbedder().info.space
        rows = cursor.execute("SELECT label, vector FROM embeddings WHERE space = ? ORDER BY label", [space]).fetchall()
        documents = [label for (label,) in cursor.execute("SELECT label FROM documents ORDER BY label").fetchall()]
        keywords, vectors = indexes.labels()
        assert sorted(vectors.tolist()) == [label for label, _ in rows], "I7: the vector index and embeddings"
        assert sorted(set(keywords.tolist())) == documents, "I7: the keyword index and documents"
        labels, matrix = [label for label, _ in rows], read_vectors([vector for _, vector in rows])
        assert recall(cursor, indexes, labels, matrix) == 1.0, "I7: exact search misses what is near"
        vector_module.EXACT_ROWS = 0
        while indexes.unlinked:
            indexes.maintain()
        found = recall(cursor, indexes, labels, matrix)
        assert found >= RECALL, f"I7: the graph finds {found:.3f} of what is near"
    finally:
        vector_module.EXACT_ROWS = exact_rows
        indexes.close(save=False)
        database.close()


def recall(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, labels: list[int], matrix: np.ndarray) -> float:
    """The share of the ten nearest to some of the rows that the index finds; others exactly as near are as good."""
    found = wanted = 0
    for query in matrix[:: max(1, len(matrix) // 20)]:
        cosines = matrix @ query
        least = np.sort(cosines)[-10:][0] - 1e-4
        cosine = dict(zip(labels, cosines, strict=True))
        found += sum(cosine[label] >= least for label, _ in indexes.space().nearest(query, 10).matches)
        wanted += min(10, len(labels))
    assert wanted, "I7: there is nothing to find"
    return found / wanted


def contents(store: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Every base table's rows, sorted, vectors rounded: what a rebuild must give again."""
    tables = [row[0] for row in store.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()]
    return {name: _rows(store, name) for name in tables if name not in NOT_COMPARED}


def _rows(store: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    return sorted(repr(_rounded(row)) for row in store.execute(f"FROM {table}").fetchall())


def _rounded(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(np.round(read_vector(value), 5).tolist() if isinstance(value, bytes) else value for value in row)


@dataclass(frozen=True)
class Live:
    """A store before it is deleted: its rows, what it counts as repeats, and how far it has applied each partition."""

    rows: Mapping[str, list[str]]
    repeats: list[str]
    applied: Mapping[tuple[str, int], int]


def repeats(store: duckdb.DuckDBPyConnection, applied: Mapping[tuple[str, int], int]) -> list[str]:
    """The rows of `duplicates` that lie below these next offsets, sorted."""
    rows = store.execute('SELECT topic, partition, "offset", * FROM duplicates').fetchall()
    return sorted(repr(row) for topic, partition, offset, *row in rows if offset < applied.get((topic, partition), 0))


def live(store: duckdb.DuckDBPyConnection) -> Live:
    """All that `rebuild_equals_live` compares."""
    positions = store.execute("SELECT topic, partition, next_offset FROM positions").fetchall()
    applied = {(topic, partition): offset for topic, partition, offset in positions}
    return Live(contents(store), repeats(store, applied), applied)


def rebuild_equals_live(before: Live, store: duckdb.DuckDBPyConnection) -> None:
    """I8: with the store deleted and the log replayed, the same rows, each as often.

    Only repeats that came onto the log after what was compared with had been read may be counted beside them.
    """
    after = contents(store)
    assert before.rows.keys() == after.keys(), f"I8: tables {before.rows.keys() ^ after.keys()}"
    pairs = {name: (rows, after[name]) for name, rows in before.rows.items()} | {
        "duplicates": (before.repeats, repeats(store, before.applied))
    }
    for table, (former, rebuilt) in pairs.items():
        gone, new = Counter(former) - Counter(rebuilt), Counter(rebuilt) - Counter(former)
        assert not gone and not new, f"I8: {table} differs after a rebuild: -{sorted(gone)[:2]} +{sorted(new)[:2]}"
