"""The rows of the story that docs/questions.md prints: two days, two sessions, a sub-agent, a friction met twice."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import duckdb

from storage.tables import read_tables
from storage.vector_codec import stored_vector
from tests.schema import set_progress

MONDAY = datetime(2026, 3, 1, 10, 0)
TUESDAY = datetime(2026, 3, 2, 9, 0)
MEMORY, TELEMETRY, DERIVED = "thalweg.memory.v1", "thalweg.telemetry.v1", "thalweg.derived.v1"
SPINE = {"namespace": "ns", "topic": TELEMETRY, "partition": 3, "offset": 0, "event_id": "e0", "idx": 0}


def insert(cursor: duckdb.DuckDBPyConnection, table: str, **values: Any) -> None:
    """One row; the columns of the spine are filled in."""
    columns = read_tables(cursor)[table].columns
    row = {**{name: value for name, value in SPINE.items() if name in columns}, **values}
    names = ", ".join(f'"{name}"' for name in row)
    cursor.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


def insert_story(cursor: duckdb.DuckDBPyConnection) -> None:
    _sessions(cursor)
    _calls(cursor)
    _memories(cursor)
    _entities(cursor)
    _vectors(cursor)
    _cognitive(cursor)
    _patterns(cursor)
    _log(cursor)


def _sessions(cursor: duckdb.DuckDBPyConnection) -> None:
    for session_id, parent, started in (
        ("s1", None, MONDAY),
        ("s2", None, TUESDAY),
        ("s2-sub", "s2", TUESDAY + timedelta(seconds=2)),
    ):
        insert(
            cursor,
            "telemetry_sessions",
            session_id=session_id,
            parent_session_id=parent,
            source="claude-code",
            project="thalweg",
            agent="main" if parent is None else "explorer",
            started_at=started,
            ended_at=started + timedelta(seconds=10),
        )
    insert(
        cursor,
        "session_events",
        event_id="line1",
        session_id="s2",
        event_type="user",
        role="user",
        occurred_at=TUESDAY,
        text="Fix the build",
    )
    insert(
        cursor,
        "state_changes",
        session_id="s2",
        from_state="calm",
        to_state="keen",
        category="mood",
        trigger="task",
        occurred_at=TUESDAY,
    )


def _calls(cursor: duckdb.DuckDBPyConnection) -> None:
    for number, (tool, duration_ms, error, command) in enumerate(
        [
            ("Bash", 400.0, None, "ls"),
            ("Bash", 100.0, "exit_code", "make"),
            ("Bash", 2000.0, None, "make test"),
            ("Read", 10.0, None, "a"),
            ("Read", 20.0, None, "b"),
        ]
    ):
        insert(
            cursor,
            "tool_calls",
            tool_call_id=f"t{number}",
            session_id="s2",
            tool_name=tool,
            started_at=TUESDAY + timedelta(seconds=1 + number),
            duration_ms=duration_ms,
            is_error=error is not None,
            error_type=error,
            input=f'{{"command":"{command}"}}',
            output_bytes=5,
        )
    for message, session_id, read, written, cached, created, cost, latency_ms in (
        ("m1", "s2", 150, 100, 300, 100, 0.02, 1000.0),
        ("m2", "s2-sub", 50, 50, None, None, None, None),
        ("m3", "s2", 150, 50, 300, 0, 0.01, 2000.0),
    ):
        insert(
            cursor,
            "model_calls",
            message_id=message,
            session_id=session_id,
            model="small" if cost is None else "large",
            occurred_at=TUESDAY,
            input_tokens=read,
            output_tokens=written,
            cache_read_tokens=cached,
            cache_creation_tokens=created,
            cost_usd=cost,
            latency_ms=latency_ms,
        )


def _memories(cursor: duckdb.DuckDBPyConnection) -> None:
    asked = {"topic": MEMORY, "event_id": "asked1"}
    insert(
        cursor,
        "talos_journal",
        entry_id="j1",
        content="Cache the wheels",
        category="insight",
        session_id="s1",
        created_at=MONDAY,
        **asked,
    )
    insert(
        cursor,
        "events",
        event_key="00000000-0000-0000-0000-000000000001",
        source="mcp",
        event_type="thalweg.talos.journal.v1",
        occurred_at=MONDAY,
        digest=1,
        **asked,
    )
    insert(cursor, "outcomes", request_id="r1", status="applied", result="{}", decided_at=MONDAY, **asked)
    insert(
        cursor,
        "invocations",
        invocation_id="i1",
        tool_name="talos_journal_write",
        toolset="talos",
        outcome="ok",
        request_id="r1",
        session_id="s1",
        started_at=MONDAY,
        duration_ms=4.0,
        topic="thalweg.invocations.v1",
    )


def _entities(cursor: duckdb.DuckDBPyConnection) -> None:
    for entity_id, session_id, moment in (("f1", "s1", MONDAY), ("f2", "s2", TUESDAY + timedelta(seconds=5))):
        insert(
            cursor,
            "entities",
            entity_id=entity_id,
            label="Friction",
            text="The linter needs network",
            canonical_form="linter needs network",
            category="tooling",
            session_id=session_id,
            created_at=moment,
            source_event_id=f"line-{entity_id}",
            topic=DERIVED,
        )
    insert(
        cursor,
        "merges",
        record_id="f2",
        into_id="f1",
        label="Friction",
        category="tooling",
        how="canonical_form",
        merge_count=2,
        merged_at=TUESDAY,
        topic=DERIVED,
    )
    insert(
        cursor, "clusters", canonical_id="f1", label="Friction", record_count=2, last_merged_at=TUESDAY, topic=DERIVED
    )


def _vectors(cursor: duckdb.DuckDBPyConnection) -> None:
    model = {"space": "text/hashing-2", "model_id": "hashing-2", "dim": 2, "dtype": "float32", "is_trained": False}
    insert(cursor, "embeddings", label=1, record_id="j1", vector=stored_vector([1.0, 0.0]), topic=DERIVED, **model)
    insert(
        cursor,
        "embedding_failures",
        record_id="j2",
        space="text/hashing-2",
        reason="too large",
        failed_at=MONDAY,
        topic=DERIVED,
    )
    insert(cursor, "embedding_retries", record_id="j1", space="text/hashing-2", tries=2, topic=DERIVED)
    how = {
        "revision": "1",
        "max_tokens": 100,
        "pooling": "sum",
        "query_prefix": "",
        "document_prefix": "",
        "provider": "numpy",
    }
    insert(
        cursor,
        "spaces",
        embedder="hashing-2",
        state="live",
        registered_at=MONDAY,
        switched_at=MONDAY,
        topic=DERIVED,
        **model,
        **how,
    )


def _log(cursor: duckdb.DuckDBPyConnection) -> None:
    set_progress(cursor, materialise={MEMORY: {"3": 3}}, embed={MEMORY: {"3": 2}})
    insert(
        cursor,
        "duplicates",
        event_key="00000000-0000-0000-0000-000000000001",
        event_id="asked1",
        same_body=True,
        topic=MEMORY,
        offset=1,
    )
    insert(cursor, "misplaced_records", source="/gauge", topic=MEMORY, records=2)
    insert(
        cursor,
        "dead_letters",
        dead_letter_id="d1",
        topic=MEMORY,
        offset=2,
        stage="materialise",
        attempt=1,
        error_type="Poison",
        error_message="not JSON",
        first_failed_at=TUESDAY,
        value_bytes=3,
        dlq_topic=f"{MEMORY}.dlq",
        dlq_partition=3,
        dlq_offset=0,
    )


def _patterns(cursor: duckdb.DuckDBPyConnection) -> None:
    """Two patterns of three sessions; one of them was not met for a hundred days."""
    long_ago = MONDAY - timedelta(days=100)
    for name, last in (
        ("Recurring friction: tests are slow", long_ago),
        ("Recurring friction: the cache is cold", TUESDAY),
    ):
        identity = {"signal_id": f"pattern-{name[-4:]}", "description": name}
        for number in range(3):
            moment = last - timedelta(days=number)
            insert(cursor, "pattern_signals", session_id=f"p{number}", signalled_at=moment, **identity, topic=DERIVED)
    given_up = {
        "pattern_id": "pattern-slow",
        "last_occurred_at": long_ago,
        "reason": "not met for 90 days and 10 sessions",
    }
    insert(cursor, "pattern_deprecations", **given_up, deprecated_at=TUESDAY, topic=DERIVED)


def _cognitive(cursor: duckdb.DuckDBPyConnection) -> None:
    """A line compressed to an insight, an eviction, a run of the judges and of the golden test."""
    at = {"topic": MEMORY}
    insert(
        cursor,
        "l0_raw",
        id=1,
        session_id="talk",
        timestamp=MONDAY,
        speaker="user",
        content="Why is the build slow?",
        **at,
    )
    insight = {
        "content": "Cached wheels build faster",
        "source_ids": "[1]",
        "fidelity_score": 1.0,
        "fidelity_warning": False,
    }
    insert(cursor, "l2_insights", id=2, created_at=MONDAY, **insight, **at)
    insert(cursor, "l2_sources", insight_id=2, source_id=1, place=0, **at)
    gone = {"original_content": "Ask about the wheels", "importance": 0.5, "reason": "LRU_EVICTION", "displaced_by": 4}
    insert(
        cursor,
        "stale_memory",
        id=5,
        item_id=3,
        archived_at=TUESDAY,
        created_at=MONDAY,
        last_accessed=MONDAY,
        **gone,
        **at,
    )
    counts = {"evaluated_documents": 10, "failed_documents": 0, "kappa": 0.6, "kappa_degenerate": False}
    models = {"judge1_model": "offline-lexical-1", "judge2_model": "offline-semantic-1"}
    models |= {"mode": "dual", "cost_usd": 0.0}
    insert(cursor, "judge_runs", query_id=42, query="How do wheels help?", judged_at=TUESDAY, **counts, **models, **at)
    single = models | {
        "mode": "single",
        "judge1_model": "openai:gpt-4o",
        "judge2_model": "openai:gpt-4o-mini",
        "cost_usd": 0.02,
    }
    unsaid = {"evaluated_documents": 10, "failed_documents": 1, "kappa": None, "kappa_degenerate": False}
    insert(cursor, "judge_runs", query_id=43, query="How long is a build?", judged_at=TUESDAY, **unsaid, **single, **at)
    day = {
        "precision_at_5": 0.78,
        "drift_detected": False,
        "queries_tested": 50,
        "details": "Baseline needs 3 days of results; 0 recorded",
    }
    insert(cursor, "model_drift_log", date=TUESDAY.date(), query_breakdown="{}", completed_at=TUESDAY, **day, **at)
