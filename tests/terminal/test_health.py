"""What `status` sees over time: a part that lags is first working, then stuck; topics of others count as ours do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from storage.applied import AppliedPositions
from streams.log.base import Outgoing
from streams.log.sqlite import SqliteLog
from streams.positions import Partition
from streams.topics import MEMORY
from thalweg.health import BEHIND_S, Health


def states(health: Health, now: float) -> dict[str, str]:
    return {part: watch.state(now) for part, watch in health._watches.items()}


async def test_an_otlp_topic_that_is_not_applied_is_seen_as_stuck(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db")
    await log.start()
    try:
        spans = replace(MEMORY, name="otlp_spans", partitions=1)
        await log.create_topics([spans])
        await log.publish([Outgoing("otlp_spans", b"k", b"{}", (), 0)])
        now = [0.0]
        clock = SimpleNamespace(monotonic=lambda: now[0])
        applied = AppliedPositions()
        health = Health(SimpleNamespace(log=log, followed=["otlp_spans"], applied=applied, runners=[], elsewhere=[], clock=clock))  # type: ignore[arg-type]
        await health.observe()
        assert states(health, now[0]) == {"topic otlp_spans": "working"}
        now[0] = BEHIND_S + 1
        await health.observe()
        assert states(health, now[0]) == {"topic otlp_spans": "stuck"}
        applied.advance({Partition("otlp_spans", 0): 1}, {})
        await health.observe()
        assert states(health, now[0]) == {"topic otlp_spans": "ok"}
    finally:
        await log.stop()
