"""The power fails: whatever was acknowledged is on disk, in the log or in the spool, and in order.

A run of a program is cut at every acknowledgement and between them; `tests/crash/power.py` says what is left then.
THALWEG_SEED chooses which of the unsynced operations the disk had come to.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_ingress.spool import Spool
from streams.codec import decode
from streams.errors import LogUnavailable
from streams.log.sqlite import SqliteLog
from streams.topics import MEMORY, TOPICS
from tests.crash.invariants import Ledger, check_all
from tests.crash.power import Disk, Entry, Power
from tests.crash.power_writer import WEAKNESSES, connect_without_sync, text_of
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

WRITES = 200
SEED = int(os.environ.get("THALWEG_SEED", "7"))


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the tests themselves write into a directory that was cut is thrown away.

    It need not reach this machine's disk.
    """
    monkeypatch.setattr(SqliteLog, "_connect", connect_without_sync)
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def run_writer(power: Power, count: int, *weakness: str) -> None:
    home, journal = str(power.root / "home"), power.env["THALWEG_POWER_JOURNAL"]
    command = [sys.executable, "-m", "tests.crash.power_writer", home, journal, str(count), *weakness]
    subprocess.run(command, env={**os.environ, **power.env}, check=True, timeout=300)


def cuts(power: Power, at: Path) -> Iterator[tuple[int, Path]]:
    """The directory after a cut at each acknowledgement, where only what was synced is left, and after one at some
    moment until the next, where some of the rest is left too; with each how many writes were acknowledged.
    """
    chance, disk, acknowledged = random.Random(SEED), Disk(power.root), 0
    entries = list(power.entries())
    marks = [place for place, entry in enumerate(entries) if entry.kind == "k"]
    between = {chance.randint(first, last) for first, last in zip([0, *marks], [*marks, len(entries) - 1], strict=True)}
    for place, entry in enumerate(entries):
        disk.take(entry)
        if entry.kind == "k":
            acknowledged += 1
            yield acknowledged, disk.cut(at)
        if place in between:
            yield acknowledged, disk.cut(at, chance)


async def kept(home: Path) -> list[int]:
    """The numbers of the writes that the next node finds, in the order in which they take effect."""
    log = SqliteLog(home / "log.db")
    found: dict[int, None] = {}
    try:
        await log.start()
        await log.create_topics(TOPICS)
        await Spool(home / "spool").drain(log)
        ends = await log.end_offsets([MEMORY.name])
        reader = await log.reader(dict.fromkeys(ends, 0))
        for _ in range(sum(ends.values())):
            [record] = await reader.read(timeout_s=PATIENCE_S, max_records=1)
            [logged] = decode(record)
            text = logged.event.data["content"]
            found.setdefault(int(text.split()[0]))
            assert text == text_of(int(text.split()[0])), "a write is there in part"
    except (LogUnavailable, sqlite3.Error):  # the file is damaged
        return []
    finally:
        await log.stop()
    return list(found)


async def lost(power: Power, at: Path) -> tuple[int, dict[int, list[int]]]:
    """How often the power was cut, and what was acknowledged then and is not there, or not in its place, for each cut
    that lost anything.
    """
    count, losses = 0, {}
    for count, (acknowledged, left) in enumerate(cuts(power, at), start=1):
        (left / "home").mkdir(exist_ok=True)
        found = await kept(left / "home")
        if found[:acknowledged] != list(range(acknowledged)):
            losses[count] = [
                number for number, place in enumerate([*found, *[-1] * WRITES][:acknowledged]) if number != place
            ]
        shutil.rmtree(left)
    return count, losses


@pytest.mark.usefixtures("no_sync")
async def test_nothing_acknowledged_is_lost_or_out_of_order_when_the_power_fails_after_any_of_200_writes(
    tmp_path: Path,
) -> None:
    power = Power(tmp_path)
    run_writer(power, WRITES)
    count, losses = await lost(power, tmp_path / "cut")
    assert count > 2 * WRITES - 10 and losses == {}


@pytest.mark.usefixtures("no_sync")
@pytest.mark.parametrize("weakness", WEAKNESSES)
async def test_what_is_not_synced_is_lost(weakness: str, tmp_path: Path) -> None:
    """Else the test above could not fail."""
    power = Power(tmp_path)
    run_writer(power, 40, weakness)
    _, losses = await lost(power, tmp_path / "cut")
    assert losses


async def test_the_journal_misses_nothing_that_the_log_and_the_spool_do(tmp_path: Path) -> None:
    power = Power(tmp_path)
    run_writer(power, 40)
    disk = Disk(power.root)
    for entry in power.entries():
        disk.take(entry)
    real = {str(path.relative_to(power.root)): path.read_bytes() for path in power.root.rglob("*") if path.is_file()}
    assert disk.now() == real and {"home/log.db", "home/spool"} <= real.keys()


LIVES, CALLS = 2, 10
"""How often the node is started before its power fails, and how many calls it answers each time."""


BY_JOURNAL = ("log.db", "log.db-wal", "thalweg.duckdb", "thalweg.duckdb.wal", "store.lock")
"""What a node writes through libc. Its indexes do not all: to the cut they are damaged, and built again."""


def is_recovered(node: NodeProcess) -> bool:
    return any(".damaged-" in path.name for path in node.home.iterdir())


def answer_calls(power: Power) -> dict[str, str]:
    """A node that is started, asked and stopped, twice; what it answered, each answer marked in the journal."""
    answered: dict[str, str] = {}
    node = NodeProcess(power.root, **power.env)
    for life in range(LIVES):
        node.start()
        client = Client(node.home)
        for number in range(life * CALLS, (life + 1) * CALLS):
            said = {"content": f"I realized that case {number} is real.", "category": "insight"}
            answered[f"r-{number}"] = str(client.insist("journal_write", said, f"r-{number}")["entry_id"])
            power.mark(f"r-{number}")
        client.close()
        # a kill between an operation and its entry in the journal would tell them apart
        assert node.stop() == 0, node.log_tail()
    return answered


def moments(entries: list[Entry]) -> dict[int, random.Random | None]:
    """Places of the journal at which the power is cut, and what decides on the rest that is left.

    At the first start, at an acknowledgement, while the node stops and starts again, and at the last acknowledgement.
    """
    chance = random.Random(SEED)
    marks = [place for place, entry in enumerate(entries) if entry.kind == "k"]
    between = chance.randrange(marks[CALLS - 1], marks[CALLS])
    return {chance.randrange(marks[0]): chance, marks[CALLS // 2]: None, between: chance, marks[-1]: None}


def test_a_node_whose_power_fails_starts_again_with_all_that_it_answered(tmp_path: Path) -> None:
    """Its store is in the state of the cut too, and is believed, or moved aside and built again."""
    power = Power(tmp_path)
    answered = answer_calls(power)
    entries, disk, known = list(power.entries()), Disk(power.root), dict[str, str]()
    cut_at = moments(entries)
    for place, entry in enumerate(entries):
        disk.take(entry)
        if entry.kind == "k":
            known[entry.name] = answered[entry.name]
        if place in cut_at:
            left = NodeProcess(disk.cut(tmp_path / f"cut-{place}", cut_at[place])).start()
            print(
                f"cut at {place} of {len(entries)}, {len(known)} calls answered, store moved aside: "
                f"{is_recovered(left)}"
            )
            check_all(left, Ledger(answered=dict(known), unknown=set(answered)))
            assert left.stop() == 0, left.log_tail()
    seen = disk.now()
    real = {name: path.read_bytes() for name in BY_JOURNAL if (path := power.root / name).exists()}
    assert {name: seen[name] for name in BY_JOURNAL if name in seen} == real and {
        "log.db",
        "thalweg.duckdb",
    } <= real.keys()
