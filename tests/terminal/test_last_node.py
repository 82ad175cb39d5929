"""A data directory remembers the log of its last node, and what that node said when it failed."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from storage.directory_lock import LOCK_NAME, lock_directory
from streams.errors import LogUnavailable
from thalweg.cli import cli
from thalweg.process.serve import keep_failure
from thalweg.settings import Settings, load
from thalweg.status import last_node
from thalweg.status.offline import offline_status

KAFKA, OTHER = "kafka://127.0.0.1:1", "kafka://127.0.0.1:2"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    last_node.write(tmp_path, {"broker": KAFKA, "started_at": "2026-11-22T10:00:00Z"})
    return tmp_path


def test_a_command_means_the_log_of_the_directorys_last_node_and_what_is_said_explicitly_wins(home: Path) -> None:
    assert load({"home": home}, {}).broker_url == KAFKA
    assert load({"home": home / "new"}, {}).broker_url == f"sqlite://{home / 'new' / 'log.db'}"
    assert load({"home": home}, {"THALWEG_BROKER": OTHER}).broker_url == OTHER
    assert load({"home": home, "broker": OTHER}, {}).broker_url == OTHER
    (home / "thalweg.toml").write_text(f'broker = "{OTHER}"\n')
    assert load({"home": home}, {}).broker_url == OTHER


def test_a_copied_or_moved_directory_means_its_own_log_and_never_that_of_the_place_it_came_from(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    last_node.write(first, {"broker": load({"home": first}, {}).broker_url})
    shutil.copytree(first, second)
    assert load({"home": first}, {}).broker_url == f"sqlite://{first / 'log.db'}"
    assert load({"home": second}, {}).broker_url == f"sqlite://{second / 'log.db'}"
    assert last_node.disagreement(second, f"sqlite://{second / 'log.db'}") is None
    assert f"used sqlite://{second / 'log.db'}" in (last_node.disagreement(second, KAFKA) or "")


def test_a_log_that_is_not_the_last_nodes_is_said_with_both_names(home: Path) -> None:
    environment = {"THALWEG_HOME": str(home), "THALWEG_EMBEDDER": "hashing"}
    other = CliRunner().invoke(cli, ["status"], env={**environment, "THALWEG_BROKER": OTHER})
    assert f"The last node of {home} used {KAFKA}; {OTHER} is meant now" in other.stderr
    same = CliRunner().invoke(cli, ["status"], env={**environment, "THALWEG_BROKER": KAFKA})
    assert same.stderr == "" and f"Its log is {KAFKA}." in " ".join(same.stdout.split())
    remembered = CliRunner().invoke(cli, ["status"], env={**environment, "THALWEG_BROKER": None})
    assert (remembered.stderr, remembered.stdout) == ("", same.stdout)


def test_an_error_names_the_log_that_was_remembered(home: Path) -> None:
    refused = CliRunner().invoke(cli, ["topics", "create"], env={"THALWEG_HOME": str(home), "THALWEG_BROKER": None})
    assert refused.exit_code == 1 and "127.0.0.1:1" in refused.stderr and "THALWEG_BROKER" in refused.stderr


def test_the_last_sentence_of_a_node_that_failed_is_kept_until_the_next_one_runs(home: Path) -> None:
    handle, _ = lock_directory(home)
    keep_failure(LogUnavailable("Kafka is gone.", retry_after_ms=0), Settings(home=home))
    os.close(handle)  # the process ends with its number left in the lock
    report = offline_status(home, KAFKA)
    assert (report["last"]["ended"], report["last"]["failure"], report["last"]["pid"]) == (
        "failed",
        "Kafka is gone.",
        os.getpid(),
    )
    assert report["problems"][0].startswith(f"No node runs on {home}: the last one ended at 20")
    assert report["problems"][0].endswith("Z: Kafka is gone.") and report["broker"] == KAFKA
    assert load({"home": home}, {}).broker_url == KAFKA
    last_node.write(home, {"broker": KAFKA})
    assert offline_status(home, KAFKA)["last"]["ended"] == "killed"
    assert stat.S_IMODE((home / last_node.NAME).stat().st_mode) == 0o600


def test_a_start_that_is_refused_because_another_node_runs_leaves_what_that_one_keeps(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = last_node.read(home)
    monkeypatch.setattr("thalweg.process.serve.lock_holder", lambda lock: "4711" if lock == home / LOCK_NAME else None)
    keep_failure(LogUnavailable("The data directory is in use.", retry_after_ms=0), Settings(home=home))
    assert last_node.read(home) == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"broker": 7}', b"\xff"])
def test_a_damaged_file_is_as_good_as_none(home: Path, content: bytes) -> None:
    (home / last_node.NAME).write_bytes(content)
    assert load({"home": home}, {}).broker_url.startswith("sqlite://")
    assert last_node.disagreement(home, OTHER) is None
