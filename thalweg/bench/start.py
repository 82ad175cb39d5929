"""`thalweg bench start`: what an MCP client waits for before its first call, and what a node weighs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import orjson

from streams.errors import NotRunning, Unavailable
from thalweg.bench.own_broker import refuse_used
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import POLL_S, STOP_S, environment, resident_mb, scratch_directory
from thalweg.control.requests import ask

WARM = Target(300.0)
COLD = Target(1500.0)
RESIDENT = Target(500.0)
INITIALIZE = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "thalweg-bench", "version": "1"},
        },
    }
)


def measure_start(count: int, *, embedder: str, broker: str) -> Report:
    """Time `initialize` over stdio: once on an empty directory, `count` cold, `count` with a node."""
    report = Report("start", {"n": count, "embedder": embedder, "broker": broker or "sqlite://"})
    refuse_used(broker)
    with scratch_directory() as directory:
        home = directory / "home"
        variables = environment(home, embedder=embedder, broker=broker)
        try:
            report.add("initialize_first_ever_ms", _initialize_ms(variables), "ms")
            _median(report, "initialize_warm", [_initialize_ms(variables) for _ in range(count)], WARM)
            report.add("node_resident_mb", resident_mb(node_pid(home)), "MB", RESIDENT)
            cold = []
            for _ in range(count):
                stop_node(home)
                cold.append(_initialize_ms(variables))
            _median(report, "initialize_cold", cold, COLD)
        finally:
            stop_node(home)
        report.add("bare_python_ms", _bare_python_ms(), "ms", bare=True)
    return report


def _median(report: Report, name: str, durations: list[float], target: Target) -> None:
    report.add(f"{name}_p50_ms", float(np.median(durations)), "ms", target)
    report.add(f"{name}_max_ms", max(durations), "ms")


def _initialize_ms(variables: dict[str, str]) -> float:
    """From the start of `thalweg mcp` to its first answer."""
    command = [sys.executable, "-m", "thalweg", "mcp"]
    started = time.perf_counter()
    with subprocess.Popen(
        command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as pump:
        assert pump.stdin is not None and pump.stdout is not None
        pump.stdin.write(INITIALIZE + b"\n")
        pump.stdin.flush()
        answer = orjson.loads(pump.stdout.readline() or b"{}")
        elapsed = (time.perf_counter() - started) * 1000
        pump.stdin.close()
        pump.wait(STOP_S)
    if "result" not in answer:
        raise Unavailable(f"`thalweg mcp` did not answer initialize: {answer}")
    return elapsed


def _bare_python_ms() -> float:
    """A Python that starts and ends: no stdio server in Python answers sooner."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return (time.perf_counter() - started) * 1000


def node_pid(home: Path) -> int:
    """The process that owns this data directory; 0 when none does."""
    lock = home / "store.lock"
    text = lock.read_text().strip() if lock.exists() else ""
    return int(text or 0)


def stop_node(home: Path) -> None:
    """Stop the node, if one runs, and return once the directory is free. Raises Unavailable when it does not stop."""
    try:
        ask(home, "stop")
    except NotRunning:
        return
    deadline = time.monotonic() + STOP_S
    while node_pid(home):
        if time.monotonic() > deadline:
            raise Unavailable(f"The node under measurement did not stop within {STOP_S:g} s.")
        time.sleep(POLL_S)
