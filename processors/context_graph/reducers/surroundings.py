"""Reducers of what a dream made of surroundings, and of questions that were asked again and again. Derived topic."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from processors.context_graph.rules.surroundings import REPEATED_QUESTIONS, SURROUNDINGS
from processors.frame.reducer import Key, Reducer, Rows, at
from processors.memory.vector_facts import decode_vector
from streams.event_types.context_surroundings import QUESTIONS_REPEATED, SURROUNDINGS_EMBEDDED
from streams.events import LoggedEvent
from streams.ids import document_label


def _embedded_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    for one in logged.event.data["surroundings"]:
        yield SURROUNDINGS, (one["memory_id"], logged.event.data["space"])


def _embedded(logged: LoggedEvent, rows: Rows) -> None:
    """The first vector of a memory in a space stays. Raises ValueError when one is not what it should be."""
    event, data = logged.event, logged.event.data
    about = {"space": data["space"], "dream_id": data["dream_id"], "embedded_at": at(event.time)}
    for one in data["surroundings"]:
        vector = decode_vector(one["vector"])
        if vector.shape != (data["dim"],) or not np.isfinite(vector).all():
            raise ValueError(f"a vector is not {data['dim']} finite numbers")
        if rows.get(SURROUNDINGS, one["memory_id"], data["space"]) is None:
            label = document_label(event.namespace, one["memory_id"])
            rows.put(SURROUNDINGS, {"memory_id": one["memory_id"], "label": label, "vector": vector, **about})


def _repeated_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    for query_id in logged.event.data["query_vector_ids"]:
        yield REPEATED_QUESTIONS, (query_id,)


def _repeated(logged: LoggedEvent, rows: Rows) -> None:
    """The first dream that found it stands."""
    about = {"dream_id": logged.event.data["dream_id"], "repeated_at": at(logged.event.time)}
    for query_id in logged.event.data["query_vector_ids"]:
        if rows.get(REPEATED_QUESTIONS, query_id) is None:
            rows.put(REPEATED_QUESTIONS, {"query_vector_id": query_id, **about})


REDUCERS = {
    SURROUNDINGS_EMBEDDED: Reducer(_embedded, _embedded_reads),
    QUESTIONS_REPEATED: Reducer(_repeated, _repeated_reads),
}
