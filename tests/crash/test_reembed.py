"""A node that is killed while it embeds everything anew, or builds its indexes: it goes on, and answers meanwhile."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from processors.embedding.hashing import HashingEmbedder
from processors.memory.reembedding import SLICE_TEXTS
from storage.database import Database
from storage.migrate import migrate
from storage.writer import Writer
from streams.clock import SystemClock
from streams.errors import NotRunning, Unavailable
from tests.crash.invariants import check_all
from tests.crash.load import Load
from tests.crash.test_kills import rebuilt
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S
from thalweg.bench.scratch import texts
from thalweg.bench.search_store import NAMESPACE, fill_store
from thalweg.control.requests import ask

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

ONE, TWO = "text/hashing-384", "text/hashing-128"
TEXTS = 4 * SLICE_TEXTS + 1
"""More than are embedded until the last of the kills."""


def wait_until_live(node: NodeProcess, space: str, timeout_s: float = 2 * PATIENCE_S) -> None:
    deadline = time.monotonic() + timeout_s
    while (report := ask(node.home, "spaces"))["live"] != space or report["building"] is not None:
        assert time.monotonic() < deadline, report
        assert report["problem"] is None, report
        time.sleep(0.05)


def answers(node: NodeProcess) -> bool:
    return bool(Client(node.home).call("journal_query", {"query": "the cache is stale"})["results"])


def states(node: NodeProcess) -> dict[str, tuple[str, int]]:
    return {row["space"]: (row["state"], row["vectors"]) for row in ask(node.home, "spaces")["spaces"]}


def be_killed_while_re_embedding(node: NodeProcess, nth: int) -> None:
    """Ask for another space, and be killed while it is filled, however long the question takes.

    What a stop left without a vector is embedded by the same steps: where the kill came there, before the space was
    asked for, it is asked for again.
    """
    while True:
        node.launch(THALWEG_FAILPOINT=f"mid_reembed:{nth}:kill")
        is_asked = False
        while node.is_alive() and not is_asked:
            try:
                ask(node.home, "reembed", model="hashing-128")
                is_asked = True
            except (NotRunning, Unavailable):  # not yet; or the kill came before the answer
                time.sleep(0.02)
        assert node.died() == -9, node.log_tail()
        node.start()
        assert "stale" not in ask(node.home, "search", query="the cache", freshness="now")
        if TWO in states(node):
            return
        assert node.stop() == 0, node.log_tail()


@pytest.mark.parametrize("nth", [1, 2, 4])
def test_a_kill_while_re_embedding_loses_nothing_and_the_node_goes_on_by_itself(
    nth: int, broker_url: str, tmp_path: Path
) -> None:
    node = NodeProcess(tmp_path / "home", broker_url).start()
    with Load(node, callers=3, seed=nth) as load:
        load.wait_for(130)
        while ask(node.home, "status")["indexes"]["keyword"]["count"] < TEXTS:
            load.wait_for(10)
        assert node.stop() == 0
        be_killed_while_re_embedding(node, nth)
        assert states(node)[TWO][0] in ("building", "live") and answers(node)
        load.wait_for(10)
        wait_until_live(node, TWO)
        load.wait_for(10)
    wait_until_whole(node)
    check_all(node, load.ledger)
    if nth == 4:
        rebuilt(node)
        assert states(node)[TWO][0] == "live"
    assert node.stop() == 0


def wait_until_whole(node: NodeProcess, timeout_s: float = 2 * PATIENCE_S) -> None:
    """Every record that any space has is in the live one."""
    deadline = time.monotonic() + timeout_s
    while True:
        missing = node.sql(
            # a refused request has a vector and no record
            f"SELECT count(DISTINCT label) FROM embeddings e SEMI JOIN documents d USING (label) "
            f"WHERE NOT EXISTS (FROM embeddings n WHERE n.label = e.label AND n.space = '{TWO}')"
        )
        if missing == [(0,)]:
            return
        assert time.monotonic() < deadline, missing
        time.sleep(0.1)


def test_a_kill_while_the_indexes_are_rebuilt_loses_nothing_and_it_answers_meanwhile(
    broker_url: str | None, tmp_path: Path
) -> None:
    home, count = tmp_path / "home", 20_000
    database = Database(home)
    migrate(database.cursor(), SystemClock().now())
    fill_store(Writer(database), count, HashingEmbedder())
    database.close()
    node = NodeProcess(home, broker_url, THALWEG_NAMESPACE=NAMESPACE)
    for nth in (1, 2):
        node.launch(THALWEG_FAILPOINT=f"mid_index_rebuild:{nth}:kill")
        assert node.died() == -9, node.log_tail()
    node.start(THALWEG_FAILPOINT="")
    sought = texts(count)[-1]
    assert any(
        sought == result["content"] for result in Client(home).call("journal_query", {"query": sought})["results"]
    )
    state = rebuilt_indexes(node)
    assert (state["keyword"]["count"], state["vector"]["count"]) == (count, count)
    while (home / "indexes").exists():
        shutil.rmtree(home / "indexes", ignore_errors=True)  # the node may write there meanwhile
    assert node.stop() == 0


def rebuilt_indexes(node: NodeProcess) -> dict[str, Any]:
    """The state of the indexes once they are whole, and saved too.

    That follows, and what is half saved must not be deleted.
    """
    deadline = time.monotonic() + 2 * PATIENCE_S
    while (state := node.settle(2 * PATIENCE_S)["indexes"])["is_rebuilding"]:
        assert time.monotonic() < deadline, state
        time.sleep(0.05)
    return dict(state)
