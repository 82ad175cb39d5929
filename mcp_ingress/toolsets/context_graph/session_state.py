"""What the tools share that tell the state of a session: its argument, and the waiting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import duckdb

from mcp_ingress.call import Call
from mcp_ingress.toolsets.context_graph.reader import reader_of
from processors.context_graph.read.drift import DriftCache
from processors.context_graph.read.ego import read_ego
from processors.context_graph.read.goals import Purposes
from processors.context_graph.read.state import Coupled
from processors.context_graph.rules.ego import Ego
from processors.context_graph.rules.oscillators import DORMANT_S, state_of
from processors.context_graph.rules.workspace import WHOLE

State = TypeVar("State")
SESSION: Mapping[str, Any] = {
    "type": "string",
    "minLength": 1,
    "default": WHOLE,
    "description": "`default` is the whole namespace",
}


def moment(call: Call) -> datetime:
    """Now, as the store has times: UTC without a zone."""
    return call.clock.now().replace(tzinfo=None)


async def read_state(
    call: Call, query: Callable[[duckdb.DuckDBPyConnection], State]
) -> tuple[State, Mapping[str, Any]]:
    """What the query reads once the caller's writes and searches are applied, else with `stale`."""
    left = await call.own_records()
    await call.applied(call.read_token.merged(left), timeout_s=call.services.limits.read_wait_s)
    is_fresh = await call.fresh()
    return await call.read(query), {} if is_fresh else {"stale": True}


def state_name(coupled: Coupled, now: datetime) -> tuple[str, str]:
    """The state of the oscillators and its code; of a session without recalls it is dormant."""
    last = coupled.last_recall_at
    return state_of(coupled.synchrony.order[0], DORMANT_S if last is None else (now - last).total_seconds())


def ego_of(cursor: duckdb.DuckDBPyConnection, call: Call, session_id: str) -> Ego:
    """The ego of a session of the call's namespace."""
    reader = reader_of(call, cursor)
    return read_ego(reader, call.part(Purposes), call.part(DriftCache), session_id)
