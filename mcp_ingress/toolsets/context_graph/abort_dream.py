"""abort_dream: wakes the dream that runs, and says how long that took."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.dream_answers import REPORT, report_of
from mcp_ingress.toolsets.context_graph.dreams import STATES, Dream, Dreams
from processors.context_graph.read.dreams import DreamHistory, read_cycle, read_history

MANDATE_MS = 100.0
"""Within this a dream has to be awake."""
WAIT_S = 2.0


async def abort(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wake the dream at once, then put the abort on the log; nothing where nothing dreams."""
    dreams = call.part(Dreams)
    previous, dream = dreams.state(call.namespace), dreams.running.get(call.namespace)
    latency_ms = 0.0 if dream is None else await _wake(dream)
    history = await call.read(lambda cursor: read_history(cursor, call.namespace))
    identity = _unfinished(history) if dream is None else dream.dream_id
    if identity is None:
        nothing = {"aborted": False, "reason": "nothing dreams", "dream_id": None, "report": None}
        return {"success": True, **nothing, **_latency(0.0), **_states(previous, previous)}
    event = writes.request(call, "context.dream.aborted", {"dream_id": identity})
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    if dream is not None:
        await _within(dream.over, writes.time_left(call, WAIT_S))
    cycle = await call.read(lambda cursor: read_cycle(cursor, call.namespace, identity))
    aborted = dream.wake_reason == "manual_abort" if dream is not None else bool(result and result["aborted"])
    reason = "manual_abort" if aborted or dream is None else str(dream.wake_reason)
    told = {"aborted": aborted, "reason": reason, "dream_id": identity, "report": report_of(cycle, dream)}
    own = {**told, **_latency(latency_ms), **_states(previous, dreams.state(call.namespace))}
    return writes.written(published, own, pending=result is None, problem=problem)


async def _wake(dream: Dream) -> float:
    """Wake the dream; after how many milliseconds it worked no more."""
    began = time.perf_counter()
    dream.wake("manual_abort")
    await _within(dream.stopped, WAIT_S)
    return (time.perf_counter() - began) * 1000


async def _within(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        pass  # the answer says how far it is


def _unfinished(history: DreamHistory) -> str | None:
    """The dream of another process, or one that is about to begin."""
    last = history.last
    return None if last is None or last.ended_at is not None else last.dream_id


def _latency(milliseconds: float) -> dict[str, Any]:
    return {"abort_latency_ms": round(milliseconds, 3), "mandate_met": milliseconds <= MANDATE_MS}


def _states(previous: str, current: str) -> dict[str, Any]:
    return {"previous_state": previous, "current_state": current}


TOOL = Tool(
    name="abort_dream",
    toolset="context_graph",
    title="Wake up",
    description="Abort the current dream cycle, within 100 ms. Returns wake latency and the partial dream report; "
    "what the dream has changed stands. While nothing dreams `aborted` is false.",
    kind="write",
    handler=abort,
    input_schema={"type": "object", "properties": {}},
    output_schema=writes.output_schema(
        {
            "aborted": {"type": "boolean"},
            "abort_latency_ms": {"type": "number", "description": "From the call until the dream worked no more"},
            "previous_state": {"type": "string", "enum": list(STATES)},
            "current_state": {"type": "string", "enum": list(STATES)},
            "mandate_met": {"type": "boolean", "description": "Whether that took at most 100 ms"},
            "reason": {"type": "string"},
            "dream_id": {"type": ["string", "null"]},
            "report": REPORT,
        }
    ),
)
