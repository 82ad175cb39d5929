"""docker-compose.yml and Dockerfile agree with the program.

What they would run in containers runs as processes of this machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from mcp_ingress.door import REQUEST_ID_META
from streams.log.kafka import KafkaLog
from streams.topics import with_partitions
from tests.ingress.lines import calling
from tests.ingress.test_http import HEADERS
from tests.kafka.rig.broker import Broker, free_port
from thalweg.settings import load

TOKEN = "a-token-of-this-test"
ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
KAFKA, NODE = COMPOSE["services"]["kafka"], COMPOSE["services"]["thalweg"]


def environment_of_the_node() -> dict[str, str]:
    """As compose gives it to the node, with the token that the operator has set."""
    return {name: re.sub(r"^\$\{THALWEG_TOKEN:\?.*\}$", TOKEN, value) for name, value in NODE["environment"].items()}


def command_of_the_image() -> list[str]:
    """What the container runs: the Dockerfile's entry point with its command, which the compose file leaves alone."""
    assert "command" not in NODE and "entrypoint" not in NODE
    lines = dict(
        line.split(" ", 1)
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith(("ENTRYPOINT ", "CMD "))
    )
    words: list[str] = [*json.loads(lines["ENTRYPOINT"]), *json.loads(lines["CMD"])]
    assert words[0] == "thalweg"
    return words[1:]


def test_the_nodes_environment_is_settings_that_every_command_in_the_container_reads(tmp_path: Path) -> None:
    assert command_of_the_image() == [
        "up"
    ]  # a flag of `up` would be unknown to `docker compose run thalweg rebuild --from-log`
    settings = load({"home": str(tmp_path)}, environment_of_the_node())
    assert settings.broker_url == "kafka://kafka:9092"
    assert settings.http == "0.0.0.0:7733"
    assert settings.token == TOKEN
    assert settings.allowed_hosts in COMPOSE["services"]  # other services reach it by the name of this one


def test_the_node_reaches_the_broker_under_the_name_that_the_broker_advertises() -> None:
    inside = dict(listener.split("://") for listener in KAFKA["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(","))[
        "INSIDE"
    ]
    assert NODE["environment"]["THALWEG_BROKER"] == f"kafka://{inside}"
    assert NODE["depends_on"]["kafka"]["condition"] == "service_healthy"
    assert KAFKA["healthcheck"]["test"]


def test_every_volume_is_declared_and_every_port_stays_on_loopback() -> None:
    mounted = [volume.split(":")[0] for service in (KAFKA, NODE) for volume in service["volumes"]]
    assert sorted(mounted) == sorted(COMPOSE["volumes"])
    assert all(port.startswith("127.0.0.1:") for service in (KAFKA, NODE) for port in service["ports"])


def test_the_image_copies_only_what_exists_and_runs_as_a_user() -> None:
    text = (ROOT / "Dockerfile").read_text()
    copied = {name for names in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for name in names.split()}
    assert {"requirements.lock", "thalweg"} < copied and all((ROOT / name).exists() for name in copied)
    first, *others = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert first == "*" and {line.removeprefix("!") for line in others if line.startswith("!")} == copied
    assert re.search(r"^USER thalweg$", text, re.MULTILINE)
    assert "--require-hashes" in text


async def names_of_settings(broker: Broker) -> set[str]:
    """Every setting that this version of Kafka has."""
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        (answer,) = await admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, "1")])
    finally:
        await admin.close()
    ((_, _, _, _, entries),) = answer.resources
    return {entry[0] for entry in entries}


def broker_of_the_page(directory: Path) -> tuple[Broker, dict[str, str]]:
    """The image turns KAFKA_A_B into the property a.b; here a broker from jars gets them, on free ports of loopback."""
    given = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value for name, value in KAFKA["environment"].items()
    }
    inside, controller, outside = free_port(), free_port(), free_port()
    ports = {"9092": inside, "9093": controller, "29092": outside}
    moved = {
        name: re.sub(r"(?:kafka|localhost)?:(\d{4,5})\b", lambda at: f"127.0.0.1:{ports[at[1]]}", str(value))
        for name, value in given.items()
    }
    moved["log.dirs"] = str(directory / "data")
    return Broker(directory, inside, properties=moved), given


@pytest.mark.kafka
@pytest.mark.timeout(300)
async def test_a_broker_starts_with_these_settings_and_takes_the_topics(rig: None, tmp_path: Path) -> None:
    broker, given = broker_of_the_page(tmp_path / "broker")
    try:
        broker.start()
        log = KafkaLog(broker.bootstrap)
        await log.start()
        assert len(await log.create_topics(with_partitions(2))) == 8
        await log.stop()
        assert set(given) <= await names_of_settings(broker)  # Kafka itself passes over a name that it does not know
    finally:
        broker.kill()


def node_of_the_page(home: Path, broker: Broker, port: int) -> subprocess.Popen[bytes]:
    """The node's own command and environment as processes of this machine.

    Other places and ports, nothing else is changed.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("THALWEG_")}
    asked = {
        name: value.replace("kafka:9092", broker.bootstrap).replace("7733", str(port))
        for name, value in environment_of_the_node().items()
    }
    environment = {**own, **asked, "THALWEG_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "thalweg", *command_of_the_image()], env=environment, stdin=subprocess.DEVNULL
    )


def healthy(service: dict[str, Any], port: int) -> bool:
    """What the service's health check says when its port is this one."""
    how, program, flag, asks = service["healthcheck"]["test"]
    assert (how, program, flag) in (("CMD", "python", "-c"), ("CMD", "bash", "-c"))
    own_port = "7733" if service is NODE else "9092"
    assert own_port in asks
    command = [
        sys.executable if program == "python" else program,
        flag,
        asks.replace(own_port, str(port)).replace("$$", "$"),
    ]
    return subprocess.run(command, stderr=subprocess.DEVNULL, timeout=60).returncode == 0


@pytest.mark.kafka
@pytest.mark.timeout(400)
def test_the_two_services_run_answer_a_call_with_the_token_and_stop(rig: None, tmp_path: Path) -> None:
    broker, _ = broker_of_the_page(tmp_path / "broker")
    port = free_port()
    assert not healthy(KAFKA, broker.port) and not healthy(NODE, port)
    broker.start()
    assert healthy(KAFKA, broker.port)
    node = node_of_the_page(tmp_path / "home", broker, port)
    try:
        deadline = time.monotonic() + 120
        while not healthy(NODE, port):
            assert node.poll() is None and time.monotonic() < deadline, "the node's health check never passed"
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=60) as client:
            write = calling(
                1, "journal_write", {REQUEST_ID_META: "once"}, content="I learned that tides turn.", category="insight"
            )
            assert client.post("/mcp", json=write).status_code == 401
            deadline = time.monotonic() + 60
            while True:
                answer = client.post("/mcp", json=write, headers={"authorization": f"Bearer {TOKEN}"})
                if "spooled" not in answer.json()["result"]["structuredContent"] or time.monotonic() > deadline:
                    break  # a broker that has just begun may be too slow for its first write, which then follows
                time.sleep(0.2)
            assert answer.json()["result"]["structuredContent"]["success"] is True, answer.text
        node.send_signal(signal.SIGTERM)
        assert node.wait(60) == 0
    finally:
        node.kill()
        broker.kill()
