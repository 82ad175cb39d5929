"""R1 and R2: kill -9 at random under load, and at each failpoint.

Then every invariant holds, and a rebuild gives the same.

The random seed and the schedule are printed. THALWEG_KILLS sets how many random kills, THALWEG_SEED which,
THALWEG_PASSES at which pass of a failpoint.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from streams.failpoints import NAMES
from tests.crash.commits import committed_is_published, read_commits
from tests.crash.invariants import check_all, indexes_at_rest_hold_the_rows, live, rebuild_equals_live
from tests.crash.load import Load
from tests.crash.recovery import RECOVERED_S, recovery_s
from tests.node_process import NodeProcess
from tests.patience import PATIENCE_S, Tries

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]

KILLS = int(os.environ.get("THALWEG_KILLS", "20"))
PASSES = [int(nth) for nth in os.environ.get("THALWEG_PASSES", "1,2,17").split(",")]
SEED = int(os.environ.get("THALWEG_SEED", "7"))
RECURRING = [
    name
    for name in NAMES
    if name
    not in (
        "in_revoke",
        "mid_index_save",
        "after_rename",
        "mid_reembed",
        "mid_index_rebuild",
        "mid_timer",
        "mid_view",
        "mid_features",
    )
]
"""Failpoints that batches pass.

The others lie in saving and rebuilding an index, in re-embedding, in building views, in what timers publish and in
giving partitions up.
"""


def soon(failpoint: str, nth: int) -> int:
    """Which pass it is to be: of what is rare under load, batches that bury something and dreams, the third at most."""
    return min(nth, 3) if failpoint in ("after_bury", "mid_dream") else nth


def a_node(tmp_path: Path, broker_url: str | None) -> NodeProcess:
    """One that also follows what an OpenTelemetry Collector writes."""
    return NodeProcess(tmp_path / "home", broker_url, THALWEG_OTLP_TOPICS="1")


def wait_for_turns(node: NodeProcess, timeout_s: float = 2 * PATIENCE_S) -> None:
    """Until every turn has its vector, for which nothing else waits: else they come between two looks."""
    deadline = time.monotonic() + timeout_s
    while missing := node.sql(
        "SELECT count(*) AS missing FROM turns t "
        "WHERE NOT EXISTS (FROM turn_embeddings e SEMI JOIN live_spaces USING (space) WHERE e.label = t.label) "
        "HAVING missing > 0"
    ):
        assert time.monotonic() < deadline, missing
        time.sleep(0.2)


def rebuilt(node: NodeProcess) -> None:
    """I8: stop, delete the store, replay the log, compare."""
    wait_for_turns(node)
    node.settle()
    with node.store() as store:
        before = live(store)
    assert node.stop() == 0, node.log_tail()
    indexes_at_rest_hold_the_rows(node.home)
    done = subprocess.run(
        [sys.executable, "-m", "thalweg", "rebuild", "--from-log"], env=node.env, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr.decode()
    node.start()
    node.settle()
    with node.store() as store:
        rebuild_equals_live(before, store)


def test_random_kills_under_load_lose_nothing_and_repeat_nothing(broker_url, tmp_path):
    chance = random.Random(SEED)
    node = a_node(tmp_path, broker_url).start()
    schedule = [round(chance.uniform(0.0, 0.6), 3) for _ in range(KILLS)]
    print(f"seed {SEED}, kills after {schedule} s of load")
    with Load(node, callers=3, seed=SEED) as load:
        for pause in schedule:
            load.wait_for(1)
            load.wait(pause)
            node.kill()
            committed_is_published(read_commits(node))
            node.start()
        load.wait_for_all()
    counts = check_all(node, load.ledger)
    print(f"{len(load.ledger.answered)} calls answered, {load.sources.counts}, rows {counts}")
    rebuilt(node)
    node.stop()


def test_what_lay_on_the_log_at_a_kill_is_processed_by_every_stage_15_seconds_later(broker_url, tmp_path):
    node = a_node(tmp_path, broker_url).start()
    tries = Tries(f"nothing that lay on the log at a kill lags {RECOVERED_S:g} s later")
    with Load(node, callers=2, seed=15) as load:
        while tries.are_needed:
            load.wait_for(20)
            took = recovery_s(node, node.kill, node.start)
            tries.note(took < RECOVERED_S, f"{took:.1f} s")
    check_all(node, load.ledger)
    node.stop()


@pytest.mark.parametrize("nth", PASSES)
@pytest.mark.parametrize("failpoint", RECURRING)
def test_a_kill_at_each_failpoint_loses_nothing_and_repeats_nothing(failpoint, nth, broker_url, tmp_path):
    node = a_node(tmp_path, broker_url)
    node.start()
    node.stop()
    with Load(node, callers=2, seed=nth) as load:
        node.launch(THALWEG_FAILPOINT=f"{failpoint}:{soon(failpoint, nth)}:kill")
        assert load.died(node) == -9, node.log_tail()
        committed_is_published(read_commits(node))
        node.start()
        load.wait_for(10)
    check_all(node, load.ledger)
    node.stop()


@pytest.mark.parametrize("failpoint", [name for name in RECURRING if name != "mid_dream"])  # a dream ends, not its node
def test_a_failure_at_each_failpoint_ends_the_node_with_a_sentence_and_loses_nothing(failpoint, broker_url, tmp_path):
    node = a_node(tmp_path, broker_url).start(THALWEG_FAILPOINT=f"{failpoint}:{soon(failpoint, 17)}:raise")
    with Load(node, callers=2, seed=17) as load:
        assert load.died(node) == 1, node.log_tail()
        assert node.log_tail().splitlines()[-1] == f"thalweg: the node stopped: FailpointReached: {failpoint}"
        committed_is_published(read_commits(node))
        node.start()
        load.wait_for(10)
    check_all(node, load.ledger)
    node.stop()


def test_a_kill_while_partitions_are_given_up_loses_nothing(broker_url, tmp_path):
    node = a_node(tmp_path, broker_url)
    node.start()
    node.stop()
    with Load(node, callers=2, seed=4) as load:
        node.launch(THALWEG_FAILPOINT="in_revoke:1:kill")
        assert load.died(node) == -9, node.log_tail()
        committed_is_published(read_commits(node))
        node.start()
        load.wait_for(10)
    check_all(node, load.ledger)
    node.stop()


SAVING = ["mid_index_save", "after_rename"]


@pytest.mark.parametrize("nth", PASSES)
@pytest.mark.parametrize("failpoint", SAVING)
def test_a_kill_while_an_index_is_saved_under_load_leaves_an_index_that_is_rebuilt_or_whole(
    failpoint, nth, broker_url, tmp_path
):
    """A save is rare; here one follows another a second later, which is how often the node looks whether one is due."""
    node = a_node(tmp_path, broker_url).start(THALWEG_FAILPOINT=f"{failpoint}:{nth}:kill", THALWEG_INDEX_SAVE_S="0.1")
    with Load(node, callers=2, seed=nth) as load:
        assert load.died(node) == -9, node.log_tail()
        committed_is_published(read_commits(node))
        node.start()
        load.wait_for(10)
    check_all(node, load.ledger)
    node.stop()


@pytest.mark.parametrize("failpoint", SAVING)
def test_a_kill_while_a_stopping_node_saves_its_indexes_leaves_an_index_that_is_rebuilt_or_whole(
    failpoint, broker_url, tmp_path
):
    node = a_node(tmp_path, broker_url).start(THALWEG_FAILPOINT=f"{failpoint}:1:kill")
    with Load(node, callers=2, seed=3) as load:
        load.wait_for(20)
    node.process.terminate()
    assert node.died() == -9, node.log_tail()
    node.start()
    check_all(node, load.ledger)
    node.stop()


def test_a_stage_that_raises_crashes_the_node_with_a_sentence_and_a_restart_goes_on(broker_url, tmp_path):
    node = a_node(tmp_path, broker_url).start(THALWEG_FAILPOINT="after_ack:3:raise")
    with Load(node, callers=1, seed=5) as load:
        assert load.died(node) == 1
        committed_is_published(read_commits(node))
        assert "the node stopped" in node.log_tail()
        node.start()
        load.wait_for(5)
    check_all(node, load.ledger)
    node.stop()


def test_a_term_in_mid_batch_ends_cleanly_and_nothing_is_lost(broker_url, tmp_path):
    node = a_node(tmp_path, broker_url).start()
    with Load(node, callers=2, seed=9) as load:
        load.wait_for(5)
        assert node.stop() == 0, node.log_tail()
        node.start()
        load.wait_for(5)
    check_all(node, load.ledger)
    node.stop()
