"""I1 to I8 and I11 of the guarantee, checked on a running node after a fault. Every recipe ends with `check_all`."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from processors.embedding.hashing import HashingEmbedder
from processors.reembedding import missing_labels, read_texts
from storage.database import Database
from storage.search.engine import SearchIndexes
from storage.vectors import read_vector, read_vectors
from tests.node_process import NodeProcess
from tests.patience import PATIENCE_S
from thalweg.control import ask

KEYED = {
    "events": "event_key",
    "outcomes": "(namespace, request_id)",
    "talos_sessions": "(namespace, session_id)",
    "talos_journal": "(namespace, entry_id)",
    "entities": "(namespace, entity_id)",
    "relations": "(namespace, relation_id)",
    "merges": "(namespace, record_id)",
    "embeddings": "(label, space)",
    "embedding_retries": "(namespace, record_id, space)",
    "passages": "(label, space)",
    "document_tags": "(namespace, record_id, tag)",
    "documents": "label",
    "spaces": "space",
    "live_spaces": "kind",
    "dead_letters": "dead_letter_id",
    "misplaced_records": "(namespace, source, topic)",
    "tool_calls": "(namespace, tool_call_id)",
    "talos_names": "(namespace, label, name)",
    "telemetry_names": "(namespace, label, name)",
    "prunes": "(namespace, record_id)",
    "pattern_deprecations": "(namespace, pattern_id, last_occurred_at)",
    "significance": "(namespace, day)",
    "pattern_signals": "(namespace, signal_id, session_id)",
    "signal_evidence": "(namespace, signal_id, session_id, relation_type, node_id)",
    "vkb_sessions": "(namespace, session_id)",
    "vkb_exchanges": "(namespace, session_id, sequence)",
    "vkb_patterns": "(namespace, pattern_id)",
    "vkb_session_insights": "(namespace, session_id, belief_id)",
    "vkb_pattern_changes": "(namespace, pattern_id, last_observed_at, to_status)",
    "valence_sources": "(namespace, source_id)",
    "valence_beliefs": "(namespace, belief_id)",
    "valence_belief_changes": '(namespace, topic, partition, "offset", idx, belief_id)',
    "valence_belief_hashes": "(namespace, content_hash)",
    "belief_corroborations": "(namespace, belief_id, source_id)",
    "valence_entities": "(namespace, entity_id)",
    "valence_entity_names": "(namespace, name_key)",
    "valence_belief_entities": "(namespace, belief_id, entity_id, role)",
    "tension_resolutions": "(namespace, tension_id)",
    "entity_resolutions": "(namespace, entity_id)",
    "tension_findings": "(namespace, tension_id)",
    "l0_raw": "(namespace, id)",
    "l2_insights": "(namespace, id)",
    "l2_sources": "(namespace, insight_id, source_id)",
    "working_memory_slots": "(namespace, slot)",
    "stale_memory": "(namespace, id)",
    "episode_memory": "(namespace, id)",
    "ground_truth": "(namespace, id)",
    "judge_runs": '(topic, partition, "offset")',
    "judgements": "(namespace, event_id, document_id)",
    "golden_test_set": "(namespace, id)",
    "evaluation_sessions": "(namespace, session_id)",
    "model_drift_log": "(namespace, date)",
}
"""What makes a row of each table one thing."""

NOT_COMPARED = {"progress", "schema_migrations", "duplicates"}
"""A rebuild reads what is on the log now: repeats that came later are duplicates there too, but counted by place."""


@dataclass
class Ledger:
    """What the callers know: requests answered ok, with the ids they were given; requests whose answer never came."""

    answered: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)


def check_all(node: NodeProcess, ledger: Ledger) -> dict[str, int]:
    """Assert every invariant on the settled node; returns counts for the report."""
    node.settle()
    committed = committed_offsets(node)  # before the store is copied: what is committed meanwhile may lie behind the copy
    with node.store() as store:
        no_loss(store, ledger)
        no_duplicate(store)
        aggregates_are_what_they_count(store)
        no_invention(store, ledger)
        lines_and_numbers_hold(store)
        every_offset_accounted_for(store)
        committed_not_ahead_of_durable(committed, store)
        live = contents(store)
        index_equals_table(node, store)
    what_is_held_is_bounded(node)
    return {name: len(rows) for name, rows in live.items() if rows}


def no_loss(store: duckdb.DuckDBPyConnection, ledger: Ledger) -> None:
    """I1: every id whose call was answered ok is a row."""
    rows = dict(store.execute("SELECT request_id, status FROM outcomes").fetchall())
    lost = [request for request in ledger.answered if rows.get(request) != "applied"]
    assert not lost, f"I1: answered ok, but not applied: {lost[:5]} of {len(lost)}"
    given = (
        "talos_journal.entry_id entities.entity_id vkb_sessions.session_id vkb_exchanges.exchange_id vkb_session_insights.insight_id "
        "valence_beliefs.belief_id tension_resolutions.tension_id"
    )
    tables = (column.split(".") for column in given.split())
    entries = {row[0] for table, column in tables for row in store.execute(f"SELECT {column} FROM {table}").fetchall()}
    missing = [record for record in ledger.answered.values() if record not in entries]
    assert not missing, f"I1: ids that were given, but are no rows: {missing[:5]} of {len(missing)}"


def no_duplicate(store: duckdb.DuckDBPyConnection) -> None:
    """I2: nothing is there twice."""
    for table, key in KEYED.items():
        [(twice,)] = store.execute(f"SELECT count(*) - count(DISTINCT {key}) FROM {table}").fetchall()
        assert twice == 0, f"I2: {table} holds {twice} rows twice"


AGGREGATES = {
    "clusters.record_count": """SELECT c.record_count, 1 + count(m.record_id) FROM clusters c LEFT JOIN merges m
        ON m.namespace = c.namespace AND m.into_id = c.canonical_id GROUP BY c.namespace, c.canonical_id, c.record_count""",
    "valence_entities.link_count": """SELECT e.link_count, count(b.belief_id) FROM valence_entities e LEFT JOIN valence_belief_entities b
        USING (namespace, entity_id) GROUP BY e.namespace, e.entity_id, e.link_count""",
    "valence_beliefs.corroboration_count": """SELECT b.corroboration_count, count(c.source_id) FROM valence_beliefs b
        LEFT JOIN belief_corroborations c USING (namespace, belief_id) GROUP BY b.namespace, b.belief_id, b.corroboration_count""",
}
"""What a reducer counts beside the rows that it counts."""


def aggregates_are_what_they_count(store: duckdb.DuckDBPyConnection) -> None:
    """I2: every count that a reducer keeps equals its recomputation."""
    for name, query in AGGREGATES.items():
        wrong = [row for row in store.execute(query).fetchall() if row[0] != row[1]]
        assert not wrong, f"I2: {name} and what it counts: {wrong[:5]} of {len(wrong)}"


def no_invention(store: duckdb.DuckDBPyConnection, ledger: Ledger) -> None:
    """I3: rows come from calls that were answered ok or whose answer is unknown."""
    applied = {row[0] for row in store.execute("SELECT request_id FROM outcomes WHERE status = 'applied'").fetchall()}
    invented = applied - set(ledger.answered) - ledger.unknown
    assert not invented, f"I3: applied, but never asked for: {sorted(invented)[:5]}"


def lines_and_numbers_hold(store: duckdb.DuckDBPyConnection) -> None:
    """Valence's own: exchanges are 1 to n, a belief has at most one successor and only the head of a line is held."""
    gaps = store.execute(
        "SELECT session_id FROM vkb_exchanges GROUP BY session_id HAVING min(sequence) <> 1 OR max(sequence) <> count(*)"
    ).fetchall()
    assert not gaps, f"sessions whose exchanges have gaps: {gaps}"
    forked = store.execute(
        "SELECT supersedes_id FROM valence_beliefs WHERE extraction_method LIKE 'supersession:%' GROUP BY supersedes_id HAVING count(*) > 1"
    ).fetchall()
    assert not forked, f"beliefs that were superseded twice: {forked}"
    held = store.execute("SELECT belief_id FROM valence_beliefs WHERE (status = 'superseded') <> (superseded_by_id IS NOT NULL)").fetchall()
    assert not held, f"beliefs that are held beside their successors: {held}"


def every_offset_accounted_for(store: duckdb.DuckDBPyConnection) -> None:
    """I4: per partition, 0 … end-1 is applied, duplicate or dead letter (records that carry no event are progress marks)."""
    rows = store.execute(
        """
        SELECT p.topic, p.partition, p.next_offset - count(DISTINCT a."offset") FROM positions p
        LEFT JOIN offsets_accounted a ON a.topic = p.topic AND a.partition = p.partition AND a."offset" < p.next_offset
        WHERE p.topic NOT LIKE '%.dlq' AND p.topic <> 'thalweg.derived.v1'
        GROUP BY p.topic, p.partition, p.next_offset HAVING p.next_offset <> count(DISTINCT a."offset")"""
    ).fetchall()
    assert not rows, f"I4: offsets that nothing accounts for: {rows}"


Committed = list[tuple[str, int, int]]


def committed_offsets(node: NodeProcess) -> Committed:
    """(topic, partition, next offset) of what the stages' group has committed on the SQLite log."""
    if node.broker and node.broker.startswith("kafka"):
        return []  # sampled through the admin client in the Kafka suite
    log = sqlite3.connect(f"file:{node.home / 'log.db'}?mode=ro", uri=True, timeout=PATIENCE_S)
    committed = log.execute("SELECT topic, partition, next_offset FROM committed").fetchall()
    log.close()
    return committed


def committed_not_ahead_of_durable(committed: Committed, store: duckdb.DuckDBPyConnection) -> None:
    """I6 at rest: what was committed before the store was copied is not past what the copy has been told of."""
    durable = {
        (topic, partition): offset
        for topic, partition, offset in store.execute("SELECT topic, partition, next_offset FROM positions").fetchall()
    }
    ahead = [(t, p, offset) for t, p, offset in committed if offset > durable.get((t, p), 0)]
    assert not ahead, f"I6: committed past the durable position: {ahead}"


def index_equals_table(node: NodeProcess, store: duckdb.DuckDBPyConnection) -> None:
    """I7: every text has its vector, the indexes hold the ids of the rows, and find what exact search finds.

    A document that is moved from the overlay into the index just then counts twice for a moment: so look again before it counts as wrong.
    """
    [(documents,)] = store.execute("SELECT count(*) FROM documents").fetchall()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        indexes = ask(node.home, "status")["indexes"]
        [(vectors,)] = store.execute("SELECT count(*) FROM embeddings WHERE space = ?", [indexes["vector"]["space"]]).fetchall()
        if (indexes["vector"]["count"], indexes["keyword"]["count"]) == (vectors, documents) or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    lacking, _ = missing_labels(store, indexes["vector"]["space"])
    assert not len(lacking), f"I7: without a vector: {[missing.text for missing in read_texts(store, lacking)][:3]}"
    assert indexes["vector"]["count"] == vectors, f"I7: {indexes['vector']} against {vectors} rows"
    assert indexes["keyword"]["count"] == documents, f"I7: {indexes['keyword']} against {documents} rows"


MOST_OPEN, MOST_FILES, MOST_RESIDENT_MB = 256, 300, 1024
"""Far above what a node of these tests holds (about 35 descriptors, 35 files, 250 MB), far below what a leak of each call or start leaves."""


def what_is_held_is_bounded(node: NodeProcess) -> None:
    """I11: no descriptor, no file and no memory is left behind by calls, kills and starts (Linux)."""
    process = Path(f"/proc/{node.process.pid}") if node.process else None
    if process is None or not process.exists():
        return
    descriptors = len(list((process / "fd").iterdir()))
    files = sum(len(names) for _, _, names in os.walk(node.home))
    resident_mb = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    held = (descriptors, files, round(resident_mb))
    assert descriptors < MOST_OPEN and files < MOST_FILES and resident_mb < MOST_RESIDENT_MB, f"I11: descriptors, files, MB: {held}"


def indexes_at_rest_hold_the_rows(home: Path) -> None:
    """I7 of a node that has stopped: the ids of each index are those of the rows, and ten nearest are found as by comparing every vector."""
    database = Database(home)
    cursor = database.cursor()
    covered = {f"{topic}/{at}": end for topic, at, end in cursor.execute("SELECT topic, partition, next_offset FROM positions").fetchall()}
    indexes = SearchIndexes(home / "indexes", database.cursor, HashingEmbedder().info)
    try:
        indexes.open(covered)
        assert indexes.wait_ready(PATIENCE_S)
        space = HashingEmbedder().info.space
        rows = cursor.execute("SELECT label, vector FROM embeddings WHERE space = ? ORDER BY label", [space]).fetchall()
        documents = [label for (label,) in cursor.execute("SELECT label FROM documents ORDER BY label").fetchall()]
        keywords, vectors = indexes.labels()
        assert sorted(vectors.tolist()) == [label for label, _ in rows], "I7: the vector index and embeddings"
        assert sorted(set(keywords.tolist())) == documents, "I7: the keyword index and documents"
        matrix = read_vectors([vector for _, vector in rows])
        found = wanted = 0
        for query in matrix[:: max(1, len(matrix) // 20)]:
            cosines = matrix @ query
            least = np.sort(cosines)[-10:][0] - 1e-4  # others exactly as near are as good
            nearest = dict(zip((label for label, _ in rows), cosines, strict=True))
            found += sum(nearest[label] >= least for label, _ in indexes.nearest(cursor, query, 10))
            wanted += min(10, len(rows))
        assert wanted and found >= 0.95 * wanted, f"I7: recall {found} of {wanted}"
    finally:
        indexes.close(save=False)
        database.close()


def contents(store: duckdb.DuckDBPyConnection) -> dict[str, list[Any]]:
    """Every base table's rows, sorted, vectors rounded: what a rebuild must give again."""
    tables = [row[0] for row in store.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()]
    return {name: _rows(store, name) for name in tables if name not in NOT_COMPARED}


def _rows(store: duckdb.DuckDBPyConnection, table: str) -> list[Any]:
    rows = store.execute(f"SELECT * FROM {table}").fetchall()
    return sorted(repr(_rounded(row)) for row in rows)


def _rounded(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(np.round(read_vector(value), 5).tolist() if isinstance(value, bytes) else value for value in row)


def rebuild_equals_live(node: NodeProcess, before: Mapping[str, list[Any]]) -> None:
    """I8: with the store deleted and the log replayed, the same rows."""
    with node.store() as store:
        after = contents(store)
    for table, rows in before.items():
        gone, new = set(rows) - set(after[table]), set(after[table]) - set(rows)
        assert not gone and not new, f"I8: {table} differs after a rebuild: -{sorted(gone)[:2]} +{sorted(new)[:2]}"
