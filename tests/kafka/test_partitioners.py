"""Producers of other languages put records where their keys belong, by the examples of docs/producers.md.

One that does not is named.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from streams.events import wire_type
from streams.topics import MEMORY
from tests.conformance.npm import installed
from tests.kafka.foreign import console_produce, line
from tests.kafka.rig.broker import Broker, java
from tests.node_process import NodeProcess
from thalweg.doctor.checks import Unsound
from thalweg.doctor.surroundings import _producers

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

PAGE = (Path(__file__).parents[2] / "docs" / "producers.md").read_text(encoding="utf-8")
RUN_S = 120.0
NAMESPACES = [f"team-{number}" for number in range(8)]
"""Of this many not all can lie right by chance."""
ENTRIES = (
    "SELECT namespace, content FROM talos_journal "
    "WHERE event_id IN (SELECT event_id FROM events WHERE source = '{}') ORDER BY ALL"
)


def example(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def run(*command: str | Path, **env: str) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_S, env={**os.environ, **env}, check=False
    )
    assert done.returncode == 0 and "ERROR" not in done.stderr, done.stderr[-2000:]


def test_the_examples_for_nodejs_and_the_console_write_where_the_key_belongs(
    own_broker: Broker, tmp_path: Path
) -> None:
    modules = installed("kafkajs@2.2.4")
    node = NodeProcess(tmp_path / "node", own_broker.url).start()
    try:
        program = tmp_path / "produce.js"
        program.write_text(example("javascript"))
        console = tmp_path / "bin" / "kafka-console-producer.sh"  # as it lies in a distribution of Kafka
        console.parent.mkdir()
        console.write_text(f'#!/bin/sh\nexec {shlex.join(java())} org.apache.kafka.tools.ConsoleProducer "$@"\n')
        console.chmod(0o755)
        path = f"{console.parent}{os.pathsep}{os.environ['PATH']}"
        for namespace in NAMESPACES:
            run(
                "node",
                program,
                own_broker.bootstrap,
                namespace,
                NODE_PATH=str(modules),
                KAFKAJS_NO_PARTITIONER_WARNING="1",
            )
        for namespace in NAMESPACES[:2]:
            script = (
                example("shell").replace("localhost:9092", own_broker.bootstrap).replace(" team ", f" {namespace} ")
            )
            run("sh", "-c", script, PATH=path)
        report = node.settle()
        assert node.sql(ENTRIES.format("/node")) == [(namespace, "The gauge drifts.") for namespace in NAMESPACES]
        assert node.sql(ENTRIES.format("/console")) == [
            (namespace, "The gauge drifts.") for namespace in NAMESPACES[:2]
        ]
        assert report["misplaced"] == [] and node.sql("SELECT count(*) FROM dead_letters") == [(0,)]
        assert node.stop() == 0, node.log_tail()
    finally:
        if node.is_alive():
            node.kill()


def test_a_producer_that_spreads_a_namespace_over_partitions_is_counted_and_named_and_its_records_are_applied(
    own_broker: Broker, tmp_path: Path
) -> None:
    node = NodeProcess(tmp_path / "node", own_broker.url).start()
    try:
        spreading = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
        entry = {"source": "/gauge", "type": wire_type("talos.journal.written")}
        lines = [
            line({"id": f"{n}", **entry}, "team", f'{{"content": "The gauge reads {n}.", "category": "insight"}}')
            for n in range(24)
        ]
        console_produce(own_broker, MEMORY.name, lines, partitioner_class=spreading, batch_size="1")
        node.wait_for({MEMORY.name: {}})
        with pytest.raises(AssertionError, match="the producer /gauge puts records on other partitions"):
            node.settle(timeout_s=20.0)  # all is applied, and the status stays red
        assert node.sql(ENTRIES.format("/gauge")) == sorted(("team", f"The gauge reads {n}.") for n in range(24))
        [(counted,)] = node.sql("SELECT records FROM misplaced_records WHERE source = '/gauge'")
        assert 12 < counted < 24
        with pytest.raises(Unsound, match=rf"/gauge .*\({counted} so far\)"):
            _producers(node.home)
        assert node.stop() == 0, node.log_tail()
        node.start()
        assert node.settle()["misplaced"] == [{"source": "/gauge", "records": counted, "is_recent": False}]
        assert node.stop() == 0, node.log_tail()
    finally:
        if node.is_alive():
            node.kill()
