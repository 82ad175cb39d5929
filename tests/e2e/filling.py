"""A node's store, filled with something of everything, and its whole contents to compare."""

from __future__ import annotations

from tests.crash.invariants import contents
from tests.node_process import Client, NodeProcess


def fill(node: NodeProcess) -> None:
    """A session's worth of everything."""
    client = Client(node.home)
    client.call("session_open", {"session_id": "2026-01-05-filling", "goal": "Fill the store"})
    for text in ("I realized that caches lie.", "I realized that queues fill up.", "Nobody reads the log."):
        client.call("journal_write", {"content": text, "category": "insight", "session_id": "2026-01-05-filling"})
    for _ in range(2):
        client.call("friction_log", {"description": "The build is slow.", "category": "tooling"})
    client.call("session_close", {"session_id": "2026-01-05-filling", "goal_achieved": True})
    client.close()
    node.settle()


def everything(node: NodeProcess) -> dict[str, list[object]]:
    node.settle()
    with node.store() as store:
        return contents(store)
