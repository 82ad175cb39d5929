"""The sandbox of a process that runs a query: the kernel limits it and kills it with its parent.

This module imports no database, so that each kind of child loads its own library only.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
import sys
from collections.abc import Callable
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson

PROGRAM_MB = 1024
"""Address space of interpreter, database code, thread stacks and allocator before any query runs."""
LARGEST_INTEGER = 2**63
PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, because the answer then has no reader.

    Linux only; elsewhere the limit of CPU time ends the child of a killed parent.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before this call
            sys.exit(1)


def limit(memory_mb: int, cpu_s: int) -> None:
    """Have the kernel limit this process, irrevocably: the hard limits are lowered too."""
    address_space = (memory_mb + PROGRAM_MB) * 2**20
    for what, value in (
        (resource.RLIMIT_AS, address_space),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (value, value))


def answer_one(answer: Callable[[dict[str, Any]], dict[str, Any]], *, spare_mb: int = 0) -> None:
    """The whole life of a child that answers one query: read the request, accept the limits, answer, end.

    `spare_mb`: address space that its library reserves beyond the request's `memory_mb`.
    """
    request = orjson.loads(sys.stdin.buffer.read())
    die_with_parent(request["parent"])
    limit(request["memory_mb"] + spare_mb, request["cpu_s"])
    sys.stdout.buffer.write(orjson.dumps(answer(request)))
    sys.stdout.buffer.flush()


def plain(value: Any) -> Any:
    """Convert a value to one that JSON has: times to RFC 3339 text, numbers beyond JSON's to text."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return value if -LARGEST_INTEGER <= value < LARGEST_INTEGER else str(value)
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return value.isoformat() + "Z" if value.tzinfo is None else value.isoformat()
    if isinstance(value, (date, clock_time)):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (timedelta, UUID)):
        return str(value)
    return str(value)
