"""TLS and passwords on a real broker: a node works end to end.

What is wrong is said in one line that says what to do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.kafka.rig.secure import PASSWORD, SecureBroker, make_certificates
from tests.kafka.rig.shared import require_rig
from tests.node_process import Client, NodeProcess
from tests.patience import Tries
from thalweg.control.requests import ask

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    require_rig()
    broker = SecureBroker(tmp_path_factory.mktemp("secure"))
    broker.start()
    yield broker
    broker.kill()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN"])
def test_a_node_works_over_tls_with_a_password_from_call_to_search(
    broker: SecureBroker, tmp_path: Path, mechanism: str
) -> None:
    node = NodeProcess(tmp_path / "node", broker.secure_url, **broker.environment(mechanism=mechanism)).start()
    try:
        with closing(Client(node.home)) as client:
            written = client.insist(
                "journal_write", {"content": f"Sealed by {mechanism}.", "category": "insight"}, "sealed"
            )
            node.wait_for(written["freshness"], "extract", "embed", "dedup")
            found = client.call("journal_query", {"query": f"Sealed by {mechanism}.", "limit": 1})
            assert mechanism in found["results"][0]["content"]
        assert PASSWORD not in node.log_tail() + str(ask(node.home, "status"))
        assert node.stop() == 0, node.log_tail()
    finally:
        if node.is_alive():
            node.kill()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"password": "wrong"}, "THALWEG_KAFKA_PASSWORD"),
        ({"password": "wrong", "mechanism": "PLAIN"}, "THALWEG_KAFKA_PASSWORD"),
        ({"username": "nobody"}, "'nobody'"),
        ({"ca_file": "another"}, "THALWEG_KAFKA_CA_FILE"),
        ({"ca_file": ""}, "THALWEG_KAFKA_CA_FILE"),
        ({"protocol": "SSL"}, "security settings"),
        ({"protocol": "PLAINTEXT"}, "security settings"),
    ],
    ids=lambda value: " ".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else None,
)
def test_what_does_not_let_us_in_is_one_line_that_says_what_to_do(
    broker: SecureBroker, tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    if changes.get("ca_file") == "another":
        changes = {"ca_file": str(make_certificates(tmp_path / "other")[0])}
    environment = {**os.environ, **broker.environment(**changes), "THALWEG_EMBEDDER": "none"}
    for arguments in (["up"], ["topics", "create"]) if said == "THALWEG_KAFKA_PASSWORD" else (["up"],):
        command = [
            sys.executable,
            "-m",
            "thalweg",
            *arguments,
            "--home",
            str(tmp_path / "home"),
            "--broker",
            broker.secure_url,
        ]
        # a broker that is slow for once does not say why it refuses, before the look for it ends
        tries = Tries(f"says {said}", enough=1)
        while tries.are_needed:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150, check=False)
            assert done.returncode in (1, 2), done.stderr
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            assert len(lines) == 1 and PASSWORD not in done.stderr and "Traceback" not in done.stderr, done.stderr
            tries.note(said in lines[0], lines[0])
