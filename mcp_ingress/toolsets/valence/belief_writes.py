"""What the writes of beliefs share: the decided belief as the store has it, and the tensions it is in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.contradictions import Contradicted, contradiction_fields, find_contradictions
from mcp_ingress.services import Published
from mcp_ingress.toolsets.valence.answers import CREATION_FIELDS, submitted
from mcp_ingress.toolsets.valence.belief_queries import Row, find_belief, find_recorded, without_action
from processors.embedding.query import EncodedDocument, encoded_document
from processors.memory.vector_facts import VECTOR_STAGE
from processors.valence.read.tension_candidates import (
    ActiveBeliefs,
    NewBelief,
    Proximity,
    find_tensions,
    nearest_active,
    nearest_records,
)
from processors.valence.rules.beliefs import KIND as BELIEF
from processors.valence.rules.beliefs import Draft, belief_id_of
from processors.valence.rules.tensions import DUPLICATE_COSINE, Finding
from streams.clock import format_time
from streams.errors import Unavailable
from streams.events import Event
from streams.positions import Freshness
from streams.topics import MEMORY


@dataclass(frozen=True)
class BeliefNeighbours:
    """A text that is about to be stated, and what is near to it; nothing without a model."""

    place: Proximity | None = None
    similar: Sequence[dict[str, Any]] = ()
    """Beliefs that may say the same: `{"belief_id", "cosine"}`, nearest first, for the request's event."""
    space: str | None = None
    """What the vector is of."""


async def find_neighbours(call: Call, content: str) -> BeliefNeighbours:
    """The text's vector, and the beliefs near to it that may say the same or contradict it.

    It searches once, before the request is published. While the store does not answer nothing is near: the write goes
    on.
    """
    vector, space = await encoded_document(call.services.embedder, content)
    if vector is None:
        return BeliefNeighbours()
    indexes, namespace = call.services.indexes, call.namespace

    def look(cursor: duckdb.DuckDBPyConnection) -> BeliefNeighbours:
        nearby = indexes.space(space)
        [near] = nearest_records(nearby, vector[None])
        place = Proximity(vector, near)
        active = ActiveBeliefs(cursor, namespace)
        alike = nearest_active(active, nearby, place, DUPLICATE_COSINE)
        return BeliefNeighbours(place, _similar(alike, active.ids(alike)), space)

    try:
        return await call.read(look)
    except Unavailable:
        return BeliefNeighbours()


def _similar(cosines: Mapping[int, float], ids: Mapping[int, str]) -> list[dict[str, Any]]:
    found = [(ids[label], round(min(1.0, cosine), 6)) for label, cosine in cosines.items() if cosine > DUPLICATE_COSINE]
    return [
        {"belief_id": belief_id, "cosine": cosine}
        for belief_id, cosine in sorted(found, key=lambda near: (-near[1], near[0]))
    ]


@dataclass(frozen=True)
class Creation:
    """A request for a new belief: where it went, and what the tool answers of it."""

    published: Published
    belief_id: str
    """The id that the belief has unless it says what another one does."""
    result: Mapping[str, Any] | None
    """What the reducer decided; None while that is not known."""
    problem: Unavailable | None
    fields: Mapping[str, Any]
    """`belief`, how it was created, `tensions_detected`, and `contradicts` where other memories are contradicted."""
    is_pending: bool
    """Whether the decision is not known, or what was written before has no vectors yet: tensions may be missing."""


async def create(call: Call, request: Event, draft: Draft) -> Creation:
    """Publish the request with its neighbours, await the decision, and find the belief's tensions."""
    near = await find_neighbours(call, draft.content)
    published = await writes.publish(call, with_similar(request, near))
    belief_id = belief_id_of(request)
    result, problem = await writes.decision(call, published, stated_as=belief_id)
    belief, tensions, is_compared = submitted(request, belief_id, draft), list[Row](), result is not None
    others: dict[str, Any] = {}
    if result is not None and result["deduplicated"]:
        belief = await belief_after(call, result["belief_id"])
        others = await contradictions_of(call, request, near, tensions)  # it holds again, whatever changed it meanwhile
    elif result is not None:
        is_compared = await earlier_are_embedded(call, published)
        belief, tensions = await read_new_belief(call, belief_id, near)
        others = await contradictions_of(call, request, near, tensions)
    how = {name: None if result is None else result[name] for name in CREATION_FIELDS}
    fields = {"belief": belief, **how, "tensions_detected": tensions, **others}
    return Creation(published, belief_id, result, problem, fields, not is_compared)


async def earlier_are_embedded(call: Call, published: Published) -> bool:
    """Wait, within the wait for writes, until all that was written before has vectors; whether it has.

    Without them a belief of a moment ago that shares no entity would not be found.
    """
    if call.services.embedder is None:
        return True
    before = Freshness({at: offset - 1 for at, offset in published.freshness.on_topic(MEMORY.name)})
    return await call.applied(
        before, timeout_s=writes.time_left(call, call.services.limits.write_wait_s), stages=[VECTOR_STAGE]
    )


async def contradictions_of(
    call: Call, request: Event, near: BeliefNeighbours, tensions: Sequence[Row]
) -> dict[str, Any]:
    """The field `contradicts`: the other beliefs of these tensions, then what else the belief changes."""
    belief_id = belief_id_of(request)
    sides = [(tension, "b" if tension["belief_a_id"] == belief_id else "a") for tension in tensions]
    beliefs = [
        Contradicted(BELIEF, tension[f"belief_{side}_id"], tension[f"belief_{side}_content"], "tension")
        for tension, side in sides
    ]
    known = {belief.id for belief in beliefs}
    encoded = None if near.place is None else EncodedDocument(near.place.vector, near.space)
    changed = (await find_contradictions(call, request, encoded)).found
    return contradiction_fields([*beliefs, *(each for each in changed if each.id not in known)])


def with_similar(request: Event, near: BeliefNeighbours) -> Event:
    """The request with the beliefs that may say the same; its id stays that of the request."""
    return writes.with_findings(request, {"similar": near.similar or None})


async def belief_after(call: Call, belief_id: str) -> Row:
    """The belief with this id, which a reducer has just named."""
    return await call.read(lambda cursor: _belief_after(cursor, call.namespace, belief_id))


async def read_new_belief(call: Call, belief_id: str, near: BeliefNeighbours) -> tuple[Row, list[Row]]:
    """A belief that was just made, and its tensions, worst first.

    Recorded ones are as they are, the others as the detector will record them by the same rules over the same store.
    """

    def read(cursor: duckdb.DuckDBPyConnection) -> tuple[Row, list[Row]]:
        belief = _belief_after(cursor, call.namespace, belief_id)
        return belief, _tensions(cursor, call, belief, _looked_again(call, near))

    return await call.read(read)


def _looked_again(call: Call, near: BeliefNeighbours) -> BeliefNeighbours:
    """What is near to the text now: with what has got its vector since the request was made."""
    if near.place is None:
        return near
    indexes, vector = call.services.indexes, near.place.vector
    [matches] = nearest_records(indexes.space(near.space), vector[None])
    return BeliefNeighbours(Proximity(vector, matches), near.similar, near.space)


def _belief_after(cursor: duckdb.DuckDBPyConnection, namespace: str, belief_id: str) -> Row:
    belief = find_belief(cursor, namespace, belief_id)
    if belief is None:
        raise Unavailable("The store is behind its own decision; ask for the belief in a moment.")
    return belief


def _tensions(cursor: duckdb.DuckDBPyConnection, call: Call, belief: Row, near: BeliefNeighbours) -> list[Row]:
    linked = frozenset(link["entity"]["id"] for link in belief["entities"])
    stated = NewBelief(belief["status"] in ("active", "disputed"), linked, belief["supersedes_id"])
    placed = {} if near.place is None else {belief["id"]: near.place}
    active = ActiveBeliefs(cursor, call.namespace)
    space = call.services.indexes.space(near.space)
    conflicts = find_tensions(active, space, {belief["id"]: stated}, placed)[belief["id"]]
    recorded = find_recorded(cursor, call.namespace, [finding.tension_id for finding, _ in conflicts])
    return [
        without_action(recorded[finding.tension_id])
        if finding.tension_id in recorded
        else _ahead(finding, {belief["id"]: belief["content"], other.belief_id: other.content}, call)
        for finding, other in conflicts
    ]


def _ahead(finding: Finding, contents: Mapping[str, str], call: Call) -> Row:
    return {
        "id": finding.tension_id,
        "belief_a_id": finding.belief_a_id,
        "belief_b_id": finding.belief_b_id,
        "belief_a_content": contents[finding.belief_a_id],
        "belief_b_content": contents[finding.belief_b_id],
        "type": finding.type,
        "description": finding.description,
        "severity": finding.severity,
        "status": "detected",
        "resolution": None,
        "resolved_at": None,
        "detected_at": format_time(call.clock.now()),
        "score": finding.score,
        "materiality": finding.materiality,
        "suggested_action": finding.suggested_action,
    }
