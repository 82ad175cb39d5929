"""R14, exhausted: every order in which the topics of a small log can be read, for each family of reducers that meets
others across topics.

What is drawn at random from larger logs, in batches of any size, is in `test_interleavings.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from processors.frame.batch import reduce_batch
from processors.frame.reducer import reducers
from streams.events import event_types, wire_type
from streams.log.base import Record
from tests.processors.harness import NOW, Store
from tests.properties.all_types import every_type
from tests.properties.test_interleavings import Partitions, _append, apply, contents

STORIES: dict[str, tuple[str, ...]] = {
    # a session that telemetry tells of too; what is found in its entries, and what is pruned of it
    "talos": (
        *("talos.session.opened", "talos.journal.written", "talos.session.closed"),
        "talos.journal.corrected",
        *("session.event", "context.injected", "knowledge.friction"),
        *("talos.entities.extracted", "talos.pattern.signalled", "talos.entities.pruned"),
    ),
    # a belief is superseded and a tension resolved while others tell what they found between them
    "valence": (
        *("valence.belief.created", "valence.belief.superseded", "valence.tension.resolved"),
        "valence.belief.retracted",
        *("valence.tension.detected", "valence.tension.closed", "valence.belief.reinforced"),
        *("tool.invoked",),
    ),
    # a chat's insights and patterns, and how a pattern faded meanwhile
    "valence_kb": (
        *("valence.session.started", "valence.insight.extracted", "valence.pattern.recorded"),
        *("valence.pattern.status_changed", "valence.entity.resolved"),
        *("session.event",),
        *("tool.invoked",),
    ),
    # memories and what judges say of them, while their vectors come, the space changes and an operator gives up dead
    # letters
    "cognitive": (
        *("cm.l0.stored", "cm.wm.updated", "cm.judge.scored"),
        *("space.registered", "memory.embedded", "memory.change_found", "space.switched", "dead_letter.dropped"),
        *("gen_ai.request",),
    ),
    # a memory is stored twice while searches return it and its vector comes
    "context_graph": (
        *("context.memory.stored", "context.memory.stored", "context.memory.injected"),
        *("context.memory.recalled", "tool.invoked"),
        *("memory.embedded", "session.event"),
    ),
    # memories become one while searches return them and their vectors come
    "context_ends": (
        *("context.memory.stored", "context.memories.merged", "context.memory.injected"),
        *("context.memory.recalled", "tool.invoked"),
        *("memory.embedded", "session.event"),
    ),
    # a search walks edges while a stage finds some and a dream changes them
    "context_edges": (
        *("context.memory.stored", "context.memories.merged", "context.memory.injected"),
        *("context.edges.found", "context.edges.changed", "context.edges.found"),
        *("context.memory.recalled", "tool.invoked"),
    ),
    # a dream begins and is aborted while it changes edges and a stage finds others
    "context_dreams": (
        *("context.memory.stored", "context.dream.requested", "context.dream.aborted"),
        *("context.edges.found", "context.edges.changed", "context.dream.progressed", "context.dream.finished"),
        *("context.memory.recalled", "tool.invoked"),
    ),
    # a dream makes vectors of surroundings and finds repeated questions while memories come and become one
    "context_surroundings": (
        *("context.memory.stored", "context.dream.requested", "context.memories.merged"),
        *("context.surroundings.embedded", "context.questions.repeated", "context.edges.changed"),
        *("context.memory.recalled", "tool.invoked"),
    ),
    # vectors are made, results judged and profiles changed while searches return memories and their vectors come
    "context_vectors": (
        *("context.vector.computed", "context.vector.fused", "context.synergy.updated", "context.profile.changed"),
        "context.threshold.recalibrated",
        *("context.memory.recalled", "tool.invoked"),
        *("memory.embedded", "session.event"),
    ),
    # a purpose and its themes are found while memories come and searches return them
    "context_goals": (
        *("context.memory.stored", "context.goal.bootstrapped", "context.subgoals.discovered"),
        *("context.memory.recalled", "tool.invoked"),
        *("memory.embedded", "session.event"),
    ),
    # couplings, modulators and broadcasts change the state by which searches go
    "context_state": (
        *("context.coupling.adjusted", "context.modulator.adjusted", "context.workspace.broadcast"),
        "context.memory.missed",
        *("context.memory.stored", "context.memory.recalled", "memory.embedded", "tool.invoked"),
    ),
    # drift is observed and corrected while memories are stored and searches return them
    "context_drift": (
        *("context.memory.stored", "context.drift.corrected", "context.memory.injected"),
        *("context.drift.observed", "memory.embedded", "context.memory.recalled", "tool.invoked"),
        "session.event",
    ),
}


def lying(story: str) -> Partitions:
    """A partition for each topic, its events in the order told."""
    of_type = {dict(outgoing.headers)["ce_type"].decode(): outgoing for outgoing in reversed(every_type("north"))}
    partitions: Partitions = {}
    for short in STORIES[story]:
        outgoing = of_type[wire_type(short)]
        _append(partitions, outgoing, 0)
    return partitions


def interleavings(queues: list[list[Record]]) -> Iterator[list[Record]]:
    """Every merge of the queues that keeps the order of each."""
    if not any(queues):
        yield []
    for number, queue in enumerate(queues):
        if queue:
            rest = [*queues[:number], queue[1:], *queues[number + 1 :]]
            for tail in interleavings(rest):
                yield [queue[0], *tail]


Read = tuple[int, ...]
"""How much of each topic was read."""


def reads(queues: list[list[Record]]) -> Iterator[Read]:
    """Every state that an interleaving passes, from nothing to everything."""
    return product(*(range(len(queue) + 1) for queue in queues))


def told(queues: list[list[Record]], read: Read) -> list[Record]:
    """What was read, one topic after the other."""
    return [record for queue, count in zip(queues, read, strict=True) for record in queue[:count]]


def steps(queues: list[list[Record]]) -> Iterator[tuple[Read, Read, Record]]:
    """(state, state after it, record between them): every step of an interleaving."""
    for read in reads(queues):
        for number, queue in enumerate(queues):
            if read[number] < len(queue):
                yield read, (*read[:number], read[number] + 1, *read[number + 1 :]), queue[read[number]]


def decided(store: Store, order: list[Record]) -> dict[str, Any]:
    """What one batch in this order changes in an empty store: every row, and what enters the indexes."""
    reduced = reduce_batch(store.writer, order, NOW)
    changes = reduced.changes
    rows = {table: sorted(map(repr, appended)) for table, appended in changes.appended.items()}
    states = {table: sorted(map(repr, by_key.items())) for table, by_key in changes.state.items()}
    indexed = sorted(map(repr, [*reduced.indexed.documents, *reduced.indexed.vectors]))
    return {
        "rows": rows,
        "states": states,
        "fresh": sorted(map(repr, changes.fresh)),
        "events": sorted(logged.event.id for logged in reduced.applied),
        "removed": sorted(changes.removed),
        "indexed": indexed,
        "buried": reduced.buried,
    }


@pytest.mark.parametrize("story", STORIES)
def test_in_a_batch_each_record_leads_from_every_state_to_the_one_state_that_follows(story: str) -> None:
    """What the batch has changed so far is a state, and how much of each topic was read names it.

    When every record leads from it to the same state as any other way there, all interleavings end in one.
    """
    store = Store()
    queues = list(lying(story).values())
    states = {read: decided(store, told(queues, read)) for read in reads(queues)}
    for read, further, record in steps(queues):
        assert decided(store, [*told(queues, read), record]) == states[further], (read, further)
    *_, everything = states.values()
    assert len(states) >= 32 and everything["events"] and not everything["buried"]
    store.database.close()


@pytest.mark.crash
@pytest.mark.parametrize("story", STORIES)
def test_every_interleaving_of_a_small_log_decides_the_same(story: str) -> None:
    """The same without the argument: each order, a batch of its own."""
    store = Store()
    queues = list(lying(story).values())
    expected = decided(store, [record for queue in queues for record in queue])
    count = 0
    for order in interleavings(queues):
        assert decided(store, order) == expected
        count += 1
    assert count >= 140 and not expected["buried"]
    store.database.close()


@pytest.mark.crash
@pytest.mark.timeout(900)
@pytest.mark.parametrize("story", STORIES)
def test_each_record_committed_alone_leads_from_every_state_to_the_one_state_that_follows(story: str) -> None:
    """With each record a transaction of its own.

    A state is how much of each topic was read: when every record leads from it to the same state as any other way
    there, all interleavings end in one.
    """
    queues = list(lying(story).values())
    states = {read: after(told(queues, read)) for read in reads(queues)}
    for read, further, record in steps(queues):
        assert after([*told(queues, read), record]) == states[further], (read, further)


def after(records: list[Record]) -> dict[str, list[Any]]:
    """The store when each of these records was a transaction of its own."""
    store = Store()
    for record in records:
        apply(store, [record], {})
    found = contents(store)
    store.database.close()
    return found


def test_the_stories_hold_every_topic_and_every_family_of_reducers() -> None:
    kinds = {wire_type(short) for story in STORIES.values() for short in story}
    assert {event_types()[kind].topic for kind in kinds} == {kind.topic for kind in event_types().values()}
    families = {reducer.apply.__module__ for reducer in reducers().values()}
    assert families == {reducer.apply.__module__ for kind, reducer in reducers().items() if kind in kinds}
