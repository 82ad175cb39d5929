"""Callers, a producer, a Collector and imports that keep writing while the node is killed under them, and know what
they were told.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

from mcp_ingress.toolsets.cognitive_memory.errors import FAILED, STORE
from tests.crash.invariants import Ledger
from tests.crash.sources import Sources
from tests.crash.writes import WRITES, Known, arguments_of
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S

AGAIN = ("timeout", "rate_limited")
"""What a node answers that did not come to it: call again, says the door."""
GIVE_UP_S = 300.0


class Caller(threading.Thread):
    """Writes one thing after another.

    A call that fails is sent again with the same request id until it is answered (R4).
    """

    def __init__(
        self, node: NodeProcess, number: int, seed: int, ledger: Ledger, known: Known, stop: threading.Event
    ) -> None:
        super().__init__(name=f"caller-{number}", daemon=True)
        self._home, self._number, self._ledger, self._known, self._stop_asked = node.home, number, ledger, known, stop
        self._random = random.Random(seed * 1000 + number)
        self._client: Client | None = None
        self.tools: set[str] = set()
        """Those that were answered ok."""
        self.resent = 0

    def run(self) -> None:
        count = 0
        while not self._stop_asked.is_set():
            self._write(f"r-{self._number}-{count}")
            count += 1

    def _write(self, request_id: str) -> None:
        tool, arguments = self._request()
        self._ledger.ask(request_id)
        deadline = time.monotonic() + GIVE_UP_S
        while time.monotonic() < deadline:
            answer = self._answer(tool, arguments, request_id)
            if answer is not None and _is_decided(tool, answer):
                self._take(request_id, tool, answer)
                return
            self.resent += 1
            if self._stop_asked.is_set():
                return
            time.sleep(0.05)
        raise AssertionError(f"{request_id} was not answered within {GIVE_UP_S} s")

    def _request(self) -> tuple[str, dict[str, Any]]:
        """A tool that has something to work on, rather one that this caller has not called yet."""
        while True:
            names = [name for name in WRITES if name not in self.tools] if self._random.random() < 0.3 else []
            names = names or list(WRITES)
            [tool] = self._random.choices(names, [WRITES[name].weight for name in names])
            arguments = arguments_of(tool, self._known, self._random)
            if arguments is not None:
                return tool, arguments

    def _answer(self, tool: str, arguments: dict[str, Any], request_id: str) -> dict[str, Any] | None:
        """What the node says; None when it is gone, or goes meanwhile."""
        try:
            if self._client is None:
                self._client = Client(self._home)
            return self._client.call(tool, arguments, request_id)
        except (OSError, ValueError):
            self._client = None
            return None

    def _take(self, request_id: str, tool: str, answer: dict[str, Any]) -> None:
        """Note what was answered: the id that stands where this tool's answer has it."""
        write = WRITES[tool]
        if not _is_ok(answer):
            assert answer.get("error_code") in write.refusals, (tool, answer)
            self._ledger.refuse(request_id)
            return
        if "freshness" not in answer:  # there was nothing to write: no dream to abort, no drift to correct
            self.tools.add(tool)
            return
        identity: Any = answer
        for name in write.id_at.split("."):
            identity = identity[name]
        self._ledger.answer(request_id, identity, write.rows)
        self.tools.add(tool)
        if write.learns:
            self._known.learn(write.learns, identity)
        self._known.learn("tension", *(tension["id"] for tension in answer.get("tensions_detected") or ()))


def _is_ok(answer: dict[str, Any]) -> bool:
    """Whether it was decided: also that too little is known to change anything."""
    return bool(answer.get("success", "error" not in answer)) or answer.get("reason") == "insufficient_data"


def _is_decided(tool: str, answer: dict[str, Any]) -> bool:
    """Whether this answer stands.

    What is only accepted so far may still be refused, or turn out to be known under another id.

    A friction is what it says, and so is an entry: that nobody has yet counted how often the one was felt, or compared
    the other with what was written before, changes nothing about it.
    """
    if answer.get("pending"):
        return tool in ("friction_log", "journal_write")
    is_away = answer.get("degraded") or answer.get("error_code") in AGAIN or answer.get("error") in (STORE, FAILED)
    return _is_ok(answer) or not is_away


class Load:
    """All of them at once; a context manager that joins them and passes on what they died of."""

    def __init__(self, node: NodeProcess, callers: int, seed: int) -> None:
        self.ledger = Ledger()
        self._stop = threading.Event()
        known = Known()
        self.sources = Sources(node, seed, self.ledger, self._stop)
        self._callers = [Caller(node, number, seed, self.ledger, known, self._stop) for number in range(callers)]
        self._errors: list[BaseException] = []

    @property
    def _threads(self) -> list[threading.Thread]:
        return [self.sources, *self._callers]

    def __enter__(self) -> Load:
        self._hook, threading.excepthook = (
            threading.excepthook,
            lambda args: self._errors.append(args.exc_value or RuntimeError()),
        )
        self.sources.start()
        self._wait_until(self.sources.ready.is_set, "the sources are ready", PATIENCE_S)
        for caller in self._callers:
            caller.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE_S)
        threading.excepthook = self._hook
        assert exc[0] is not None or not any(thread.is_alive() for thread in self._threads), (
            "somebody still waits for an answer"
        )
        if self._errors and exc[0] is None:
            raise self._errors[0]

    def wait(self, seconds: float) -> None:
        """Let it go on for that long."""
        self._stop.wait(seconds)

    def wait_for(self, count: int, timeout_s: float = 2 * PATIENCE_S) -> None:
        """Until this many calls more were answered."""
        target = len(self.ledger.answered) + count
        self._wait_until(lambda: len(self.ledger.answered) >= target, f"{count} more calls are answered", timeout_s)

    def died(self, node: NodeProcess) -> int:
        """Wait until the node has ended by itself; the exit code.

        Passes on what a caller died of: without calls a failpoint may never come.
        """
        self._wait_until(lambda: not node.is_alive(), "the node died", 2 * PATIENCE_S)
        return node.died()

    def wait_for_all(self, timeout_s: float = 5 * PATIENCE_S) -> None:
        """Until every tool that writes was answered ok, and every source has written."""

        def lacking() -> set[str]:
            answered = set().union(*(caller.tools for caller in self._callers))
            return (WRITES.keys() - answered) | {name for name, times in self.sources.counts.items() if not times}

        self._wait_until(lambda: not lacking(), lambda: f"{lacking()} was done", timeout_s)

    def _wait_until(self, holds: Callable[[], bool], what: str | Callable[[], str], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not holds():
            if self._errors:
                raise self._errors[0]
            assert time.monotonic() < deadline, f"in {timeout_s} s not: {what if isinstance(what, str) else what()}"
            time.sleep(0.01)
