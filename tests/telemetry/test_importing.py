"""The import: files to records on the log, bounded, repeatable, with what is unreadable in the dead letters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams.clock import SystemClock
from streams.codec import decode
from streams.dlq import read_letter
from streams.errors import LogUnavailable, Poison, Refused
from streams.log.base import Log, Outgoing, Record
from streams.log.sqlite import SqliteLog
from streams.positions import Partition, Position
from streams.topics import MEMORY, TELEMETRY, TOPICS
from tests.telemetry.reading import FIXTURES
from thalweg.example import session_path
from thalweg.importing.importer import ImportProgress, ImportReport, import_files, reread
from thalweg.importing.sources import MAX_LINE_BYTES


def imported(
    tmp_path: Path,
    kind: str,
    *paths: Path,
    times: int = 1,
    seen: list[ImportProgress] | None = None,
    ignore_reason: Callable[[str], str | None] = lambda path: None,
) -> tuple[ImportReport, list[Record]]:
    """The last report, and all records of a real log after importing."""

    async def run() -> tuple[ImportReport, list[Record]]:
        log = SqliteLog(tmp_path / "log.sqlite")
        await log.start()
        try:
            await log.create_topics(TOPICS)
            for _ in range(times):
                report = await import_files(
                    log,
                    kind,
                    list(paths),
                    namespace="ana",
                    clock=SystemClock(),
                    on_progress=(seen if seen is not None else []).append,
                    ignore_reason=ignore_reason,
                )
            return report, await _all_records(log)
        finally:
            await log.stop()

    return asyncio.run(run())


async def _all_records(log: Log) -> list[Record]:
    ends = await log.end_offsets([topic.name for topic in TOPICS])
    reader = await log.reader(dict.fromkeys(ends, 0))
    records: list[Record] = []
    while len(records) < sum(ends.values()):
        found = await reader.read(timeout_s=5.0, max_records=1000)
        assert found
        records += found
    await reader.close()
    return records


def on(topic: str, records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.topic == topic]


def lines(path: Path, *entries: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"".join((entry if isinstance(entry, bytes) else orjson.dumps(entry)) + b"\n" for entry in entries)
    )
    return path


def entry(number: int, content: str = "hello") -> dict[str, Any]:
    message = {"role": "user", "content": content}
    return {
        "type": "user",
        "sessionId": "s",
        "uuid": f"u-{number}",
        "timestamp": "2026-01-01T00:00:00Z",
        "message": message,
    }


@pytest.mark.parametrize("batch_events", [1, 500])
def test_new_lines_are_the_same_however_the_events_are_cut_into_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_events: int
) -> None:
    """A summary whose line never comes is sent at the end of the file, as a further event of the last line."""
    monkeypatch.setattr("thalweg.importing.importer.BATCH_EVENTS", batch_events)
    summary = {"type": "summary", "summary": "Trucks", "leafUuid": "of another file"}
    report, _ = imported(tmp_path, "claude-code", lines(tmp_path / "a.jsonl", summary, entry(1), entry(2)))
    assert (report.lines, report.events, report.new_lines) == (3, 3, 2)


def test_the_example_becomes_records_that_the_other_side_accepts(tmp_path: Path) -> None:
    report, records = imported(tmp_path, "claude-code", session_path())
    events = [logged for record in on(TELEMETRY.name, records) for logged in decode(record)]
    assert (report.files, report.lines, report.events, report.unreadable) == (1, 46, 45, 1)
    assert (len(events), report.records, report.bytes) == (45, 2, session_path().stat().st_size)
    assert dict(report.freshness) == {Partition(record.topic, record.partition): 1 for record in records}


def test_importing_twice_gives_the_same_identities(tmp_path: Path) -> None:
    _, records = imported(tmp_path, "claude-code", session_path(), times=2)
    first, second = on(TELEMETRY.name, records)
    assert first.value == second.value
    assert dict(first.headers)["ce_id"] == dict(second.headers)["ce_id"]
    letters = [read_letter(record) for record in on(TELEMETRY.dlq.name, records)]
    assert len(letters) == 2
    assert letters[0].id == letters[1].id


def test_an_unreadable_line_is_buried_with_its_bytes_and_where_it_stood(tmp_path: Path) -> None:
    path = lines(tmp_path / "in" / "s.jsonl", entry(1), b'{"type": "us', b"", entry(2))
    report, records = imported(tmp_path, "claude-code", path)
    (record,) = on(TELEMETRY.dlq.name, records)
    letter = read_letter(record)
    assert (report.lines, report.events, report.unreadable) == (4, 2, 1)
    assert (record.value, record.key) == (b'{"type": "us', b"ana")
    assert (letter.position, letter.stage) == (Position("import:claude-code", 0, 2), "import")
    assert letter.error_message.startswith("s.jsonl, line 2: not JSON, the line is cut off")
    telemetry = on(TELEMETRY.name, records)
    assert record.partition == telemetry[0].partition


def test_bad_lines_of_the_same_number_in_two_files_are_two_letters(tmp_path: Path) -> None:
    lines(tmp_path / "in" / "a" / "s.jsonl", b"{1")
    lines(tmp_path / "in" / "b" / "s.jsonl", b"{2")
    _, records = imported(tmp_path, "claude-code", tmp_path / "in")
    assert len({read_letter(record).id for record in on(TELEMETRY.dlq.name, records)}) == 2


def test_a_buried_line_can_be_read_anew(tmp_path: Path) -> None:
    _, records = imported(tmp_path, "claude-code", lines(tmp_path / "s.jsonl", b"{"))
    (letter,) = on(TELEMETRY.dlq.name, records)
    with pytest.raises(Poison, match="not JSON"):
        reread(letter)
    mended = Record(
        letter.topic, letter.partition, letter.offset, 0, letter.key, orjson.dumps(entry(1)), letter.headers
    )
    assert [event.id for event in reread(mended)] == ["u-1"]


def test_a_folder_is_searched_for_the_formats_files_and_a_file_is_taken_once(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    lines(folder / "p" / "a.jsonl", entry(1))
    lines(folder / "p" / "sub" / "b.jsonl", entry(2))
    lines(folder / "notes.txt", b"no session")
    report, _ = imported(tmp_path, "claude-code", folder, folder / "p" / "a.jsonl")
    assert (report.files, report.events, report.unreadable) == (2, 2, 0)


def test_many_lines_are_a_few_records_and_progress_reaches_the_end(tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", *(entry(number) for number in range(1201)))
    seen: list[ImportProgress] = []
    report, records = imported(tmp_path, "claude-code", path, seen=seen)
    assert [len(decode(record)) for record in on(TELEMETRY.name, records)] == [500, 500, 201]
    assert (report.records, report.files, seen[-1].bytes_read) == (3, 1, seen[-1].bytes_total)
    assert [progress.events for progress in seen] == sorted(progress.events for progress in seen)


def test_a_line_that_is_too_long_is_buried_by_its_start_and_the_next_is_read(tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", b"x" * (MAX_LINE_BYTES + 5), entry(1))
    report, records = imported(tmp_path, "claude-code", path)
    (record,) = on(TELEMETRY.dlq.name, records)
    assert (report.lines, report.events, report.unreadable) == (2, 1, 1)
    assert f"{MAX_LINE_BYTES + 6} bytes" in read_letter(record).error_message


def test_an_event_too_large_for_a_record_is_buried_and_its_neighbours_are_not(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t", "name": "Write", "input": {"content": "x" * 5_000_000}}
    large = entry(2) | {"type": "assistant", "message": {"role": "assistant", "content": [use]}}
    report, records = imported(tmp_path, "claude-code", lines(tmp_path / "s.jsonl", entry(1), large, entry(3)))
    (record,) = on(TELEMETRY.dlq.name, records)
    assert (report.events, report.unreadable) == (2, 1)
    assert orjson.loads(record.value or b"") == large


@pytest.mark.parametrize("indent", [False, True])
def test_an_otlp_file_may_be_lines_or_one_document(tmp_path: Path, indent: bool) -> None:
    span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "n", "startTimeUnixNano": "1767225600000000000"}
    document = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    path = tmp_path / "trace.json"
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 if indent else None))
    report, _ = imported(tmp_path, "otlp-json", path)
    assert (report.events, report.unreadable) == (1, 0)


def test_cloud_events_go_to_the_topic_of_their_type(tmp_path: Path) -> None:
    note = {"specversion": "1.0", "id": "1", "source": "/lab", "time": "2026-01-01T00:00:00Z"}
    session = note | {"type": "thalweg.session.event.v1", "data": {"session_id": "s", "event_type": "note"}}
    opened = note | {
        "id": "2",
        "type": "thalweg.talos.session.opened.v1",
        "data": {"session_id": "s", "goal": "g", "goal_id": "g-1"},
    }
    report, records = imported(tmp_path, "cloudevents", lines(tmp_path / "e.jsonl", session, opened))
    assert (report.events + report.unreadable, report.records) == (2, 2)
    assert len(on(TELEMETRY.name, records)) == 1
    assert len(on(MEMORY.name, records)) + len(on(TELEMETRY.dlq.name, records)) == 1


@pytest.mark.parametrize("file", ["codex_rollout.jsonl", "codex_bare.jsonl"])
def test_a_codex_file_is_imported_whole(tmp_path: Path, file: str) -> None:
    report, _ = imported(tmp_path, "codex", FIXTURES / file)
    assert (report.events, report.unreadable) == (report.lines, 0)


@pytest.mark.parametrize(
    ("kind", "name", "word"),
    [("no-such", ".", "no-such"), ("claude-code", "gone.jsonl", "gone.jsonl"), ("codex", ".", "No codex file")],
)
def test_what_the_caller_can_mend_is_refused_with_a_sentence(tmp_path: Path, kind: str, name: str, word: str) -> None:
    with pytest.raises(Refused, match=word):
        imported(tmp_path, kind, tmp_path / name)


def test_a_log_that_does_not_answer_ends_the_import_and_leaves_no_task() -> None:
    class SilentLog(SqliteLog):
        async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
            raise LogUnavailable("The log did not acknowledge.")

    async def run() -> int:
        with pytest.raises(LogUnavailable):
            await import_files(
                SilentLog("unused"), "claude-code", [session_path()], namespace="ana", clock=SystemClock()
            )
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1
