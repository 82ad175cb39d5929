"""`python -m tests.kafka.rig up|down [--port 9092]`: a broker that stays until it is told to stop."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from tests.kafka.rig.broker import Broker
from tests.kafka.rig.jars import RigUnavailable, cache_dir

STOP_S = 20.0


def main() -> int:
    """Exit code 0 when the broker is up (or down) afterwards, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.kafka.rig", description=__doc__)
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument("--port", type=int, default=9092)
    options = parser.parse_args()
    directory = cache_dir() / f"broker-{options.port}"
    try:
        return _up(directory, options.port) if options.action == "up" else _down(directory)
    except RigUnavailable as error:
        print(error, file=sys.stderr)
        return 1


def _up(directory: Path, port: int) -> int:
    if _running(directory) is not None:
        print(f"A broker runs already on 127.0.0.1:{port}.")
        return 0
    broker = Broker(directory, port)
    seconds = broker.start()
    (directory / "pid").write_text(str(broker.pid))
    print(f"{broker.url} is up after {seconds:.1f} s; its data lies in {directory}.")
    return 0


def _down(directory: Path) -> int:
    pid = _running(directory)
    if pid is None:
        print("No broker runs.")
        return 0
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while _running(directory) is not None:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            break
        time.sleep(0.1)
    (directory / "pid").unlink(missing_ok=True)
    print("The broker is down.")
    return 0


def _running(directory: Path) -> int | None:
    """The pid in the pid file, when that process is a broker of this directory (a pid may have been given to
    another)."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((directory / "pid").read_text())
        if str(directory) in Path(f"/proc/{pid}/cmdline").read_text():
            return pid
    return None


if __name__ == "__main__":
    sys.exit(main())
