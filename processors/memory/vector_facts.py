"""What a model made of texts, as facts: one event, or several where it would be too large for the log.

A part of a long text is named by what it is of, not by its place in a row of parts: a redelivery that is cut elsewhere
(another limit, a machine whose model gives a token more) loses and repeats nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from processors.embedding.model import ModelInfo
from streams.codec import in_parts
from streams.events import Event
from streams.ids import derived_id

VECTOR_STAGE = "embed"
"""The stage whose facts these are: a search by meaning waits for it."""
Item = dict[str, Any]
"""A vector with its record, and with its passage when it is not of the whole text: one of an event's `vectors`."""


def embedded_by(info: ModelInfo) -> dict[str, object]:
    """What a fact says of the model that made its vectors."""
    return {"space": info.space, "model_id": info.model_id, "dim": info.dim, "trained": info.trained}


def encode_vector(vector: np.ndarray) -> str:
    """A vector as it travels: base64 of little-endian float32."""
    return base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode()


def decode_vector(text: str) -> np.ndarray:
    """The inverse of `encode_vector`. Raises ValueError."""
    return np.frombuffer(base64.b64decode(text, validate=True), "<f4")


def items_of(record_id: str, encoded: Mapping[str, Any]) -> list[Item]:
    """The items of a text (`encode_texts`): of the whole, and of the passages embedded with it."""
    whole = {"record_id": record_id, **{name: value for name, value in encoded.items() if name != "first"}}
    return [whole, *passages_of(record_id, encoded.get("first", ()))]


def passages_of(record_id: str, encoded: Iterable[Mapping[str, Any]]) -> list[Item]:
    """The vectors of some passages of a text (`encode_passages`)."""
    return [{"record_id": record_id, **passage} for passage in encoded]


def split_fact(fact: Event, items: Sequence[Item], largest: int) -> list[Event]:
    """The fact with these vectors, as several when they have more than `largest` bytes."""
    parts = in_parts(items, largest)
    if len(parts) < 2:
        return [_with(fact, items)]
    return [_with(fact, part).changed(id=derived_id(fact.id, _name(part[0]), _name(part[-1]))) for part in parts]


def _with(fact: Event, items: Sequence[Item]) -> Event:
    return fact.changed(data={**fact.data, "vectors": list(items)})


def _name(item: Item) -> str:
    passage = item.get("passage")
    return item["record_id"] if passage is None else f"{item['record_id']}\0{passage['number']}"
