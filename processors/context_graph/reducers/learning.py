"""Reducers of what memories teach (memory topic): the memory is kept, and its namespace's means move."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from processors.context_graph.rules.learning import Learning, Means
from processors.context_graph.rules.memories import keep, keep_reads, refusal
from processors.frame.reducer import Key, Outcome, Reducer, Rows, at
from streams.event_types.context_graph import MEMORY_INJECTED
from streams.events import Event, LoggedEvent

UTL = "context_utl"


def learn(event: Event, rows: Rows, learning: Learning | None = None) -> None:
    """Count an interaction, and with `learning` move the means."""
    means = Means.of(rows.get(UTL))
    rows.put(UTL, asdict(means.after(learning, at(event.time))))


def learn_reads() -> Iterable[tuple[str, Key]]:
    """The rows that `learn` will ask for."""
    yield UTL, ()


def _injected_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield from keep_reads(logged.event)
    yield from learn_reads()


def _injected(logged: LoggedEvent, rows: Rows) -> Outcome:
    event = logged.event
    if (refused := refusal(event)) is not None:
        return refused
    kept, learning = keep(event, rows), Learning.of(event.data)
    learn(event, rows, learning)
    findings = None if learning is None else asdict(learning)
    return Outcome(result=kept.result | {"learning": findings})


REDUCERS = {MEMORY_INJECTED: Reducer(_injected, _injected_reads)}
