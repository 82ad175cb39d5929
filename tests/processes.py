"""What becomes of a process (Linux): whether it has ended, and one that hangs."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any


def ended(pid: int) -> bool:
    """Whether the process is gone, or waits only for its parent to ask how it ended. It need not be our child."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (
        FileNotFoundError,
        ProcessLookupError,
    ):  # the second: it went between the opening of the file and the reading
        return True


def pause(child: subprocess.Popen[Any]) -> None:
    """SIGSTOP: connections stay open and nothing answers. Returns once each of its threads stands still.

    Sending the signal returns earlier: for some milliseconds a server may still answer.
    """
    child.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)


def resume(child: subprocess.Popen[Any]) -> None:
    """SIGCONT."""
    child.send_signal(signal.SIGCONT)
