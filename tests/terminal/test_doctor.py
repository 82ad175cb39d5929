"""`thalweg doctor`: a sound installation passes; each possible fault is found, in a sentence and with its remedy."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from processors.embedding.model_files import find_model
from streams.log import open_log
from streams.topics import with_partitions
from tests.node_process import NodeProcess
from thalweg.cli import cli
from thalweg.doctor.checks import Diagnosis
from thalweg.doctor.doctor import examine
from thalweg.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", embedder="hashing")


def found(settings: Settings, name: str) -> Diagnosis:
    """The one check of that name; every other one must pass, so that a fault is found once and in its place."""
    checks = {check.name: check for check in examine(settings)}
    assert [other for other, check in checks.items() if not check.ok and other != name] == []
    assert checks[name].ok or checks[name].remedy
    return checks[name]


def make_log(settings: Settings, partitions: int) -> None:
    settings.home.mkdir(mode=0o700, exist_ok=True)

    async def make() -> None:
        log = open_log(settings.broker_url)
        await log.start()
        await log.create_topics(with_partitions(partitions))
        await log.stop()

    asyncio.run(make())


def distribution(tmp_path: Path, name: str, brings: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another distribution, as pip would have left it."""
    info = tmp_path / "site" / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "top_level.txt").write_text(f"{brings}\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


def test_a_sound_installation_passes_every_check_and_nothing_is_made_in_the_data_directory(settings: Settings) -> None:
    assert [check.name for check in examine(settings) if not check.ok] == []
    assert not settings.home.exists()


@pytest.mark.process
def test_the_default_model_is_verified_and_loaded(settings: Settings) -> None:
    model = found(replace(settings, embedder="minilm"), "model")
    assert model.ok and "384 dimensions, trained" in model.detail and "checksums right" in model.detail


def test_an_untrained_embedder_is_called_untrained(settings: Settings) -> None:
    assert "untrained" in found(settings, "model").detail
    assert "keywords" in found(replace(settings, embedder="none"), "model").detail


def test_a_model_whose_bytes_are_not_the_official_ones_is_found(settings: Settings, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    files = find_model(tmp_path / "cache")
    (folder / "model.safetensors").symlink_to(files.weights)
    (folder / "tokenizer.json").write_bytes(files.tokenizer.read_bytes() + b" ")
    model = found(replace(settings, embedder="minilm", model_path=str(folder)), "model")
    assert not model.ok and "tokenizer.json" in model.detail and "--embedder none" in model.detail


def test_a_second_distribution_with_one_of_the_everyday_names_is_named(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "river-tools", "streams", monkeypatch)
    packages = found(settings, "packages")
    assert not packages.ok and packages.detail == "The import package streams is also brought by river-tools."


def test_an_extension_package_of_duckdb_is_named(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "duckdb_extension_vss", "duckdb_extension_vss", monkeypatch)
    duckdb = found(settings, "duckdb")
    assert not duckdb.ok and "duckdb-extension-vss" in duckdb.detail


def test_another_version_of_a_pinned_requirement_is_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "thalweg.doctor.installation.metadata.requires",
        lambda name: ["faust-streaming[extra]==0.0.1", "click>=8", 'x==1; extra == "y"'],
    )
    pins = found(settings, "pinned versions")
    assert not pins.ok and "works with 0.0.1 only" in pins.detail


def test_a_library_that_does_not_import_is_a_finding_and_not_a_traceback(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    hnswlib = found(settings, "hnswlib")
    assert not hnswlib.ok and "hnswlib" in hnswlib.detail and "compiler" in hnswlib.remedy


def test_every_codec_that_a_kafka_producer_may_choose_is_tried_and_those_that_fail_are_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "gzip, snappy, lz4, zstd are read" in found(settings, "codecs").detail
    for module in ("aiokafka.codec.has_zstd", "aiokafka.codec.has_snappy"):
        monkeypatch.setattr(module, lambda: False)
    codecs = found(settings, "codecs")
    assert (
        not codecs.ok
        and "compresses with snappy, zstd cannot be read" in codecs.detail
        and "requirements.lock" in codecs.remedy
    )


def test_a_data_directory_that_is_a_file_is_found(settings: Settings) -> None:
    settings.home.write_text("")
    checks = {check.name: check for check in examine(settings)}
    assert not checks["data directory"].ok and "is a file" in checks["data directory"].detail


def test_too_little_room_is_found(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.doctor.surroundings.MIN_FREE_BYTES", 10**18)
    assert "GB left" in found(settings, "data directory").detail


def test_an_owner_that_does_not_answer_is_named_and_a_lock_file_that_nobody_holds_is_no_owner(
    settings: Settings,
) -> None:
    settings.home.mkdir(mode=0o700)
    lock = settings.home / "store.lock"
    lock.write_text("4711\n")
    assert found(settings, "owner").ok
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        owner = found(settings, "owner")
    assert not owner.ok and "4711" in owner.detail


def test_a_log_with_other_partitions_than_the_setting_is_found(settings: Settings) -> None:
    make_log(settings, partitions=3)
    assert found(replace(settings, partitions=3), "log").ok
    log = found(settings, "log")
    assert not log.ok and "3 partitions" in log.detail and "12" in log.detail


def test_what_is_missing_of_the_collectors_topics_is_named_with_the_command_that_makes_it(settings: Settings) -> None:
    make_log(settings, partitions=12)
    assert found(settings, "otlp topics").ok
    settings = replace(settings, otlp_topics=True)
    absent = found(settings, "otlp topics")
    assert (
        not absent.ok
        and "otlp_spans, otlp_logs, otlp_metrics" in absent.detail
        and "thalweg topics create --otlp" in absent.detail
    )
    made = CliRunner().invoke(cli, ["topics", "create", "--otlp"], env={"THALWEG_HOME": str(settings.home)})
    assert made.exit_code == 0 and f"3 topics were created on {settings.broker_url}." in made.output
    assert found(settings, "otlp topics").ok


def test_a_log_file_that_is_none_is_found(settings: Settings) -> None:
    settings.home.mkdir(mode=0o700)
    (settings.home / "log.db").write_bytes(b"nonsense" * 1000)
    assert not found(settings, "log").ok


def test_a_broker_that_is_not_there_is_found(settings: Settings) -> None:
    log = found(replace(settings, broker="kafka://127.0.0.1:1"), "log")
    assert not log.ok and "127.0.0.1:1" in log.detail and "broker" in log.remedy


def test_a_clock_that_is_behind_what_is_stored_is_found(settings: Settings) -> None:
    make_log(settings, partitions=12)
    os.utime(settings.home / "log.db", (time.time() + 7200,) * 2)
    clock = found(settings, "clock")
    assert not clock.ok and "log.db" in clock.detail


def test_the_command_ends_with_1_when_something_is_wrong_and_prints_findings_as_json(tmp_path: Path) -> None:
    environment = {"THALWEG_EMBEDDER": "hashing", "THALWEG_HOME": str(tmp_path / "home")}
    sound = CliRunner().invoke(cli, ["doctor", "--json"], env=environment)
    assert sound.exit_code == 0 and all(check["ok"] for check in json.loads(sound.output))
    wrong = CliRunner().invoke(
        cli, ["doctor", "--json"], env=environment | {"THALWEG_EMBEDDER": "minilm", "THALWEG_MODEL_PATH": str(tmp_path)}
    )
    assert wrong.exit_code == 1
    [failing] = [check for check in json.loads(wrong.output) if not check["ok"]]
    assert failing["name"] == "model" and failing["remedy"]


@pytest.mark.process
def test_beside_a_running_node_every_check_passes_and_the_node_is_named(settings: Settings) -> None:
    node = NodeProcess(settings.home).start()
    assert node.process is not None
    assert f"process {node.process.pid}" in found(settings, "owner").detail
    assert node.stop() == 0


def test_a_data_directory_that_others_may_open_is_narrowed_at_the_next_start_and_one_that_they_own_is_unsound(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.home.mkdir()
    settings.home.chmod(0o750)
    check = found(settings, "data directory")
    assert check.ok
    note = "(open to other users: 750; the next start of a node narrows it)"
    assert check.detail.startswith(f"{settings.home} {note}, writable")
    settings.home.chmod(0o700)
    monkeypatch.setattr("thalweg.doctor.surroundings.os.geteuid", lambda: os.getuid() + 1)
    assert found(settings, "data directory").detail.startswith(f"{settings.home} belongs to another user")
