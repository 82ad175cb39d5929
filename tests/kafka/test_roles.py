"""Roles on a real Kafka: an ingress node takes calls, workers run extract and embed, a node of role all what needs a
store.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.kafka.rig.broker import Broker
from tests.node_process import Client, NodeProcess
from thalweg.control.requests import ask

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]
PLAIN_STAGES = ("extract", "embed")


def test_an_ingress_node_takes_calls_while_workers_and_a_node_run_the_stages(
    own_broker: Broker, tmp_path: Path
) -> None:
    node = NodeProcess(tmp_path / "all", own_broker.url)
    ingress = NodeProcess(tmp_path / "in", own_broker.url, THALWEG_ROLE="ingress")
    workers = [NodeProcess(tmp_path / f"w{number}", own_broker.url, THALWEG_ROLE="worker") for number in (1, 2)]
    try:
        ingress.start()
        with closing(Client(ingress.home)) as client:
            first = client.insist(
                "journal_write", {"content": "I learned that tides turn.", "category": "insight"}, "first"
            )
            token = first["freshness"]
            assert ask(ingress.home, "status")["stages"]["extract"]["lag"] == 1
            for worker in workers:
                worker.start()
            ingress.wait_for(token, *PLAIN_STAGES)
            assert set(ask(workers[0].home, "status")["stages"]) == set(PLAIN_STAGES)

            deadline = time.monotonic() + 90
            while (behind := ask(ingress.home, "status"))["stages"]["patterns"]["state"] != "stuck":
                assert time.monotonic() < deadline, behind
                time.sleep(0.1)
            assert behind["status"] == "red" and any(
                "another node has to run it" in problem for problem in behind["problems"]
            )
            assert behind["stages"]["embed"]["lag"] == 0

            node.start()
            for number in range(30):
                said = {"content": f"Gauge {number} drifts by {number} mm.", "category": "insight"}
                token = client.insist("journal_write", said, f"gauge-{number}")["freshness"]
            for asked in (ingress, node):
                asked.wait_for(token, *PLAIN_STAGES, "dedup", "patterns")
            found = client.call("journal_query", {"query": "Gauge 17 drifts by 17 mm.", "limit": 1})
            assert "Gauge 17" in found["results"][0]["content"]
        settled = [seen.settle() for seen in (ingress, node)]
        assert [status["role"] for status in settled] == ["ingress", "all"]

        workers[0].kill()  # its partitions go to the others
        with closing(Client(ingress.home)) as client:
            token = client.insist("journal_write", {"content": "The worker is gone.", "category": "insight"}, "gone")[
                "freshness"
            ]
        for asked in (ingress, node):
            asked.wait_for(token, *PLAIN_STAGES)
            asked.settle()  # what other stages derive counts too
        tables = (
            "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM embeddings), "
            "(SELECT count(*) FROM dead_letters)"
        )
        assert ingress.sql(tables) == node.sql(tables)
        assert workers[1].stop() == 0, workers[1].log_tail()
        assert ingress.stop() == 0, ingress.log_tail()
    finally:
        for process in (node, ingress, *workers):
            if process.is_alive():
                process.kill()


def test_a_worker_says_in_one_line_what_it_cannot_do(tmp_path: Path) -> None:
    refusals = {
        ("--broker", f"sqlite://{tmp_path}/log.db"): "kafka://",
        ("--broker", "kafka://127.0.0.1:1", "--embedder", "none"): "needs a model",
    }
    for flags, said in refusals.items():
        command = [sys.executable, "-m", "thalweg", "up", "--role", "worker", "--home", str(tmp_path / "w"), *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
