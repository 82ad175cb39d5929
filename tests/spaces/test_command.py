"""`thalweg reembed` on a running node, as an operator and an agent see it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.database import Database
from tests.e2e.program import Program
from tests.node_process import Client, NodeProcess
from thalweg.control.requests import ask

pytestmark = pytest.mark.process

ONE, TWO = "text/hashing-384", "text/hashing-64"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    node = NodeProcess(tmp_path / "home").start()
    client = Client(node.home)
    for lesson in ("caches lie", "tests that sleep are slow", "names outlive their reasons", "a queue hides a delay"):
        client.call("journal_write", {"content": f"I realized that {lesson}.", "category": "insight"})
    node.settle()
    yield node
    node.stop()


def found(client: Client, text: str) -> list[str]:
    answer = client.call("journal_query", {"query": text})
    return [result["content"] for result in answer["results"]]


def test_the_model_changes_without_stopping_and_the_old_space_stays_until_it_is_dropped(node: NodeProcess) -> None:
    thalweg, client = Program(node.home), Client(node.home)
    report = thalweg("reembed", "--model", "hashing-64", "--json").json()
    assert report["live"] == TWO
    assert {row["space"]: (row["state"], row["vectors"]) for row in report["spaces"]} == {
        ONE: ("kept", 8),
        TWO: ("live", 8),
    }
    assert "names outlive" in found(client, "names outlive their reasons")[0]

    written = client.call("journal_write", {"content": "I realized that readers block.", "category": "insight"})
    thalweg.wait_for(written)
    assert "readers block" in found(client, "readers block")[0]
    status = node.settle()
    assert status["spaces"]["live"] == TWO and status["indexes"]["vector"]["count"] == 10
    checks = {check["name"]: check for check in json.loads(thalweg("doctor", "--json").out)}
    assert checks["space"]["ok"] and TWO in checks["space"]["detail"]

    dropped = thalweg("reembed", "--drop-old", "--json").json()
    assert {row["space"]: (row["state"], row["vectors"]) for row in dropped["spaces"]} == {
        ONE: ("dropped", 0),
        TWO: ("live", 10),
    }
    assert node.stop() == 0
    node.start()  # its setting still says `hashing`: the store knows better
    assert ask(node.home, "status")["embedder"]["model_id"] == "hashing-64"
    assert "readers block" in found(Client(node.home), "readers block")[0]


def test_what_cannot_be_is_refused_in_one_sentence(node: NodeProcess) -> None:
    thalweg = Program(node.home)
    for arguments, why in (
        (("--model", "hashing"), f"{ONE} is the live space already"),
        (("--model", "none"), "`none` is not a model"),
        (("--model", "hashing-3"), "8 to 8192"),
        (("--model", "some/model"), r"thalweg[models]"),
        (("--drop", ONE), "switch to another first"),
        (("--drop", "text/unknown"), "There is no space text/unknown to drop."),
    ):
        said = thalweg("reembed", *arguments)
        assert said.code == 1 and why in said.sentence, said
    assert thalweg("reembed", "--model", "hashing-64", "--drop-old").code == 2
    assert node.is_alive()


def test_a_live_model_that_is_gone_is_told_and_another_takes_its_place(node: NodeProcess) -> None:
    thalweg = Program(node.home)
    assert thalweg("reembed", "--model", "hashing-64").code == 0
    assert node.stop() == 0
    database = Database(node.home)
    # as if its folder had been removed
    database.cursor().execute("UPDATE spaces SET embedder = 'gone/model' WHERE state = 'live'")
    database.close()
    node.start()
    said = thalweg("status", "--json")
    deadline = time.monotonic() + 30
    while not (status := json.loads(said.out))["spaces"]["problem"]:
        assert time.monotonic() < deadline
        said = thalweg("status", "--json")
    assert status["status"] == "red" and "gone/model" in status["spaces"]["problem"]
    client = Client(node.home)
    thalweg.wait_for(client.call("journal_write", {"content": "I realized that readers block.", "category": "insight"}))
    report = thalweg("reembed", "--model", "hashing-32", "--json").json()
    assert report["live"] == "text/hashing-32" and report["problem"] is None
    assert node.settle()["status"] == "green"
    deadline = time.monotonic() + 30  # what was embedded in the moment of the switch follows
    while {row["space"]: row["vectors"] for row in ask(node.home, "spaces")["spaces"]}["text/hashing-32"] != 10:
        assert time.monotonic() < deadline
        time.sleep(0.1)
