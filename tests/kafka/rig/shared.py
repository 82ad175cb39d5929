"""One broker for all tests that only need some broker; started when the first of them asks, stopped at the end."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.kafka.rig.broker import Broker
from tests.kafka.rig.jars import RigUnavailable, library


@functools.cache
def shared_broker() -> Broker:
    """The session's broker; use a topic of your own. Raises RigUnavailable."""
    directory = Path(tempfile.mkdtemp(prefix="thalweg-kafka-"))
    broker = Broker(directory)
    broker.start()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    atexit.register(broker.kill)
    return broker


def require_rig() -> None:
    """Skip the test with the reason when this machine has no rig; fail instead when THALWEG_REQUIRE_KAFKA=1."""
    try:
        library()
    except RigUnavailable as error:
        if os.environ.get("THALWEG_REQUIRE_KAFKA") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))
