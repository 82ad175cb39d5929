"""`thalweg bench … --broker kafka://…`: the same figures as on the embedded log; no time is asserted."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.kafka.rig.broker import Broker
from thalweg.cli import cli

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

INGEST = ["ingest", "--accepted", "50", "--n", "40", "--rate", "5", "--seconds", "1"]
WRITE = ["write", "--callers", "1,2", "--n", "4"]


@pytest.mark.parametrize("arguments", [WRITE, INGEST], ids=["write", "ingest"])
def test_on_an_empty_broker_every_figure_is_told_and_a_used_one_is_refused(
    arguments: list[str], own_broker: Broker
) -> None:
    command = ["bench", *arguments, "--embedder", "hashing", "--json", "--broker", own_broker.url]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert report["settings"]["broker"] == own_broker.url
    assert report["figures"] and all(figure["value"] > 0 for figure in report["figures"].values())

    again = CliRunner().invoke(cli, command)
    assert again.exit_code == 1 and "a broker of its own" in again.output
