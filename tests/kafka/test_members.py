"""R6 and I6 on a real Kafka: members join, leave, die and wake as zombies under load.

What the group commits is always derived already.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from processors.memory.stages.embed import Embed
from processors.talos.stages.extract import Extract
from streams.errors import LogUnavailable, ThalwegError
from streams.log.kafka import KafkaLog
from streams.positions import Partition
from streams.progress import read_progress
from streams.topics import DERIVED, MEMORY
from tests.crash.invariants import check_all
from tests.crash.load import Load
from tests.crash.recovery import TAKEN_OVER_S, recovery_s
from tests.kafka.rig.broker import Broker
from tests.node_process import Client, NodeProcess
from tests.processes import pause, resume
from thalweg.process.stage_apps import GROUP

pytestmark = [pytest.mark.kafka, pytest.mark.crash, pytest.mark.timeout(900)]

STAGES = (Extract.name, Embed.name)
"""Stages that read the memory topic: the group's offset there is what all of them have acknowledged."""
JOINS = 2
"""How often a node passes `in_revoke` while it joins: once for each of its groups, with nothing to give up."""
JOINED, TRIES = "joined", 5
LOAD_S = 120.0
"""How long a slow machine may take for a few calls while members come and go."""
TURNS = int(os.environ.get("THALWEG_TURNS", "4"))
TURN_S = 3.0
"""A member joins and leaves within each turn; `THALWEG_TURNS=20` for a minute of it."""
ZOMBIE_S = 8.0
"""Longer than the session's time-out of 6 s, so that its partitions are given to the other member meanwhile."""


@dataclass(frozen=True)
class Sample:
    """What the group had committed, and how far the derived topic reached right after."""

    committed: Mapping[Partition, int]
    derived: Mapping[Partition, int]


class Sampler(threading.Thread):
    """Looks at the group's offsets all through the run, with an admin client of its own."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="sampler", daemon=True)
        self.samples: list[Sample] = []
        self.marks: dict[tuple[str, Partition], list[tuple[Partition, int, int]]] = {}
        self._address = bootstrap
        self._asked_to_stop = threading.Event()

    def run(self) -> None:
        asyncio.run(self._sample())

    def finish(self) -> None:
        self._asked_to_stop.set()
        self.join(150)
        assert not self.is_alive(), "the sampler hangs"

    async def _sample(self) -> None:
        log = KafkaLog(self._address)
        await log.start()
        while not self._asked_to_stop.is_set():
            with contextlib.suppress(LogUnavailable):  # too slow to answer for once
                committed = await log.committed(GROUP, [MEMORY.name])
                self.samples.append(Sample(committed, await log.end_offsets([DERIVED.name])))
            await asyncio.sleep(0.1)
        await self._read_marks(log)
        await log.stop()

    async def _read_marks(self, log: KafkaLog) -> None:
        """Every progress mark on the log, with its place."""
        left = {at: end for at, end in (await log.end_offsets([DERIVED.name])).items() if end}
        reader = await log.reader(dict.fromkeys(left, 0))
        async with asyncio.timeout(120):
            while left:
                for record in await reader.read(timeout_s=1.0, max_records=1000):
                    progress = read_progress(record)
                    for source in progress.sources if progress else ():
                        assert progress is not None
                        place = (record.position.at, record.offset, source.offset)
                        self.marks.setdefault((progress.stage, source.at), []).append(place)
                    if record.offset + 1 >= left.get(record.position.at, 0):
                        left.pop(record.position.at, None)
        await reader.close()

    def check(self) -> int:
        """I6: when an offset was committed, every stage's mark for it was on the log.

        How many offsets were compared.
        """
        compared = 0
        for sample in self.samples:
            for at, offset in sample.committed.items():
                for stage in STAGES:
                    marked = [
                        reached
                        for place, lies, reached in self.marks.get((stage, at), [])
                        if lies < sample.derived.get(place, 0)
                    ]
                    assert offset <= max(marked, default=0), (
                        f"I6: {at} committed up to {offset}, but {stage} has marked {max(marked, default=0)}"
                    )
                    compared += 1
        return compared


def up_with_all_partitions(node: NodeProcess, failpoint: str) -> None:
    """Start, until every stage of both groups has derived something.

    A join that took more turns than it does on a quick machine, and so met the failpoint with nothing to give up, is
    made again.
    """
    for _ in range(TRIES):
        node.launch(THALWEG_FAILPOINT=failpoint)
        try:
            node.wait_ready()
            with closing(Client(node.home)) as client:
                written = client.insist("journal_write", {"content": "It has joined.", "category": "insight"}, JOINED)
            node.wait_for(written["freshness"], *STAGES, "dedup", "patterns")
            return
        except (AssertionError, OSError, ThalwegError):
            if node.is_alive():
                raise
    pytest.fail(f"it died {TRIES} times while it joined, with nothing to give up")


@pytest.mark.parametrize("group", [1, 2])
def test_a_member_that_dies_while_it_gives_partitions_up_costs_and_repeats_nothing(
    own_broker: Broker, tmp_path: Path, group: int
) -> None:
    node = NodeProcess(tmp_path / "one", own_broker.url)
    other = NodeProcess(tmp_path / "other", own_broker.url)
    try:
        up_with_all_partitions(node, f"in_revoke:{JOINS + group}:kill")
        with Load(node, callers=2, seed=group) as load:
            load.ledger.ask(JOINED)
            load.wait_for(20, LOAD_S)
            other.start()  # the one that has all partitions has to give some of them up
            assert node.died() == -9, node.log_tail()
            node.start()
            load.wait_for(20, LOAD_S)
        node.settle()
        check_all(node, load.ledger)
        check_all(other, load.ledger)
        for member in (other, node):
            assert member.stop() == 0, member.log_tail()
    finally:
        for member in (node, other):
            if member.is_alive():
                member.kill()


def test_members_join_leave_die_and_wake_as_zombies_and_nothing_is_lost_or_committed_too_early(
    own_broker: Broker, tmp_path: Path
) -> None:
    node = NodeProcess(tmp_path / "one", own_broker.url).start()
    other = NodeProcess(tmp_path / "other", own_broker.url)
    sampler = Sampler(own_broker.bootstrap)
    sampler.start()
    try:
        with Load(node, callers=2, seed=6) as load:
            load.wait_for(10, LOAD_S)
            for number in range(TURNS):
                turn_ends = time.monotonic() + TURN_S
                other.start()
                load.wait_for(5, LOAD_S)
                (other.stop if number % 2 else other.kill)()
                load.wait_for(5, LOAD_S)
                while time.monotonic() < turn_ends:
                    load.wait_for(1, LOAD_S)
            other.start()
            load.wait_for(10, LOAD_S)
            assert other.process is not None
            pause(other.process)
            asleep_until = time.monotonic() + ZOMBIE_S
            while time.monotonic() < asleep_until:
                load.wait_for(1, LOAD_S)
            resume(other.process)
            load.wait_for(20, LOAD_S)
            taken_over = [recovery_s(node, other.kill)]  # of the two one or the other has the partition of the load
            other.start()
            load.wait_for(10, LOAD_S)
            taken_over.append(recovery_s(other, node.kill))
            node.start()
        node.settle()
        check_all(node, load.ledger)
        check_all(other, load.ledger)
        sampler.finish()
        compared = sampler.check()
        print(f"processed {taken_over} s after a member died for good")
        print(
            f"{len(load.ledger.answered)} writes, {len(sampler.samples)} samples, {compared} committed offsets compared"
        )
        assert compared > 20 and max(taken_over) < TAKEN_OVER_S
        other.stop()
        assert node.stop() == 0, node.log_tail()
    finally:
        for member in (node, other):
            if member.is_alive():
                member.kill()
