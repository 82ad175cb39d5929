"""Reducers of goals (memory topic): the North Star of the first bootstrap, and the themes under goals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from processors.context_graph.rules.goals import (
    LEAST_MEMBERS,
    NORTH_STAR,
    PARENT_ALIGNMENT,
    is_strong,
    north_star_id,
    subgoal_id,
)
from processors.frame.reducer import Key, Outcome, Reducer, Row, Rows, at
from streams.event_types.context_goals import GOAL_BOOTSTRAPPED, SUBGOALS_DISCOVERED
from streams.events import Event, LoggedEvent

GOALS = "context_goals"
_FOUND = ("goal_text", "medoid_id", "member_ids", "confidence", "coherence")


def _bootstrap_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield GOALS, (north_star_id(logged.event.namespace),)


def _bootstrapped(logged: LoggedEvent, rows: Rows) -> Outcome:
    """The first candidate becomes the North Star.

    One of fewer than LEAST_MEMBERS memories takes in the members of a larger one.
    """
    event, goal_id = logged.event, north_star_id(logged.event.namespace)
    known, found = rows.get(GOALS, goal_id), event.data.get("goal")
    if known is None and found is None:
        sentence = "There is no North Star yet, and no candidate was found: store some memories first."
        return Outcome("refused", "bootstrap_error", sentence, {"reason": "insufficient_data"})
    is_renewed = known is not None and found is not None and _outgrown(known, found)
    if found is not None and (known is None or is_renewed):
        _put(event, rows, {"goal_id": goal_id, "level": NORTH_STAR}, found, known)
    return Outcome(
        result={
            "goal_id": goal_id,
            "source": "discovered" if known is None else "existing",
            "status": "bootstrapped" if known is None else "reinitialized",
            "is_renewed": is_renewed,
            "event_id": event.id,
        }
    )


def _outgrown(known: Row, found: Mapping[str, Any]) -> bool:
    return len(known["member_ids"]) < min(LEAST_MEMBERS, len(found["member_ids"]))


def _subgoal_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    data = logged.event.data
    yield GOALS, (data["parent_goal_id"],)
    for found in data["goals"]:
        yield GOALS, (subgoal_id(logged.event.namespace, data["parent_goal_id"], found["medoid_id"]),)


def _discovered(logged: LoggedEvent, rows: Rows) -> Outcome:
    event, parent = logged.event, logged.event.data["parent_goal_id"]
    if rows.get(GOALS, parent) is None:
        sentence = f"No goal has the id {parent[:80]!r}."
        return Outcome("refused", "subgoal_error", sentence, {"reason": "not_found", "field": "parent_goal_id"})
    ids = []
    for found in event.data["goals"]:
        goal_id = subgoal_id(event.namespace, parent, found["medoid_id"])
        is_child = found["alignment"] >= PARENT_ALIGNMENT
        about = {"goal_id": goal_id, "level": found["level"], "parent_alignment": found["alignment"]}
        about["parent_goal_id"] = parent if is_child else None
        _put(event, rows, about, found, rows.get(GOALS, goal_id))
        ids.append(goal_id)
    return Outcome(result={"goal_ids": ids, "event_id": event.id})


def _put(event: Event, rows: Rows, about: Row, found: Mapping[str, Any], known: Row | None) -> None:
    moment = at(event.time)
    told = {name: found[name] for name in _FOUND}
    told["dominant_embedders"] = found.get("dominant_embedders") or []
    told["is_strong"] = is_strong(len(found["member_ids"]), found["coherence"])
    times = {"created_at": moment if known is None else known["created_at"], "updated_at": moment}
    rows.put(GOALS, about | told | times)


REDUCERS = {
    GOAL_BOOTSTRAPPED: Reducer(_bootstrapped, _bootstrap_reads),
    SUBGOALS_DISCOVERED: Reducer(_discovered, _subgoal_reads),
}
