"""patterns: what a closed session shows that others have shown too. A signal is published once per session.

The signals (`processors/talos/session_signals.py`): a tool called more than 20 times beside a friction category, a session
of more than three hours whose goal was not achieved, a friction that follows a state, a friction, observation or insight
that has occurred before. The session in which a recurring one occurred first has shown it too. Two sessions with the same signal
are an emerging signal; the third makes a pattern (views `signals` and `patterns`).
"""

from __future__ import annotations

from collections.abc import Sequence

from processors.session_state import read_state
from processors.stages.stage import Stage
from processors.talos.session_signals import SessionState, Signal, signals
from storage.applied import AppliedPositions
from storage.reader import Reader
from streams.errors import Unavailable
from streams.event_types.derived import PATTERN_SIGNALLED
from streams.events import Event, LoggedEvent, wire_type
from streams.ids import derived_id
from streams.positions import Freshness
from streams.topics import MEMORY

WAIT_S = 10.0


class Patterns(Stage):
    """A closed session -> its signals. Needs the store: it looks at what the session has left there."""

    name = "patterns"
    source = MEMORY
    accepts = frozenset({wire_type("talos.session.closed")})
    batch_size = 100
    gather_s = 0.25

    _applied: AppliedPositions

    def __init__(self, reader: Reader, applied: AppliedPositions) -> None:
        self._reader, self._applied = reader, applied

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        token = Freshness.after(logged.position for logged in events)
        if not await self._applied.wait(token, timeout_s=WAIT_S, stages=["dedup"], patient=not self._applied.is_awaited(self.name)):
            raise Unavailable("The store has not caught up with the log; the session is looked at once it has.")
        return [await self._signals(logged) for logged in events]

    async def _signals(self, logged: LoggedEvent) -> list[Event]:
        session_id = logged.event.data["session_id"]
        state = await self._reader.run(lambda cursor: read_state(cursor, logged.event.namespace, session_id))
        return [] if state is None or state.status != "closed" else self.signalled(logged, state)

    def signalled(self, logged: LoggedEvent, state: SessionState) -> list[Event]:
        """The facts of a session's state: its own signals, and that the first session of a recurring one showed it too."""
        session_id, found = logged.event.data["session_id"], []
        for signal in signals(state):
            for shown_by in dict.fromkeys(name for name in (signal.also, session_id) if name):
                found.append(self._fact_of(logged, signal, shown_by, is_own=shown_by == session_id))
        return found

    def _fact_of(self, logged: LoggedEvent, signal: Signal, session_id: str, *, is_own: bool) -> Event:
        evidence = [{"relation": relation, "id": node_id} for relation, node_id in signal.evidence] if is_own else []
        data: dict[str, object] = {
            "session_id": session_id,
            "description": signal.description,
            "indicators": signal.indicators,
            "evidence": evidence,
        }
        fact = self.fact(logged, PATTERN_SIGNALLED, data | {"signal_id": signal.signal_id})
        identity = derived_id(fact.id, signal.description, session_id)
        return Event(identity, fact.source, fact.type, fact.namespace, fact.time, fact.data)
