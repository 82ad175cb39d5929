"""`thalweg import`: files become sessions.

Importing again changes nothing; what cannot be read is kept with its reason.
"""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import thalweg.example
from tests.crash.invariants import NOT_COMPARED, contents
from tests.e2e.program import Program
from tests.node_process import NodeProcess
from thalweg.control.requests import ask

pytestmark = pytest.mark.timeout(300)

EXAMPLE = str(Path(thalweg.example.__file__).parent / "session.jsonl")


def rows(program: Program) -> dict[str, list[str]]:
    """Every row of every table that an import may touch, with nothing under way."""
    import duckdb

    NodeProcess(program.home).settle()

    with duckdb.connect(ask(program.home, "snapshot", max_age_s=0.0)["path"], read_only=True) as store:
        found = contents(store)
    assert not NOT_COMPARED & set(found)
    return found


def test_importing_twice_changes_nothing(thalweg: Program, node: NodeProcess) -> None:
    first = thalweg("import", "claude-code", EXAMPLE, "--json").json()
    assert first["applied"] and first["events"] > 30 and first["unreadable"] == 1
    node.settle()  # vectors of turns are made behind the import
    before = rows(thalweg)
    again = thalweg("import", "claude-code", EXAMPLE, "--json").json()
    assert (again["events"], again["unreadable"], again["applied"]) == (first["events"], 1, True)
    assert first["new_lines"] > again["new_lines"] == again["records"] == 0
    after = rows(thalweg)
    assert {table: len(found) for table, found in after.items()} == {
        table: len(found) for table, found in before.items()
    }
    assert after == before


def test_the_line_that_is_cut_off_is_one_dead_letter_with_its_reason_and_bytes(
    thalweg: Program, node: NodeProcess
) -> None:
    for _ in range(2):
        assert thalweg("import", "claude-code", EXAMPLE, "--json").json()["applied"]
    node.settle()
    listed = thalweg("dlq", "list", "--json").json()
    assert listed["total"] == 1
    [letter] = listed["dead_letters"]
    assert (
        letter["stage"] == "import"
        and "cut off" in letter["error_message"]
        and "session.jsonl, line" in letter["error_message"]
    )
    shown = thalweg("dlq", "show", letter["dead_letter_id"]).json()
    assert shown["value"].encode() in Path(EXAMPLE).read_bytes()
    replayed = thalweg("dlq", "replay", "--all")
    assert replayed.code == 0 and "Replayed 0; 1 cannot be" in replayed.out
    node.settle()
    assert thalweg("dlq", "list", "--json").json()["total"] == 1


def test_a_subagent_is_a_session_that_names_its_parent(thalweg: Program, node: NodeProcess) -> None:
    thalweg("import", "claude-code", EXAMPLE, "--json").json()
    sessions = thalweg.sql("SELECT session_id, parent_session_id FROM sessions ORDER BY parent_session_id NULLS FIRST")
    parents = [session for session, parent in sessions if parent is None]
    assert len(parents) == 1
    assert [parent for _, parent in sessions if parent is not None] == parents * (len(sessions) - 1) and len(
        sessions
    ) > 1


def test_what_was_imported_can_be_asked_for(thalweg: Program, node: NodeProcess) -> None:
    thalweg("import", "claude-code", EXAMPLE, "--json").json()
    latencies = thalweg.sql("SELECT tool_name, calls FROM tool_call_latencies ORDER BY calls DESC")
    assert latencies and all(calls > 0 for _, calls in latencies)
    assert thalweg.sql("SELECT sum(output_tokens) > 0 FROM model_usage") == [[True]]
    refused = thalweg("sql", "DROP TABLE events")
    assert refused.code == 1 and refused.sentence


def test_an_import_starts_the_node_when_none_runs(thalweg: Program) -> None:
    report = thalweg("import", "claude-code", EXAMPLE, "--json").json()
    assert report["applied"]
    NodeProcess(thalweg.home).settle()
    assert thalweg("status", "--json").json()["status"] == "green"
    assert thalweg.sql("SELECT count(*) > 30 FROM session_events") == [[True]]


def test_sql_answers_from_the_store_when_no_node_runs(thalweg: Program, node: NodeProcess) -> None:
    thalweg("import", "claude-code", EXAMPLE, "--json").json()
    live = thalweg.sql("SELECT count(*) FROM session_events")
    assert node.stop() == 0
    assert thalweg.sql("SELECT count(*) FROM session_events") == live


def test_a_path_that_does_not_exist_and_a_folder_without_files_are_named(
    thalweg: Program, node: NodeProcess, tmp_path: Path
) -> None:
    missing = thalweg("import", "claude-code", str(tmp_path / "nowhere"))
    assert missing.code == 2 and "nowhere" in missing.err and "Traceback" not in missing.err
    (tmp_path / "empty").mkdir()
    empty = thalweg("import", "claude-code", str(tmp_path / "empty"))
    assert empty.code == 1 and "empty" in empty.sentence


def test_cloudevents_are_imported_as_what_they_are(thalweg: Program, node: NodeProcess, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    event = {
        "specversion": "1.0",
        "id": "e1",
        "source": "urn:other",
        "type": "thalweg.session.event.v1",
        "time": "2026-01-01T00:00:00Z",
        "data": {"session_id": "s1", "event_type": "user", "text": "Hello."},
    }
    file.write_bytes(orjson.dumps(event) + b"\n")
    thalweg("import", "cloudevents", str(file), "--json").json()
    assert thalweg.sql("SELECT session_id, text FROM session_events") == [["s1", "Hello."]]
