"""The part of the story that Valence's questions are asked about, told by events through the real reducers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from processors.valence.rules.beliefs import belief_id_of
from processors.valence.rules.identifiers import PATTERN, SESSION, object_id
from processors.valence.rules.tensions import tension_id
from storage.database import Database
from streams.events import Event
from streams.topics import DERIVED, INVOCATIONS
from tests.processors.harness import Store, event
from tests.sql.rows import MONDAY, TUESDAY

ROOM = "!room:example.com"


def tell_valence(database: Database) -> None:
    """A conversation on Monday, what was concluded from it, and what became of that on Tuesday."""
    store = Store(database)
    session = _told(store, "session.started", {"platform": "matrix", "external_room_id": ROOM}, 0)
    session_id = object_id(session, SESSION)
    for number, (role, content) in enumerate(
        (("user", "Deploy with blue green from now on"), ("assistant", "Noted")), 1
    ):
        _told(store, "exchange.added", {"session_id": session_id, "role": role, "content": content}, number)
    insight = _told(
        store,
        "insight.extracted",
        {"session_id": session_id, "content": "Deployments use blue green", "request_id": "toolu-7"},
        3,
    )
    call = {"tool": "insight_extract", "outcome": "ok", "request_id": "toolu-7"}
    store.publish(event("tool.invoked", call, id="call-7", time=insight.time, namespace="ns"), topic=INVOCATIONS.name)
    pattern = _told(
        store, "pattern.recorded", {"type": "preference", "description": "Prefers blue green deployments"}, 4
    )
    _told(store, "pattern.reinforced", {"pattern_id": object_id(pattern, PATTERN), "session_id": session_id}, 5)
    port = _told(
        store, "belief.created", {"content": "The gateway listens on 6379", "valid_from": "2026-02-01T00:00:00Z"}, 6
    )
    denied = _told(store, "belief.created", {"content": "Deployments never use blue green", "confidence": 0.4}, 7)
    _contradict(store, belief_id_of(insight), belief_id_of(denied))
    for old, content, reason in (
        (port, "The gateway listens on 6380", "moved"),
        (insight, "Deployments use canaries", "safer"),
    ):
        superseded = {"old_belief_id": belief_id_of(old), "new_content": content, "reason": reason}
        _told(store, "belief.superseded", superseded, int((TUESDAY - MONDAY) / timedelta(minutes=1)))


def _told(store: Store, short_type: str, data: dict[str, Any], minute: int) -> Event:
    identity = data.get("new_content") or f"{short_type}-{minute}"
    made = event(f"valence.{short_type}", data, id=identity, time=_moment(minute), namespace="ns")
    store.publish(made)
    return made


def _moment(minute: int) -> datetime:
    return MONDAY.replace(tzinfo=UTC) + timedelta(minutes=minute)


def _contradict(store: Store, one: str, other: str) -> None:
    """What the detector says of the two."""
    pair = {
        "tension_id": tension_id(one, other),
        "belief_a_id": one,
        "belief_b_id": other,
        "type": "contradiction",
        "severity": "medium",
    }
    measured = {
        "signal": 0.4,
        "score": 0.4,
        "materiality": 0.23,
        "consistency_a": 0.3,
        "consistency_b": 0.1,
        "cosine": 0.84,
    }
    described = {"description": "Contradiction: one denies what the other says.", "suggested_action": None}
    found = event(
        "valence.tension.detected", pair | measured | described, id="tension-1", time=_moment(8), namespace="ns"
    )
    store.publish(found, topic=DERIVED.name)
