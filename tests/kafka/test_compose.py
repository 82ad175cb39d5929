"""docker-compose.yml and Dockerfile agree with the program; what they would run in containers runs as processes of this machine."""

from __future__ import annotations

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

from mcp_ingress.calls import REQUEST_ID_META
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


def flags() -> dict[str, str]:
    verb, *rest = NODE["command"]
    assert verb == "up"
    return {name.removeprefix("--"): value for name, value in zip(rest[::2], rest[1::2], strict=True)}


def test_the_nodes_flags_are_settings_that_the_program_accepts(tmp_path: Path) -> None:
    settings = load({"home": str(tmp_path), **flags()}, {name: "token" for name in NODE["environment"]})
    assert settings.broker_url == "kafka://kafka:9092"
    assert settings.http == "0.0.0.0:7733"
    assert settings.token == "token"


def test_the_node_reaches_the_broker_under_the_name_that_the_broker_advertises() -> None:
    inside = dict(listener.split("://") for listener in KAFKA["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(","))["INSIDE"]
    assert flags()["broker"] == f"kafka://{inside}"
    assert NODE["depends_on"]["kafka"]["condition"] == "service_healthy"
    assert KAFKA["healthcheck"]["test"]


def test_every_volume_is_declared_and_every_port_stays_on_loopback() -> None:
    mounted = [volume.split(":")[0] for service in (KAFKA, NODE) for volume in service["volumes"]]
    assert sorted(mounted) == sorted(COMPOSE["volumes"])
    assert all(port.startswith("127.0.0.1:") for service in (KAFKA, NODE) for port in service["ports"])


def test_the_image_copies_only_what_exists_and_runs_as_a_user() -> None:
    text = (ROOT / "Dockerfile").read_text()
    for name in re.findall(r"^COPY (\w+) \1$", text, re.MULTILINE):
        assert (ROOT / name).is_dir()
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
    given = {name.removeprefix("KAFKA_").lower().replace("_", "."): value for name, value in KAFKA["environment"].items()}
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
    """The node's own command and environment as processes of this machine: other places and ports, nothing else is changed."""
    command = [word.replace("kafka:9092", broker.bootstrap).replace("7733", str(port)) for word in NODE["command"]]
    own = {name: value for name, value in os.environ.items() if not name.startswith("THALWEG_")}
    asked = {name: re.sub(r"^\$\{\w+:\?.*\}$", TOKEN, value) for name, value in NODE["environment"].items()}
    environment = {**own, **asked, "THALWEG_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen([sys.executable, "-m", "thalweg", *command], env=environment, stdin=subprocess.DEVNULL)


def healthy(port: int) -> bool:
    """What the node's health check says."""
    how, program, *arguments = NODE["healthcheck"]["test"]
    assert (how, program) == ("CMD", "python")
    done = subprocess.run([sys.executable, *(word.replace("7733", str(port)) for word in arguments)], stderr=subprocess.DEVNULL, timeout=60)
    return done.returncode == 0


@pytest.mark.kafka
@pytest.mark.timeout(400)
def test_the_two_services_run_answer_a_call_with_the_token_and_stop(rig: None, tmp_path: Path) -> None:
    broker, _ = broker_of_the_page(tmp_path / "broker")
    port = free_port()
    broker.start()
    node = node_of_the_page(tmp_path / "home", broker, port)
    try:
        deadline = time.monotonic() + 120
        while not healthy(port):
            assert node.poll() is None and time.monotonic() < deadline, "the node's health check never passed"
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=60) as client:
            write = calling(1, "journal_write", {REQUEST_ID_META: "once"}, content="I learned that tides turn.", category="insight")
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
