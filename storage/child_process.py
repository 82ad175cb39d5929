"""A child process of this package: started without the parent's secrets, and killed in time.

The limits of memory and processor time that the child sets for itself are in `sandbox`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

import storage
from streams.errors import Refused, Unavailable

_NO_MEMORY = (b"MemoryError", b"bad_alloc")


@dataclass(frozen=True, slots=True)
class QueryChild:
    """A child program that answers one query: a request on stdin, an answer on stdout, both JSON objects."""

    module: str
    subject: str
    """The name of what the child queries, for the sentence that it does not answer."""
    shorten: str
    """The remedy for a query that takes too long."""
    timeout_code: str = "timeout"
    memory_code: str = Refused.code

    def ask(self, request: dict[str, Any], *, timeout_s: float, memory_mb: int, cpu_s: int) -> dict[str, Any]:
        """Start it, ask, and kill it after `timeout_s` seconds of wall time or `cpu_s` of processor time.

        Blocks. Raises Refused when a limit ended it, with the code of that limit; Unavailable when it failed.
        """
        limited = {**request, "memory_mb": memory_mb, "cpu_s": cpu_s, "parent": os.getpid()}
        command, environment = _command(self.module)
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd="/"
        ) as child:
            try:
                output, complaint = child.communicate(orjson.dumps(limited), timeout=timeout_s)
            except subprocess.TimeoutExpired:
                child.kill()
                raise Refused(
                    f"The query took longer than {timeout_s:g} s and was ended: {self.shorten}.", code=self.timeout_code
                ) from None
            except BaseException:
                child.kill()
                raise
        if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise Refused(
                f"The query used up its share of processor time and was ended: {self.shorten}.", code=self.timeout_code
            )
        if child.returncode < 0 or any(name in complaint for name in _NO_MEMORY):
            raise Refused(
                f"The query broke its limit of {memory_mb} MB and was ended: read less or aggregate earlier.",
                code=self.memory_code,
            )
        if child.returncode != 0:
            raise Unavailable(f"{self.subject} cannot be asked: {last_line(complaint)}")
        answer: dict[str, Any] = orjson.loads(output)
        return answer


def run_child(
    module: str, *arguments: str, timeout_s: float, given: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a child program to its end. Raises subprocess.TimeoutExpired when it is killed after `timeout_s` seconds."""
    command, environment = _command(module)
    return subprocess.run(
        [*command, *arguments],
        input=given,
        env=environment,
        cwd="/",
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )


def last_line(complaint: bytes) -> str:
    """The last line that a child wrote about its failure, at most 200 characters of it."""
    lines = complaint.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "unknown"


def _command(module: str) -> tuple[list[str], dict[str, str]]:
    """The command and the whole environment of a child program; no secret of the parent is in it.

    It has the path of this installation, and `-P` keeps the working directory out, so that nothing there is imported.
    """
    root = Path(storage.__file__).resolve().parents[1]
    return [sys.executable, "-P", "-m", module], {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
