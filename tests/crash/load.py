"""Callers that keep writing while the node is killed under them, and know what they were told."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

from tests.crash.invariants import Ledger
from tests.node_process import Client

THINGS = ["the cache", "a reader", "the parser", "our schema", "that index", "the queue"]
FAULTS = ["is stale", "blocks on the writer", "loses its place", "needs a retry", "drifts", "is slow"]


class Caller(threading.Thread):
    """Writes one entry after another. A call that fails is sent again with the same request id until it is answered (R4)."""

    def __init__(self, home: Path, number: int, seed: int, ledger: Ledger, stop: threading.Event) -> None:
        super().__init__(name=f"caller-{number}", daemon=True)
        self._home, self._number, self._ledger, self._stop_asked = home, number, ledger, stop
        self._random = random.Random(seed * 1000 + number)
        self._client: Client | None = None
        self.resent = 0

    def run(self) -> None:
        count = 0
        while not self._stop_asked.is_set():
            self._write(f"r-{self._number}-{count}")
            count += 1

    def _write(self, request_id: str) -> None:
        tool, arguments, field = self._request()
        self._ledger.unknown.add(request_id)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if self._client is None:
                    self._client = Client(self._home)
                answer = self._client.call(tool, arguments, request_id)
            except (OSError, ValueError):
                self._client = None
                self.resent += 1
                if self._stop_asked.is_set():
                    return
                time.sleep(0.05)
                continue
            assert answer["success"], answer
            self._ledger.answered[request_id] = answer[field]
            return
        raise AssertionError(f"{request_id} was not answered within a minute")

    def _request(self) -> tuple[str, dict[str, str], str]:
        text = f"{self._random.choice(THINGS)} {self._random.choice(FAULTS)} in case {self._random.randrange(200)}"
        if self._random.random() < 0.3:
            return "friction_log", {"description": text, "category": "tooling"}, "friction_id"
        return "journal_write", {"content": f"I realized that {text}.", "category": "insight"}, "entry_id"


class Load:
    """Several callers at once; a context manager that joins them and passes on what they died of."""

    def __init__(self, home: Path, callers: int, seed: int) -> None:
        self.ledger = Ledger()
        self._stop = threading.Event()
        self._callers = [Caller(home, number, seed, self.ledger, self._stop) for number in range(callers)]
        self._errors: list[BaseException] = []

    def __enter__(self) -> Load:
        self._hook, threading.excepthook = threading.excepthook, lambda args: self._errors.append(args.exc_value or RuntimeError())
        for caller in self._callers:
            caller.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        for caller in self._callers:
            caller.join(70)
        threading.excepthook = self._hook
        if self._errors and exc[0] is None:
            raise self._errors[0]

    def wait_for(self, count: int, timeout_s: float = 30.0) -> None:
        """Until so many calls more were answered."""
        target = len(self.ledger.answered) + count
        deadline = time.monotonic() + timeout_s
        while len(self.ledger.answered) < target:
            if self._errors:
                raise self._errors[0]
            assert time.monotonic() < deadline, f"{len(self.ledger.answered)} of {target} calls answered in {timeout_s} s"
            time.sleep(0.01)
