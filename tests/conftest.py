"""Fixtures that the suites share: the brokers, and what is chosen when nothing is said."""

from __future__ import annotations

import fcntl
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from processors.embedding.loader import load_embedder
from tests.examples import load_profile
from tests.kafka.rig.broker import Broker
from tests.kafka.rig.shared import require_rig

load_profile()
gc.disable()  # while the tests are collected, which throws nothing away


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the default model's graph is made once for all test processes: copy it before you damage it."""
    shared = (
        tmp_path_factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else tmp_path_factory.getbasetemp()
    )
    cache = shared / "models"
    cache.mkdir(exist_ok=True)
    with (shared / "models.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        load_embedder("minilm", cache_dir=cache)
    return cache


@pytest.fixture(params=["sqlite", pytest.param("kafka", marks=pytest.mark.kafka)])
def broker_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str | None]:
    """Both brokers: None is the embedded log of the home; the Kafka broker is this test's own and empty."""
    if request.param == "sqlite":
        yield None
        return
    require_rig()
    broker = Broker(tmp_path / "broker")
    broker.start()
    yield broker.url
    broker.kill()


def pytest_collection_finish() -> None:
    """What was collected stays: no later collection of garbage looks through it again."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Tests that start nodes as processes are a suite of their own: the quick one stays quick.

    A search at random is never run again: what it found once it may not find twice.
    """
    for item in items:  # before pytest chooses by marks
        if "/tests/e2e/" in str(item.path) or item.path.name == "test_pump.py":
            item.add_marker(pytest.mark.process)
    yield
    for item in items:  # after Hypothesis has marked its tests
        if item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.flaky(reruns=0))
