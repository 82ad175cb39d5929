"""patterns: what a closed session shows that others have shown too. A signal is published once per session.

Three signals (talos.md 3.4): a tool called more than 20 times beside a friction category, a session of more than
three hours whose goal was not achieved, and a friction that has occurred before. Two sessions with the same signal
are an emerging signal; the third makes a pattern (views `signals` and `patterns`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import duckdb

from processors.stages.stage import Stage
from storage.applied import AppliedPositions
from storage.reader import Reader
from streams.errors import Unavailable
from streams.event_types.derived import PATTERN_SIGNALLED
from streams.events import Event, LoggedEvent, wire_type
from streams.ids import derived_id
from streams.positions import Freshness
from streams.topics import MEMORY

MANY_CALLS = 20
LONG_SESSION_S = 10_800
WAIT_S = 10.0


class SessionState(NamedTuple):
    """What is known of a closed session."""

    status: str
    duration_s: int
    goal_achieved: bool | None
    busy_tools: list[str]
    friction_categories: list[str]
    recurring: list[tuple[str, str]]


def signals(state: SessionState) -> Iterator[tuple[str, list[str]]]:
    """Descriptions of what the session shows, each with its indicators. Pure."""
    for tool in state.busy_tools:
        for category in state.friction_categories:
            yield (
                f"Tool {tool} called >{MANY_CALLS} times correlates with {category} friction",
                [f"{tool} called more than {MANY_CALLS} times", f"{category} friction logged"],
            )
    if state.duration_s > LONG_SESSION_S and state.goal_achieved is not True:
        yield "Session longer than 3 hours without achieving its goal", ["session duration > 3 hours", "goal not achieved"]
    for canonical_id, description in state.recurring:
        yield f"Recurring friction: {description}", [f"friction {canonical_id} occurs again"]


class Patterns(Stage):
    """A closed session -> its signals. Needs the store: it looks at what the session has left there."""

    name = "patterns"
    source = MEMORY
    accepts = frozenset({wire_type("talos.session.closed")})
    batch_size = 100
    gather_s = 0.25

    def __init__(self, reader: Reader, applied: AppliedPositions) -> None:
        self._reader, self._applied = reader, applied

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        token = Freshness.after(logged.position for logged in events)
        if not await self._applied.wait(token, timeout_s=WAIT_S, stages=["dedup"], patient=True):
            raise Unavailable("The store has not caught up with the log; the session is looked at once it has.")
        return [await self._signals(logged) for logged in events]

    async def _signals(self, logged: LoggedEvent) -> list[Event]:
        session_id = logged.event.data["session_id"]
        state = await self._reader.run(lambda cursor: read_state(cursor, logged.event.namespace, session_id))
        if state is None or state.status != "closed":
            return []
        found = []
        for description, indicators in signals(state):
            data = {"session_id": session_id, "description": description, "indicators": indicators}
            fact = self.fact(logged, PATTERN_SIGNALLED, data | {"signal_id": derived_id("signal", description)})
            identity = derived_id(fact.id, description)
            found.append(Event(identity, fact.source, fact.type, fact.namespace, fact.time, fact.data))
        return found


def read_state(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> SessionState | None:
    """The session's state, or None when there is no such session."""
    key: list[Any] = [namespace, session_id]
    row = cursor.execute(
        "SELECT status, duration_seconds, goal_achieved FROM talos_sessions WHERE namespace = ? AND session_id = ?", key
    ).fetchone()
    if row is None:
        return None
    busy = cursor.execute(
        "SELECT tool_name FROM tool_calls WHERE namespace = ? AND session_id = ? "
        f"GROUP BY tool_name HAVING count(*) > {MANY_CALLS} ORDER BY tool_name",
        key,
    ).fetchall()
    frictions = cursor.execute(
        "SELECT category, canonical_id, occurrence, description FROM frictions WHERE namespace = ? AND session_id = ? ORDER BY created_at",
        key,
    ).fetchall()
    return SessionState(
        status=row[0],
        duration_s=row[1] or 0,
        goal_achieved=row[2],
        busy_tools=[name for (name,) in busy if name],
        friction_categories=sorted({category for category, *_ in frictions if category}),
        recurring=sorted({(canonical, text) for _, canonical, occurrence, text in frictions if occurrence > 1}),
    )
