"""What a measurement works on: a scratch directory, a node as a process, and generated texts."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from streams.errors import NotRunning, Unavailable
from thalweg.control.requests import ask
from thalweg.environment import process_environment
from thalweg.paths import control_path, socket_path

START_S = 180.0
"""A new home makes its model first: seconds alone, minutes beside other work."""
STOP_S = 30.0
ANSWER_S = 60.0
MAX_LINE = 16 * 1024 * 1024
CALLER_VARIABLES = ("THALWEG_KAFKA_", "THALWEG_MODEL_PATH")
POLL_S = 0.01
VOCABULARY = """
build cache compiler gauge offset parser test branch schema broker topic record index vector query session memory
pattern tool error retry timeout queue worker lease commit replay token stage batch writer reader lock file socket
client server answer deadline budget trace span metric log alert graph edge node belief tension insight episode
broke stalled drifted leaked grew failed recovered improved held moved waited slowed vanished doubled settled
before after because while although whenever under beside without again slowly twice rarely always quietly
"""


def texts(count: int, *, seed: int = 7, words: int = 24) -> list[str]:
    """Sentences of `words` words from a fixed vocabulary, all different. The same seed gives the same ones."""
    chance = random.Random(seed)
    vocabulary = VOCABULARY.split()
    return [f"{' '.join(chance.choices(vocabulary, k=words - 1))} {seed}x{number}" for number in range(count)]


def questions(count: int, *, seed: int = 11) -> list[str]:
    """Questions of six words from the same vocabulary, most of them different. The same seed gives the same ones."""
    return [" ".join(text.split()[:6]) for text in texts(count, seed=seed)]


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory that is gone afterwards; short, so that a socket fits into it."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def environment(home: Path, *, embedder: str, broker: str = "", **settings: object) -> dict[str, str]:
    """The environment of a node for this alone, with `settings`.

    Of the caller's own it has only how to reach a Kafka and where the model is.
    """
    own = {
        name: value
        for name, value in process_environment().items()
        if not name.startswith(("THALWEG_", "SURR_")) or name.startswith(CALLER_VARIABLES)
    }
    own |= {
        "THALWEG_HOME": str(home),
        "THALWEG_EMBEDDER": embedder,
        "THALWEG_RATE_LIMIT": "1000000",
        "SURR_ENABLE_INNER_VOICE": "1",
    }
    own |= {f"THALWEG_{name.upper()}": str(value) for name, value in settings.items()}
    return own | ({"THALWEG_BROKER": broker} if broker else {})


@contextmanager
def running_node(
    home: Path, *, embedder: str, broker: str = "", pieces: Path | None = None, **settings: object
) -> Iterator[subprocess.Popen[bytes]]:
    """`thalweg up` on this directory while the block runs. Raises Unavailable with the end of its log.

    `pieces`: the file in which the node notes how long its interpreter was not to be had (`watched_node`).
    """
    home.mkdir(parents=True, exist_ok=True)
    program = ["thalweg", "up"] if pieces is None else ["thalweg.bench.watched_node", str(pieces)]
    command = [sys.executable, "-m", *program]
    with (home / "node.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            env=environment(home, embedder=embedder, broker=broker, **settings),
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    try:
        _wait_ready(home, process)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_ready(home: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            ask(home, "status")
            return
        except NotRunning:
            time.sleep(POLL_S)
    tail = (home / "node.log").read_text(errors="replace")[-2000:]
    ended = process.poll()
    how = f"was not ready within {START_S:g} s" if ended is None else f"ended with {ended}"
    raise Unavailable(f"The node {how}. The end of its log:\n{tail}")


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB (10^6 bytes)."""
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=True, text=True).stdout
    return int(shown) * 1024 / 1e6


def anonymous_mb(pid: int) -> float | None:
    """Of that what is the process's own and no file's that is mapped, in MB. None where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("RssAnon:")), None)


def processor_s(pid: int) -> float | None:
    """Seconds of processor time that a process has taken, by its own clock. None where the system has no such clock."""
    try:
        return time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid(3) gives
    except OSError:
        return None


class SocketClient:
    """One connection to one of the node's sockets; one line out, one line back."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._number = 0

    @classmethod
    async def open(cls, home: Path) -> SocketClient:
        """To the agents' socket."""
        return cls(*await asyncio.open_unix_connection(str(socket_path(home)), limit=MAX_LINE))

    @classmethod
    async def control(cls, home: Path) -> SocketClient:
        """To the command line's."""
        return cls(*await asyncio.open_unix_connection(str(control_path(home)), limit=MAX_LINE))

    async def ask(self, command: str, **arguments: Any) -> dict[str, Any]:
        """A control request. The connection stays open for the next one."""
        answer = await self._exchange({"command": command, **arguments})
        if not answer.get("ok"):
            raise Unavailable(f"The node refused {command}: {answer}")
        return answer

    async def greet(self) -> None:
        """The handshake of MCP."""
        about = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "thalweg-bench", "version": "1"},
        }
        await self.request("initialize", about)
        self._writer.write(orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + b"\n")

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """An MCP request; its result. Raises Unavailable for an error."""
        answer = await self.answer(method, params)
        if "result" not in answer or answer["result"].get("isError"):
            raise Unavailable(f"The node refused {method}: {answer}")
        result: dict[str, Any] = answer["result"]
        return result

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """What an MCP request is answered, an error too."""
        self._number += 1
        return await self._exchange({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})

    async def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        self._writer.write(orjson.dumps(message) + b"\n")
        while True:
            line = await asyncio.wait_for(self._reader.readline(), ANSWER_S)
            if not line:
                raise Unavailable("The node under measurement ended.")
            answer: dict[str, Any] = orjson.loads(line)
            if "id" not in message or answer.get("id") == message["id"]:
                return answer

    def close(self) -> None:
        self._writer.close()
