"""The five layers of Context Graph, each by a probe of what it stands on."""

from __future__ import annotations

import asyncio
from typing import Literal, NamedTuple

from mcp_ingress.call import Call
from mcp_ingress.toolsets.context_graph.pulse import read_means
from storage.statements import execute
from streams.errors import ThalwegError
from streams.topics import MEMORY

Status = Literal["active", "degraded", "down"]
STATUSES: tuple[Status, ...] = ("active", "degraded", "down")
LAG_S = 10.0
"""A store that is further behind the log than this is degraded."""
LOG_TIMEOUT_S = 1.0
NAMES = ("perception", "memory", "reasoning", "meta", "action")
_REASONING = "SELECT memory_id, alignments FROM context_recalls LIMIT 1"


class Layer(NamedTuple):
    """How a layer is, and why."""

    status: Status
    detail: str


async def probe(call: Call) -> dict[str, Layer]:
    """Each layer by name, in the order of NAMES."""
    layers = await asyncio.gather(_perception(call), _memory(call), _reasoning(call), _meta(call), _action(call))
    return dict(zip(NAMES, layers, strict=True))


async def _perception(call: Call) -> Layer:
    embedder = call.services.embedder
    if embedder is None:
        return Layer("degraded", "No model is loaded: memories are found by their words only.")
    return Layer("active", f"The model {embedder.info.model_id} is loaded.")


async def _memory(call: Call) -> Layer:
    if (down := await _unreadable(call, "SELECT 1")) is not None:
        return down
    backlog = call.services.backlog()
    if backlog.records and backlog.seconds >= LAG_S:
        return Layer(
            "degraded", f"The store lacks {backlog.records} records, the oldest of {backlog.seconds:.0f} s ago."
        )
    return Layer("active", "The store and its indexes answer.")


async def _reasoning(call: Call) -> Layer:
    if (down := await _unreadable(call, _REASONING)) is not None:
        return down
    return Layer("active", "What was recalled can be read.")


async def _unreadable(call: Call, query: str) -> Layer | None:
    """The layer that is down because the store does not answer this; None where it does."""
    try:
        await call.read(lambda cursor: execute(cursor, query, []).fetchone())
    except ThalwegError as error:
        return Layer("down", error.message)
    return None


async def _meta(call: Call) -> Layer:
    try:
        means = await read_means(call.services, call.namespace)
    except ThalwegError as error:
        return Layer("down", error.message)
    if not means.interactions:
        return Layer("active", "Nothing was learned yet: the pulse stands at its start.")
    return Layer("active", f"The pulse follows {means.interactions} interactions.")


async def _action(call: Call) -> Layer:
    try:
        async with asyncio.timeout(LOG_TIMEOUT_S):
            await call.services.log.end_offsets([MEMORY.name])
    except (ThalwegError, TimeoutError):
        return Layer("down", "The log does not answer: writes are spooled on this machine until it does.")
    if not call.services.spool.is_empty:
        return Layer("degraded", "The log answers again; spooled writes are on their way to it.")
    return Layer("active", "The log takes events.")
