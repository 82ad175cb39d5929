"""Fifty parallel working-memory calls, also with a kill -9 between them.

Ten rows stay, forty are archived, each once.
"""

from __future__ import annotations

import threading
import time

import pytest

from tests.crash.test_kills import rebuilt
from tests.node_process import Client, NodeProcess

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

CALLS = 50
GIVE_UP_S = 120.0


def put(node: NodeProcess, number: int, answers: dict[int, dict[str, object]]) -> None:
    """One call, repeated under its request id until it is answered.

    Also when it is told that there was not the time for it.
    """
    deadline = time.monotonic() + GIVE_UP_S
    while time.monotonic() < deadline:
        try:
            client = Client(node.home)
            try:
                arguments = {"content": f"item {number}", "importance": 0.5}
                answers[number] = client.call("update_working_memory", arguments, request_id=f"wm-{number}")
                if "error" not in answers[number]:
                    return
            finally:
                client.close()
        except (OSError, ValueError):  # the node is gone, or went in the middle of a line
            pass
        time.sleep(0.05)


@pytest.mark.parametrize("kills", [0, 1], ids=["undisturbed", "with a kill between"])
def test_fifty_parallel_calls_leave_ten_rows_and_forty_archived(broker_url: str | None, tmp_path, kills: int) -> None:
    node = NodeProcess(tmp_path / "home", broker_url).start()
    answers: dict[int, dict[str, object]] = {}
    callers = [threading.Thread(target=put, args=(node, number, answers)) for number in range(CALLS)]
    for number, caller in enumerate(callers):
        caller.start()
        if kills and number == CALLS // 2:
            node.kill()
            node.start()
    for caller in callers:
        caller.join(2 * GIVE_UP_S)
    try:
        assert len(answers) == CALLS and all(answer.get("status") == "success" for answer in answers.values()), answers
        node.settle()
        assert node.sql("SELECT count(*), count(DISTINCT id) FROM working_memory") == [(10, 10)]
        assert node.sql(
            "SELECT count(*), count(DISTINCT item_id), count(DISTINCT original_content) FROM stale_memory"
        ) == [(40, 40, 40)]
        assert node.sql("SELECT count(*) FROM stale_memory s JOIN working_memory w ON w.id = s.item_id") == [(0,)]
        rebuilt(node)
    finally:
        if node.is_alive():
            node.stop()
