"""R5 with a whole node: its Kafka is killed under it, and comes back.

Writes are spooled, nothing is lost, nothing is there twice. And what a data directory remembers of its Kafka.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.crash.invariants import Ledger, check_all
from tests.crash.test_full_disk import FileSizeLimit, write
from tests.kafka.rig.broker import Broker
from tests.node_process import Client, NodeProcess
from thalweg.control.requests import ask

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


def test_writes_of_an_outage_are_spooled_and_follow_in_order_when_kafka_is_back(
    own_broker: Broker, tmp_path: Path
) -> None:
    node = NodeProcess(tmp_path / "node", own_broker.url).start()
    try:
        with closing(Client(node.home)) as client:

            def write(number: int, *, spooled: bool = False) -> dict[str, object]:
                said = {"content": f"Gauge {number} reads {number}.", "category": "insight"}
                return client.insist("journal_write", said, f"request-{number}", spooled=spooled)

            write(0)
            own_broker.kill()
            assert all(write(number, spooled=True)["degraded"] for number in range(1, 4))
            status = ask(node.home, "status")
            assert status["status"] == "red" and any("the log is down" in problem for problem in status["problems"])
            write(2, spooled=True)  # sent again while it is down: one effect
            own_broker.start()
            node.settle()
            write(4)
        node.settle()
        rows = node.sql('SELECT content FROM talos_journal ORDER BY "offset"')
        assert [content for (content,) in rows] == [f"Gauge {number} reads {number}." for number in range(5)]
        assert node.sql(
            "SELECT count(*), count(DISTINCT request_id) FROM outcomes WHERE request_id LIKE 'request-%'"
        ) == [(5, 5)]
        assert node.stop() == 0, node.log_tail()
    finally:
        if node.is_alive():
            node.kill()


def test_a_node_whose_kafka_is_gone_closes_its_store_and_ends_well_when_it_is_asked_to(
    own_broker: Broker, tmp_path: Path
) -> None:
    for time in range(3):  # how a Faust app meets the end of its broker is a matter of the moment
        node = NodeProcess(tmp_path / "node", own_broker.url).start()
        with closing(Client(node.home)) as client:
            client.insist("journal_write", {"content": f"Gauge {time} reads 1.", "category": "insight"}, f"a-{time}")
            node.settle()
            own_broker.kill()
            said = {"content": f"Gauge {time} reads 2.", "category": "insight"}
            client.insist("journal_write", said, f"b-{time}", spooled=True)
        assert node.stop() == 0, node.log_tail()
        assert not (node.home / "thalweg.duckdb.wal").exists(), "a store that is closed has no log of its own"
        own_broker.start()


def test_a_directory_remembers_its_kafka_and_why_its_last_node_ended(own_broker: Broker, tmp_path: Path) -> None:
    home = tmp_path / "node"

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "THALWEG_HOME": str(home), "THALWEG_EMBEDDER": "hashing"}
        done = subprocess.run(
            [sys.executable, "-m", "thalweg", *words], env=env, capture_output=True, text=True, timeout=120, check=False
        )
        assert "Traceback" not in done.stderr
        return done

    node = NodeProcess(home, own_broker.url).start()
    with closing(Client(home)) as client:
        client.insist("journal_write", {"content": "The gauge reads 1.", "category": "insight"}, "request-1")
    node.settle()
    assert node.stop() == 0, node.log_tail()
    assert json.loads(command("topics", "create", "--json").stdout) == {"created": [], "broker": own_broker.url}
    assert f"{own_broker.url} answers; 8 topics" in command("doctor").stdout
    assert json.loads(command("rebuild", "--from-log", "--json").stdout)["events"] > 0
    own_broker.kill()
    started = command("up")
    assert started.returncode == 2 and f"No Kafka broker answers at {own_broker.bootstrap}" in started.stderr
    status = json.loads(command("status", "--json").stdout)
    assert (status["broker"], status["last"]["ended"]) == (own_broker.url, "failed")
    assert status["last"]["failure"] in started.stderr and f"Its log is {own_broker.url}." in status["problems"]


def test_a_full_disk_under_the_store_ends_the_node_while_kafka_takes_the_writes_and_with_room_all_is_there(
    own_broker: Broker, tmp_path: Path
) -> None:
    disk, ledger = FileSizeLimit(tmp_path), Ledger()
    node = NodeProcess(disk.home, own_broker.url).start()
    try:
        node.settle()  # it has published before: the first one may be too slow for a write, which then is spooled
        client = Client(node.home)
        for number in range(5):
            assert write(client, ledger, number)["success"]
        node.settle()
        disk.fill(node, 64 * 1024)  # the node's own log may still grow
        with contextlib.suppress(OSError):  # the node ends: what it had not answered is unknown, and may be there
            for number in range(5, 200):
                write(client, ledger, number)
        assert node.died() == 1
        said = [line for line in node.log_tail().splitlines() if line.startswith("thalweg: the node stopped: ")]
        assert len(said) == 1 and "full" in said[0] and "Traceback" not in node.log_tail(), node.log_tail()
        node.start()
        check_all(node, ledger)
        assert node.stop() == 0, node.log_tail()
    finally:
        if node.is_alive():
            node.kill()
