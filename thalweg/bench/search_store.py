"""The store that `thalweg bench search` searches: generated memories in sessions.

They are written as the materialiser writes them. A model that gives token vectors reads only the first `READ` texts.
Every other memory is made of the first half of one of these and the second half of another, in words, token vectors and
vector alike, with noise: as many rows and bytes as if the model had read all of them, without the quarter of an hour
that takes. They serve to measure cost, not recall.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from processors.embedding.model import Embedder, TokenEmbedder, encode_documents
from storage.search.vectors.token_vectors import pack_codes, quantise, unit
from storage.writer import Changes, Writer
from streams.ids import document_label
from streams.topics import MEMORY, TELEMETRY
from thalweg.bench.scratch import texts

NAMESPACE = "default"
CHUNK = 2000
READ = 2000
SESSION_LENGTH = 20
RELATED = 2
"""Every second memory is related to another."""
_START = datetime(2026, 3, 1, 12)
_NOISE = 0.02
"""Standard deviation of each number of a unit vector: a cosine of about .93 to the vector without it."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A text that the model has read: the ids and int8 rows of its content tokens, and its vector."""

    words: list[str]
    ids: np.ndarray
    codes: np.ndarray
    vector: np.ndarray


def memories(count: int, embedder: Embedder) -> Iterator[tuple[list[str], np.ndarray, list[str | None]]]:
    """Chunks of texts, unit vectors and packed token vectors (None from an embedder without them)."""
    entries = texts(count)
    if not isinstance(embedder, TokenEmbedder):
        for start in range(0, count, CHUNK):
            chunk = entries[start : start + CHUNK]
            yield chunk, encode_documents(embedder, chunk), [None] * len(chunk)
        return
    read = entries[:READ]
    encoded = embedder.encode_tokens([embedder.info.document_prefix + text for text in read])
    parts = [
        _Part(text.split()[:-1], found.ids[found.content], quantise(found.vectors[found.content]), vector)
        for text, found, vector in zip(read, encoded.tokens, encoded.vectors, strict=True)
    ]
    chance = np.random.default_rng(7)
    for start in range(0, count, CHUNK):
        made = [_joined(parts, number, chance) for number in range(start, min(start + CHUNK, count))]
        yield (
            [text for text, _, _ in made],
            np.stack([vector for _, vector, _ in made]),
            [packed for _, _, packed in made],
        )


def _joined(parts: Sequence[_Part], number: int, chance: np.random.Generator) -> tuple[str, np.ndarray, str]:
    first = parts[number % len(parts)]
    second = first if number < len(parts) else parts[int(chance.integers(len(parts)))]
    words = [*first.words[: len(first.words) // 2], *second.words[len(second.words) // 2 :], f"7x{number}"]
    ids = np.concatenate([first.ids[: len(first.ids) // 2], second.ids[len(second.ids) // 2 :]])
    codes = np.concatenate([first.codes[: len(first.codes) // 2], second.codes[len(second.codes) // 2 :]]).astype(
        np.int16
    )
    noisy = np.clip(codes + chance.integers(-2, 3, codes.shape), -127, 127).astype(np.int8)
    vector = unit(unit(first.vector + second.vector) + _NOISE * chance.standard_normal(len(first.vector), np.float32))
    return " ".join(words), vector, pack_codes(ids, noisy)


def fill_turns(writer: Writer, count: int, embedder: Embedder) -> None:
    """Write `count` turns of captured sessions and their vectors, of texts as those of memories."""
    number = 0
    for entries, vectors, tokens in memories(count, embedder):
        turns = [_turn(at, text) for at, text in enumerate(entries, number)]
        rows = zip(vectors, tokens, strict=True)
        embeddings = [
            {**_vector(vector, packed, embedder), **_place_of_turn(at)}
            for at, (vector, packed) in enumerate(rows, number)
        ]
        writer.commit(Changes(appended={"turns": turns, "turn_embeddings": embeddings}))
        number += len(entries)
    writer.checkpoint()


def fill_store(writer: Writer, count: int, embedder: Embedder) -> np.ndarray:
    """Write `count` memories and their vectors; the vectors in order."""
    made: list[np.ndarray] = []
    number = 0
    for entries, vectors, tokens in memories(count, embedder):
        documents = [_document(at, text) for at, text in enumerate(entries, number)]
        rows = zip(vectors, tokens, strict=True)
        embeddings = [_embedding(at, vector, packed, embedder) for at, (vector, packed) in enumerate(rows, number)]
        relations = [_relation(at, count) for at in range(number, number + len(entries)) if at % RELATED == 0]
        writer.commit(Changes(appended={"documents": documents, "embeddings": embeddings, "relations": relations}))
        made.append(vectors)
        number += len(entries)
    writer.checkpoint()  # as the materialiser does when there is nothing to do
    return np.concatenate(made)


def origin_of_memory(number: int) -> dict[str, Any]:
    return {
        "namespace": NAMESPACE,
        "topic": MEMORY.name,
        "partition": 0,
        "offset": number,
        "event_id": f"event-{number}",
    }


def _document(number: int, text: str) -> dict[str, Any]:
    kind, domain = ("insight" if number % 2 else "observation"), ("rare" if number % 100 == 0 else "common")
    session = f"session-{number // SESSION_LENGTH}"
    about = {"record_id": f"memory-{number}", "toolset": "talos", "kind": kind, "session_id": session, "domain": domain}
    return {
        "label": label_of_memory(number),
        **about,
        "text": text,
        "created_at": _START + timedelta(seconds=number),
        **origin_of_memory(number),
    }


def _turn(number: int, text: str) -> dict[str, Any]:
    return {
        **_place_of_turn(number),
        "session_id": f"captured-{number // SESSION_LENGTH}",
        "role": "assistant" if number % 2 else "user",
        "source": "bench",
        "text": text,
        "created_at": _START + timedelta(seconds=number),
    }


def _place_of_turn(number: int) -> dict[str, Any]:
    record_id = f"turn-{number}"
    label = document_label(NAMESPACE, record_id)
    return {**origin_of_memory(number), "topic": TELEMETRY.name, "label": label, "record_id": record_id}


def _embedding(number: int, vector: np.ndarray, tokens: str | None, embedder: Embedder) -> dict[str, Any]:
    place = {"label": label_of_memory(number), "record_id": f"memory-{number}", **origin_of_memory(number)}
    return {**_vector(vector, tokens, embedder), **place}


def _vector(vector: np.ndarray, tokens: str | None, embedder: Embedder) -> dict[str, Any]:
    info = embedder.info
    model = {"space": info.space, "model_id": info.model_id, "dtype": info.dtype, "dim": info.dim}
    return {**model, "is_trained": info.trained, "vector": vector, "tokens": tokens}


def _relation(number: int, count: int) -> dict[str, Any]:
    ends = {"from_id": f"memory-{number}", "to_id": f"memory-{number * 7919 % count}"}
    about = {
        "relation_id": f"relation-{number}",
        "relation_type": "LED_TO",
        **ends,
        "properties": {},
        "source_event_id": f"event-{number}",
    }
    return about | {"created_at": _START + timedelta(seconds=number), **origin_of_memory(number)}


def label_of_memory(number: int) -> int:
    return document_label(NAMESPACE, f"memory-{number}")
