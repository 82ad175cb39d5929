"""patterns: what a closed session shows that others have shown too. A signal is published once per session.

The signals (`processors/talos/rules/session_signals.py`): a tool called more than 20 times beside a friction category,
a session of more than three hours whose goal was not achieved, a friction that follows a state, a friction,
observation or insight that has occurred before. The session in which a recurring one occurred first has shown it too.
Two sessions with the same signal are an emerging signal; the third makes a pattern (views `signals` and `patterns`),
which is published and can be searched for.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb

from processors.frame.stage import Stage, StageParts
from processors.memory.stages.embed import Embed
from processors.talos.read.session_state import read_state
from processors.talos.rules.identifiers import wordless_id
from processors.talos.rules.session_signals import SessionState, Signal, signals
from storage.applied import AppliedPositions
from storage.reader import Reader
from streams.event_types.memory import EMBEDDED
from streams.event_types.talos import PATTERN_DETECTED, PATTERN_SIGNALLED
from streams.events import Event, LoggedEvent, wire_type
from streams.ids import derived_id
from streams.positions import Freshness
from streams.topics import MEMORY

OWN_WAIT_S = 2.0
SESSIONS_OF_A_PATTERN = 3
PATTERN_TELEMETRY = wire_type("knowledge.pattern_detected")


class Patterns(Stage):
    """A closed session -> its signals. Needs the store: it looks at what the session has left there."""

    name = "patterns"
    source = MEMORY
    waits_for = frozenset({"dedup"})
    needs_store = True
    accepts = frozenset({wire_type("talos.session.closed")})
    batch_size = 100
    linger_s = 1.0

    _applied: AppliedPositions

    def __init__(self, reader: Reader, applied: AppliedPositions, embed: Embed) -> None:
        self._reader, self._applied, self._embed = reader, applied, embed
        self._derived = Freshness()
        """What this process has derived from so far: its facts are on the log, or about to be."""

    @classmethod
    def made(cls, parts: StageParts) -> Patterns:
        store = parts.needed_store
        return cls(store.reader, store.applied, parts.stage(Embed))

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        token = Freshness.after(logged.position for logged in events)
        await self.store_has(token, ["dedup"])
        found = [await self._signals(logged) for logged in events]
        if any(found):  # what earlier sessions have shown; when that comes too late, the next session makes the pattern
            await self._applied.wait(self._derived, timeout_s=OWN_WAIT_S, stages=[self.name])
        shown: list[Event] = []
        patterns: set[tuple[str, str]] = set()
        for number, (logged, signalled) in enumerate(zip(events, found, strict=True)):
            shown += signalled
            found[number] = signalled + await self._detected(logged, signalled, shown, patterns)
        self._derived = self._derived.merged(token)
        return [*found]

    async def _detected(
        self, logged: LoggedEvent, signalled: Sequence[Event], shown: Sequence[Event], patterns: set[tuple[str, str]]
    ) -> list[Event]:
        """The facts of new patterns. `shown`: signals of this batch until now; `patterns`: those of it, which grow."""
        namespace, session_id = logged.event.namespace, str(logged.event.data["session_id"])
        names = {str(fact.data["signal_id"]): str(fact.data["description"]) for fact in signalled}
        asked = [signal_id for signal_id in names if (namespace, signal_id) not in patterns]
        here = {
            (str(fact.data["signal_id"]), str(fact.data["session_id"])) for fact in shown if fact.namespace == namespace
        }
        made = await self._reader.run(lambda cursor: new_patterns(cursor, namespace, asked, here)) if asked else []
        patterns |= {(namespace, pattern_id) for pattern_id in made}
        facts = await self._embed.facts_of_texts(
            self.fact(logged, EMBEDDED, {}, about=("vectors",)),
            [(pattern_id, names[pattern_id]) for pattern_id in made],
        )
        for pattern_id in made:
            pattern = {"pattern_id": pattern_id, "name": names[pattern_id], "session_id": session_id}
            facts.append(self.fact(logged, PATTERN_DETECTED, pattern, about=(pattern_id,)))
            facts.append(
                self.fact(logged, PATTERN_TELEMETRY, pattern_telemetry(pattern_id, session_id)).changed(
                    id=derived_id(namespace, PATTERN_TELEMETRY, pattern_id)
                )
            )
        return facts

    async def _signals(self, logged: LoggedEvent) -> list[Event]:
        session_id = logged.event.data["session_id"]
        state = await self._reader.run(lambda cursor: read_state(cursor, logged.event.namespace, session_id))
        return [] if state is None or state.status != "closed" else self.signalled(logged, state)

    def signalled(self, logged: LoggedEvent, state: SessionState) -> list[Event]:
        """The facts of a session's signals. The session that showed a recurring signal first gets a fact too."""
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
        data["signal_id"] = signal.signal_id
        return self.fact(logged, PATTERN_SIGNALLED, data, about=(signal.description, session_id))


def new_patterns(
    cursor: duckdb.DuckDBPyConnection, namespace: str, signal_ids: list[str], shown: set[tuple[str, str]]
) -> list[str]:
    """Those of these signals that three sessions have shown and that are not a pattern yet.

    `shown`: (signal, session) of the batch, which are not stored yet.
    """
    known = cursor.execute(
        "SELECT record_id FROM documents WHERE namespace = ? AND toolset = 'talos' AND kind = 'Pattern'", [namespace]
    ).fetchall()
    stored = cursor.execute(
        "SELECT signal_id, session_id FROM pattern_signals "
        "WHERE namespace = ? AND signal_id IN (SELECT unnest(?::VARCHAR[]))",
        [namespace, signal_ids],
    ).fetchall()
    sessions = Counter(signal_id for signal_id, _ in {*stored, *shown})
    return [name for name in signal_ids if sessions[name] >= SESSIONS_OF_A_PATTERN and (name,) not in known]


def pattern_telemetry(pattern_id: str, session_id: str) -> dict[str, Any]:
    """The telemetry of a new pattern: its id without the words, and the session that made it one."""
    attributes = {"talos.id": wordless_id(pattern_id), "talos.category": "pattern", "talos.session.id": session_id}
    span_id = hashlib.blake2b(pattern_id.encode(), digest_size=8).hexdigest()
    return {"attributes": attributes, "trace_id": f"sess-{session_id}", "span_id": span_id}
