"""I6: what the stages' consumer groups have committed, against what the stages have published.

Read off the log, whose node may be dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from processors.frame.stage import Stage, stage_types
from streams.log import open_log
from streams.log.base import Log
from streams.positions import Partition, Position
from streams.progress import ProgressMark, read_progress
from streams.topics import DERIVED
from tests.node_process import NodeProcess
from tests.patience import PATIENCE_S
from thalweg.process.stage_apps import by_group


@dataclass(frozen=True)
class Commits:
    """For each stage the next offsets that its group had committed, and every mark that lay on the log after that, with
    its place.
    """

    committed: Mapping[type[Stage], Mapping[Partition, int]]
    marks: Sequence[tuple[Position, ProgressMark]]


def read_commits(node: NodeProcess) -> Commits:
    """Of the node's log, by clients of their own."""
    return asyncio.run(_read(node.broker or f"sqlite://{node.home / 'log.db'}"))


async def _read(broker: str) -> Commits:
    log = open_log(broker)
    await log.start()
    try:
        committed: dict[type[Stage], Mapping[Partition, int]] = {}
        # type: ignore[misc]
        for group, members in by_group(broker, [SimpleNamespace(stage=stage) for stage in stage_types()]).items():
            offsets = await log.committed(group, {member.stage.source.name for member in members})
            for member in members:
                committed[member.stage] = {
                    at: offset for at, offset in offsets.items() if at.topic == member.stage.source.name
                }
        return Commits(committed, await _marks(log))
    finally:
        await log.stop()


async def _marks(log: Log) -> list[tuple[Position, ProgressMark]]:
    left = {at: end for at, end in (await log.end_offsets([DERIVED.name])).items() if end}
    reader = await log.reader(dict.fromkeys(left, 0))
    marks = []
    async with asyncio.timeout(2 * PATIENCE_S):
        while left:
            for record in await reader.read(timeout_s=1.0, max_records=1000):
                progress = read_progress(record)
                if progress is not None:
                    marks.append((record.position, progress))
                if record.offset + 1 >= left.get(record.position.at, 0):
                    left.pop(record.position.at, None)
    await reader.close()
    return marks


def committed_is_published(commits: Commits) -> int:
    """I6: what a stage's group has committed, the stage has marked as processed, which it does in the record of the
    last fact that follows from it. Of a stage that follows another it is what that one had marked below the committed
    offset. Returns how many offsets were compared.
    """
    compared = 0
    for stage, offsets in commits.committed.items():
        reached = furthest(commits, stage.name)
        for at, offset in offsets.items():
            wanted = {at: offset} if stage.follows is None else furthest(commits, stage.follows, Position(*at, offset))
            for source, least in wanted.items():
                assert reached.get(source, 0) >= least, (
                    f"I6: {stage.name} has committed {at} up to {offset}, but marked {source} up to "
                    f"{reached.get(source, 0)} of {least}"
                )
                compared += 1
    return compared


def furthest(commits: Commits, stage: str, below: Position | None = None) -> dict[Partition, int]:
    """How far a stage has marked each of its sources; with `below` only what lies in that partition before it."""
    reached: dict[Partition, int] = {}
    for place, progress in commits.marks:
        if progress.stage == stage and (below is None or (place.at == below.at and place.offset < below.offset)):
            for source in progress.sources:
                reached[source.at] = max(source.offset, reached.get(source.at, 0))
    return reached
