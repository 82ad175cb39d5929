"""What the kernel bounds of a process that runs somebody's query, each limit by itself.

No library's own limit stands before it.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

MEMORY_MB, CPU_S = 64, 1
CONFINED = f"from storage.sandbox import limit; limit({MEMORY_MB}, {CPU_S})\n"
TWO_GB = 2 * 2**30


def run(program: str, tmp_path: object) -> subprocess.CompletedProcess[str]:
    """The program, once it is confined; `folder` is a directory in which it may write by its permissions."""
    source = f"{CONFINED}folder = {str(tmp_path)!r}\n{program}"
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)


def test_no_byte_can_be_written_to_a_file(tmp_path: object) -> None:
    done = run("with open(folder + '/made', 'wb', buffering=0) as file:\n    file.write(b'x')", tmp_path)
    assert done.returncode == 1 and "File too large" in done.stderr


def test_more_memory_than_allowed_cannot_be_had(tmp_path: object) -> None:
    done = run(f"import mmap; mmap.mmap(-1, {TWO_GB})", tmp_path)
    assert done.returncode == 1 and "Cannot allocate memory" in done.stderr


def test_more_time_of_the_processor_than_allowed_ends_it(tmp_path: object) -> None:
    done = run("while True:\n    pass", tmp_path)
    assert done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)


@pytest.mark.parametrize("name", ["AS", "CPU", "FSIZE", "CORE"])
def test_no_limit_can_be_raised_again(name: str, tmp_path: object) -> None:
    raising = f"resource.setrlimit(resource.RLIMIT_{name}, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))"
    give_up = "import os, resource\nif os.geteuid() == 0: os.setegid(65534); os.seteuid(65534)\n"
    done = run(give_up + raising, tmp_path)
    assert done.returncode == 1 and "not allowed to raise maximum limit" in done.stderr
