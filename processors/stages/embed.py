"""embed: a vector for each text of a memory, by the configured model, off the event loop.

The texts are found by the same pure function that `extract` uses, so that a memory is embedded one hop after it is
on the log. Texts of a batch that are equal are encoded once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from processors.embedding.api import KeyMissing
from processors.embedding.model import Embedder, ModelInfo, RetryingEmbedder, TokenEmbedder, encode_documents
from processors.embedding.texts import TEXTS, texts_to_embed
from processors.reducers.derived import embedded_by, encode_vector
from processors.stages.stage import Stage
from storage.search.passages import Passage, split_passages
from storage.search.tokens import pack, unit
from streams.errors import EmbedderUnavailable
from streams.event_types.derived import EMBEDDED
from streams.events import Event, LoggedEvent
from streams.topics import MEMORY

REMEMBERED = 1000
"""Events of which it is known how often the model was asked; more are in question only when one batch holds more."""
PROBE = "The river bends."
"""A text that every working model embeds."""


class Embed(Stage):
    """A memory -> vectors of its texts. Without an embedder it only marks progress: search then says `degraded`."""

    name = "embed"
    source = MEMORY
    accepts = frozenset(TEXTS)
    batch_size = 16
    embedder: Embedder | None
    """The model of the batches that begin from now on: replaced when another space is switched to."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embed")
        self._failed: dict[str, int] = {}
        """By event how often the model did not answer; the stage is asked again until it does. Who is diverted meanwhile stays: the oldest go."""

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        embedder = self.embedder
        if embedder is None:
            return [[] for _ in events]
        texts = [texts_to_embed(logged.event) for logged in events]
        try:
            encoded, asked = await self._encoded(embedder, [text for found in texts for _, text in found])
        except EmbedderUnavailable as error:
            if not isinstance(error, KeyMissing):  # without a key nobody was asked
                self._count(events)
            raise
        facts: list[Sequence[Event]] = []
        for logged, found in zip(events, texts, strict=True):
            tries = asked + self._failed.pop(logged.key, 0)
            again = {"tries": tries} if tries > 1 else {}
            facts.append([self.fact(logged, EMBEDDED, _embedded(embedder.info, found, encoded) | again)])
        return facts

    def _count(self, events: Sequence[LoggedEvent]) -> None:
        self._failed |= {logged.key: self._failed.pop(logged.key, 0) + 1 for logged in events}
        for key in list(self._failed)[: -max(len(events), REMEMBERED)]:
            del self._failed[key]

    async def of_texts(self, texts: Sequence[tuple[str, str]]) -> dict[str, Any] | None:
        """The data of an embedded event about these (record id, text) that another stage has made; None without an embedder."""
        embedder = self.embedder
        if embedder is None or not texts:
            return None
        encoded, _ = await self._encoded(embedder, [text for _, text in texts])
        return _embedded(embedder.info, texts, encoded)

    async def _encoded(self, embedder: Embedder, texts: Sequence[str]) -> tuple[dict[str, dict[str, Any]], int]:
        """As `encode_texts`, and how often somebody was asked for it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, _counted, embedder, list(dict.fromkeys(texts)))


def _counted(embedder: Embedder, texts: Sequence[str]) -> tuple[dict[str, dict[str, Any]], int]:
    encoded = encode_or_say(embedder, texts)
    return encoded, embedder.tries if isinstance(embedder, RetryingEmbedder) else 1


def _embedded(info: ModelInfo, texts: Sequence[tuple[str, str]], encoded: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return embedded_by(info) | {"vectors": [{"record_id": record_id, **encoded[text]} for record_id, text in texts]}


def encode_or_say(embedder: Embedder, texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """As `encode_texts`. Raises EmbedderUnavailable when the model fails on any text: then there is nothing wrong with these,
    and nobody should bury them; what it raises otherwise is about these texts."""
    try:
        return encode_texts(embedder, texts)
    except EmbedderUnavailable:
        raise
    except Exception as error:
        try:
            encode_texts(embedder, [PROBE])
        except Exception:
            message = f"The model {embedder.info.model_id} fails on every text ({type(error).__name__}: {error})."
            raise EmbedderUnavailable(message) from error
        raise


def encode_texts(embedder: Embedder, texts: Sequence[str]) -> dict[str, dict[str, Any]]:
    """text -> what an embedded event says of it: `vector` and `tokens` (when the model gives them); of a text longer than
    a window `vector`, the mean of its passages by length, and `passages`. One forward pass for all."""
    cut = {text: split_passages(text) for text in texts}
    parts = list(dict.fromkeys(part for text in texts for part in _parts(text, cut[text])))
    if isinstance(embedder, TokenEmbedder):
        both = embedder.encode_tokens([embedder.info.document_prefix + part for part in parts])
        vectors = dict(zip(parts, both.vectors, strict=True))
        packed = dict(zip(parts, map(pack, both.tokens), strict=True))
    else:
        vectors, packed = dict(zip(parts, encode_documents(embedder, parts), strict=True)), {}
    numbers = {part: {"vector": encode_vector(vectors[part])} | _tokens(packed.get(part)) for part in parts}
    return {text: _passages(text, cut[text], vectors, numbers) if cut[text] else numbers[text] for text in texts}


def _parts(text: str, passages: Sequence[Passage]) -> list[str]:
    return [text[passage.start : passage.end] for passage in passages] or [text]


def _tokens(packed: str | None) -> dict[str, Any]:
    return {"tokens": packed} if packed else {}  # a text of which the model makes no token has none


def _passages(
    text: str, passages: Sequence[Passage], vectors: Mapping[str, np.ndarray], numbers: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    parts = _parts(text, passages)
    mean = np.sum([vectors[part] * len(part) for part in parts], axis=0)
    placed = [
        {"number": passage.number, "start": passage.start, "end": passage.end, **numbers[part]}
        for passage, part in zip(passages, parts, strict=True)
    ]
    return {"vector": encode_vector(unit(mean)), "passages": placed}
