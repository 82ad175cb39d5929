"""Callers that keep writing while the node is killed under them, and know what they were told."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

from tests.crash.invariants import Ledger
from tests.node_process import Client
from tests.patience import PATIENCE_S

THINGS = ["the cache", "a reader", "the parser", "our schema", "that index", "the queue"]
FAULTS = ["is stale", "blocks on the writer", "loses its place", "needs a retry", "drifts", "is slow"]
LOST = ("ALREADY_SUPERSEDED", "TENSION_ALREADY_RESOLVED", "TENSION_NOT_FOUND")
"""What a caller is told who was not the first, or who has heard of a tension before the node that was started again has."""
AGAIN = ("timeout", "rate_limited")
"""What a node answers that did not come to it: call again, says the door."""
GIVE_UP_S = 300.0


class Beliefs:
    """What all callers know of beliefs and tensions: each may be superseded or resolved by several of them at once."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self.tensions: list[str] = []

    def learn(self, answer: dict[str, Any]) -> None:
        belief = answer.get("new_belief") or answer.get("belief")
        if belief is not None:
            self.held = [*self.held[-20:], belief["id"]]
        self.tensions = [*self.tensions[-20:], *(tension["id"] for tension in answer.get("tensions_detected", ()))]


class Caller(threading.Thread):
    """Writes one thing after another. A call that fails is sent again with the same request id until it is answered (R4)."""

    def __init__(self, home: Path, number: int, seed: int, ledger: Ledger, beliefs: Beliefs, stop: threading.Event) -> None:
        super().__init__(name=f"caller-{number}", daemon=True)
        self._home, self._number, self._ledger, self._beliefs, self._stop_asked = home, number, ledger, beliefs, stop
        self._random = random.Random(seed * 1000 + number)
        self._client: Client | None = None
        self._session_id: str | None = None
        self.resent = 0

    def run(self) -> None:
        count = 0
        while not self._stop_asked.is_set():
            self._write(f"r-{self._number}-{count}")
            count += 1

    def _write(self, request_id: str) -> None:
        tool, arguments, path = self._request()
        self._ledger.unknown.add(request_id)
        deadline = time.monotonic() + GIVE_UP_S
        while time.monotonic() < deadline:
            answer = self._answer(tool, arguments, request_id)
            if answer is not None and _is_decided(tool, answer):
                self._take(request_id, answer, path)
                return
            self.resent += 1
            if self._stop_asked.is_set():
                return
            time.sleep(0.05)
        raise AssertionError(f"{request_id} was not answered within {GIVE_UP_S} s")

    def _answer(self, tool: str, arguments: dict[str, Any], request_id: str) -> dict[str, Any] | None:
        """What the node says; None when it is gone, or goes meanwhile."""
        try:
            if self._client is None:
                self._client = Client(self._home)
            return self._client.call(tool, arguments, request_id)
        except (OSError, ValueError):
            self._client = None
            return None

    def _take(self, request_id: str, answer: dict[str, Any], path: str) -> None:
        """Note what was answered: the id that stands at this path."""
        if not answer["success"]:
            assert answer.get("error_code") in LOST, answer
            self._ledger.refused.add(request_id)
            return
        found: Any = answer
        for name in path.split("."):
            found = found[name]
        self._ledger.answered[request_id] = found
        self._session_id = answer.get("session_id", self._session_id)
        self._beliefs.learn(answer)

    def _request(self) -> tuple[str, dict[str, Any], str]:
        text = f"{self._random.choice(THINGS)} {self._random.choice(FAULTS)} in case {self._random.randrange(200)}"
        chance = self._random.random()
        if chance < 0.2:
            return "friction_log", {"description": text, "category": "tooling"}, "friction_id"
        if chance < 0.5:
            return "journal_write", {"content": f"I realized that {text}.", "category": "insight"}, "entry_id"
        return self._valence(self._random.random())

    def _valence(self, chance: float) -> tuple[str, dict[str, Any], str]:
        if self._session_id is None:
            return "session_start", {"platform": "api"}, "session_id"
        thing, case = self._random.choice(THINGS), self._random.randrange(20)
        if chance < 0.3:
            said = {"session_id": self._session_id, "role": "user", "content": f"{thing} in case {case}"}
            return "exchange_add", said, "exchange_id"
        if chance < 0.5 and self._beliefs.held:
            old = self._random.choice(self._beliefs.held)
            return "belief_supersede", {"old_belief_id": old, "new_content": f"{thing} is at {case}", "reason": "load"}, "new_belief.id"
        if chance < 0.6 and self._beliefs.tensions:
            ended = {"tension_id": self._random.choice(self._beliefs.tensions), "resolution": "load", "action": "supersede_a"}
            return "tension_resolve", ended, "tension_id"
        if chance < 0.7:
            content = f"{thing} was looked at in case {case}"
            return "insight_extract", {"session_id": self._session_id, "content": content}, "insight_id"
        stated = {"content": f"{thing} is {self._random.choice(('on', 'not on'))}", "source_ref": f"s{case}", "entities": [{"name": thing}]}
        return "belief_create", stated, "belief.id"


def _is_decided(tool: str, answer: dict[str, Any]) -> bool:
    """Whether this answer stands. What is only accepted so far may still be refused, or turn out to be known under another id.

    A friction is what it says; that nobody has yet counted how often it was felt changes nothing about it.
    """
    if answer.get("pending"):
        return tool == "friction_log"
    return answer["success"] or not (answer.get("degraded") or answer.get("error_code") in AGAIN)


class Load:
    """Several callers at once; a context manager that joins them and passes on what they died of."""

    def __init__(self, home: Path, callers: int, seed: int) -> None:
        self.ledger = Ledger()
        self._stop = threading.Event()
        beliefs = Beliefs()
        self._callers = [Caller(home, number, seed, self.ledger, beliefs, self._stop) for number in range(callers)]
        self._errors: list[BaseException] = []

    def __enter__(self) -> Load:
        self._hook, threading.excepthook = threading.excepthook, lambda args: self._errors.append(args.exc_value or RuntimeError())
        for caller in self._callers:
            caller.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        for caller in self._callers:
            caller.join(2 * PATIENCE_S)
        threading.excepthook = self._hook
        assert exc[0] is not None or not any(caller.is_alive() for caller in self._callers), "a caller still waits for its answer"
        if self._errors and exc[0] is None:
            raise self._errors[0]

    def wait_for(self, count: int, timeout_s: float = 2 * PATIENCE_S) -> None:
        """Until so many calls more were answered."""
        target = len(self.ledger.answered) + count
        deadline = time.monotonic() + timeout_s
        while len(self.ledger.answered) < target:
            if self._errors:
                raise self._errors[0]
            assert time.monotonic() < deadline, f"{len(self.ledger.answered)} of {target} calls answered in {timeout_s} s"
            time.sleep(0.01)
