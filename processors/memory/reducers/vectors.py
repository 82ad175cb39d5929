"""Vectors become rows: of whole texts, of passages of long ones; and the texts that get none.

Fed by the derived topic only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from processors.frame.reducer import (
    EMBEDDINGS,
    PASSAGES,
    SPACES,
    TURN_EMBEDDINGS,
    TURN_PASSAGES,
    Key,
    Outcome,
    Reducer,
    Rows,
    at,
)
from processors.memory.vector_facts import decode_vector
from storage.search.records.passages import passage_label
from storage.search.vectors.token_vectors import unpack
from streams.event_types.memory import EMBEDDED, EMBEDDING_FAILED
from streams.events import LoggedEvent
from streams.ids import document_label

EMBEDDING_RETRIES, EMBEDDING_FAILURES = "embedding_retries", "embedding_failures"


def _embedded_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    space = logged.event.data["space"]
    of_turns = logged.event.data.get("of_turns")
    whole, parts = (TURN_EMBEDDINGS, TURN_PASSAGES) if of_turns else (EMBEDDINGS, PASSAGES)
    yield SPACES, (space,)
    for item in logged.event.data["vectors"]:
        label = document_label(logged.event.namespace, item["record_id"])
        passage = item.get("passage")
        yield (
            (whole, (label, space)) if passage is None else (parts, (passage_label(label, passage["number"]), space))
        )


def _embedded(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """Store each vector once, whichever event brings it. The parts of a long text may come in any order, and again."""
    data = logged.event.data
    of_turn = bool(data.get("of_turns"))
    for item in data["vectors"]:
        label = document_label(logged.event.namespace, item["record_id"])
        model = {
            "space": data["space"],
            "record_id": item["record_id"],
            "model_id": data["model_id"],
            "dim": data["dim"],
        }
        numbers = _numbers(item, data["dim"])
        if (passage := item.get("passage")) is not None:
            place = {"number": passage["number"], "char_start": passage["start"], "char_end": passage["end"]}
            number = passage_label(label, passage["number"])
            rows.embed_passage({"label": number, "owner_label": label, **model, **place, **numbers}, of_turn=of_turn)
            continue
        about = {"dtype": "float32", "is_trained": data["trained"], "passages": item.get("passages")}
        rows.embed({"label": label, **model, **about, **numbers}, of_turn=of_turn)
        if data.get("tries", 1) > 1:
            rows.put(
                EMBEDDING_RETRIES, {"record_id": item["record_id"], "space": data["space"], "tries": data["tries"]}
            )
    return None


def _embedding_failed_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield from (
        (EMBEDDING_FAILURES, (record_id, logged.event.data["space"])) for record_id in logged.event.data["record_ids"]
    )


def _embedding_failed(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """The first reason stays."""
    data, moment = logged.event.data, at(logged.event.time)
    for record_id in data["record_ids"]:
        if rows.get(EMBEDDING_FAILURES, record_id, data["space"]) is None:
            row = {"record_id": record_id, "space": data["space"], "reason": data["reason"], "failed_at": moment}
            rows.put(EMBEDDING_FAILURES, row)
    return None


def _numbers(item: Mapping[str, Any], dim: int) -> dict[str, Any]:
    """The vector and the token vectors of an item. Raises ValueError when they are not what they should be."""
    vector = decode_vector(item["vector"])
    if vector.shape != (dim,) or not np.isfinite(vector).all():
        raise ValueError(f"a vector is not {dim} finite numbers")
    tokens = item.get("tokens")
    if tokens is not None:
        unpack(tokens)
    return {"vector": vector, "tokens": tokens}


REDUCERS = {
    EMBEDDED: Reducer(_embedded, _embedded_reads),
    EMBEDDING_FAILED: Reducer(_embedding_failed, _embedding_failed_reads),
}
