"""The JSON Lines mirror of the agents' telemetry: what is in it, when it rotates, how long it is kept."""

from __future__ import annotations

import gzip
from datetime import timedelta
from pathlib import Path

import orjson

from processors.telemetry.mirror import TelemetryMirror
from tests.processors.harness import Store, event
from tests.talos.node import SetClock

ATTRIBUTES = {"talos.session.id": "2026-01-05-a", "talos.tool.name": "read"}
CALL = event("session.tool_call", {"trace_id": "sess-2026-01-05-a", "span_id": "s1", "attributes": ATTRIBUTES})


def test_a_line_has_the_envelope_of_the_specification(tmp_path: Path) -> None:
    TelemetryMirror(tmp_path, SetClock()).write([CALL])
    assert [orjson.loads(line) for line in (tmp_path / "events.jsonl").read_bytes().splitlines()] == [
        {
            "timestamp": "2026-01-05T10:00:00Z",
            "event_type": "session.tool_call",
            "trace_id": "sess-2026-01-05-a",
            "span_id": "s1",
            "attributes": ATTRIBUTES,
        }
    ]


def test_a_new_day_and_a_full_file_rotate_and_old_files_go(tmp_path: Path) -> None:
    clock = SetClock()
    mirror = TelemetryMirror(tmp_path, clock, max_bytes=10)
    mirror.write([CALL])
    mirror.write([CALL, CALL])
    mirror.wait_packed()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events-2026-01-05-1.jsonl.gz", "events.jsonl"]
    assert len(gzip.decompress((tmp_path / "events-2026-01-05-1.jsonl.gz").read_bytes()).splitlines()) == 1
    clock.time += timedelta(days=31)
    mirror.write([CALL])
    mirror.wait_packed()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.jsonl"]


def test_a_disk_that_takes_nothing_hinders_nothing(tmp_path: Path) -> None:
    (tmp_path / "telemetry").write_text("in the way")
    TelemetryMirror(tmp_path / "telemetry", SetClock()).write([CALL])


def test_only_the_agents_own_telemetry_is_mirrored_and_a_repeat_once() -> None:
    store = Store()
    line = event("session.event", {"session_id": "a", "event_type": "user", "text": "secret"}, id="line")
    reduced = store.publish(CALL, CALL, line, topic="thalweg.telemetry.v1")
    copied = [logged.event.id for logged in reduced.applied if logged.event.type in TelemetryMirror.types]
    assert copied == [CALL.id] != [logged.event.id for logged in reduced.applied]
