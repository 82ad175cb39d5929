"""embed: a vector for each text of a memory, by the configured model, off the event loop.

The texts are found by the same pure function that `extract` uses, so that a memory is embedded one hop after it is
on the log. Texts of a batch that are equal are encoded once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from processors.embedding.model import Embedder, RetryingEmbedder, TokenEmbedder, encode_documents
from processors.frame.stage import Stage, StageParts
from processors.memory.registry import TEXTS, texts_to_embed
from processors.memory.vector_facts import VECTOR_STAGE, Item, embedded_by, encode_vector, items_of, split_fact
from storage.search.records.passages import EMBEDDED_PASSAGES, FIRST_PASSAGES, TOKEN_PASSAGES, Passage, split_passages
from storage.search.vectors.token_vectors import pack, unit
from streams.errors import EmbedderUnavailable, KeyMissing
from streams.event_types.memory import EMBEDDED, EMBEDDING_FAILED
from streams.events import Event, LoggedEvent
from streams.topics import MEMORY

Result = TypeVar("Result")
MAX_COUNTED_EVENTS = 1000
"""Events whose failed tries are counted; more only when one batch has more."""
PROBE = "The river bends."
"""A text that every working model embeds."""


class Embed(Stage):
    """A memory -> vectors of its texts. Without an embedder it only marks progress: search then says `degraded`."""

    name = VECTOR_STAGE
    source = MEMORY
    accepts = frozenset(TEXTS)
    batch_size = 16
    embedder: Embedder | None
    """The model of the batches that begin from now on: replaced when another space is switched to."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embed")
        self._failed: dict[str, int] = {}
        """Event -> how often the model did not answer.

        An event diverted meanwhile stays until it is among the oldest.
        """

    @classmethod
    def made(cls, parts: StageParts) -> Embed:
        return cls(parts.embedder)

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
            facts.append(
                split_fact(
                    self.fact(logged, EMBEDDED, embedded_by(embedder.info) | again),
                    _items(found, encoded),
                    self.largest,
                )
            )
        return facts

    def given_up(self, logged: LoggedEvent, reason: str) -> Sequence[Event]:
        """Its texts get no vector of this model, so that no start tries again what cannot succeed."""
        embedder, record_ids = self.embedder, [record_id for record_id, _ in texts_to_embed(logged.event)]
        if embedder is None or not record_ids:
            return []
        space = embedder.info.space
        failed = {"space": space, "record_ids": record_ids, "reason": reason}
        return [self.fact(logged, EMBEDDING_FAILED, failed, about=(space,))]

    def _count(self, events: Sequence[LoggedEvent]) -> None:
        self._failed |= {logged.key: self._failed.pop(logged.key, 0) + 1 for logged in events}
        for key in list(self._failed)[: -max(len(events), MAX_COUNTED_EVENTS)]:
            del self._failed[key]

    async def facts_of_texts(self, fact: Event, texts: Sequence[tuple[str, str]]) -> list[Event]:
        """`fact` with the vectors of these (record id, text) that another stage has made. None without an embedder.

        Several events where the vectors are too large for one.
        """
        embedder = self.embedder
        if embedder is None or not texts:
            return []
        encoded, _ = await self._encoded(embedder, [text for _, text in texts])
        return split_fact(fact.changed(data=embedded_by(embedder.info)), _items(texts, encoded), self.largest)

    async def _encoded(self, embedder: Embedder, texts: Sequence[str]) -> tuple[dict[str, dict[str, Any]], int]:
        """As `encode_texts`, and how often the model was asked."""
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, _counted, embedder, list(dict.fromkeys(texts))
        )


def _counted(embedder: Embedder, texts: Sequence[str]) -> tuple[dict[str, dict[str, Any]], int]:
    encoded = encode_or_probe(encode_texts, embedder, texts)
    return encoded, embedder.tries if isinstance(embedder, RetryingEmbedder) else 1


def _items(texts: Sequence[tuple[str, str]], encoded: Mapping[str, Mapping[str, Any]]) -> list[Item]:
    return [item for record_id, text in texts for item in items_of(record_id, encoded[text])]


def encode_or_probe(encode: Callable[..., Result], embedder: Embedder, *arguments: Any) -> Result:
    """What `encode` gives. Raises EmbedderUnavailable when the model fails on the probe too.

    Then nothing is wrong with these texts and they are not dead letters; any other exception is about the texts.
    """
    try:
        return encode(embedder, *arguments)
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
    """text -> what an embedded event says of it, in one forward pass for all.

    `vector`, and `tokens` when the model gives them. Of a text longer than a window: `vector`, the mean of its first
    passages weighted by length; `first`, these; `passages`, how many should have vectors.
    """
    cut = {text: split_passages(text) for text in texts}
    parts = list(dict.fromkeys(part for text in texts for part in _parts(text, cut[text][:FIRST_PASSAGES]) or [text]))
    encoded = dict(zip(parts, _encode(embedder, parts), strict=True))
    return {text: _long(text, cut[text], encoded) if cut[text] else encoded[text].numbers() for text in texts}


def encode_passages(embedder: Embedder, text: str, passages: Sequence[Passage]) -> list[dict[str, Any]]:
    """Encode some passages of a text as items of an embedded event.

    Each has `passage` and `vector`, and `tokens` where the passage gets them.
    """
    encoded = _encode(embedder, _parts(text, passages))
    return [_placed(passage, one) for passage, one in zip(passages, encoded, strict=True)]


class _Encoded(NamedTuple):
    vector: np.ndarray
    tokens: str | None

    def numbers(self, *, with_tokens: bool = True) -> dict[str, Any]:
        numbers = {"vector": encode_vector(self.vector)}
        # a text without any token has none
        return numbers | {"tokens": self.tokens} if with_tokens and self.tokens else numbers


def _encode(embedder: Embedder, parts: Sequence[str]) -> list[_Encoded]:
    if isinstance(embedder, TokenEmbedder):
        both = embedder.encode_tokens([embedder.info.document_prefix + part for part in parts])
        return [_Encoded(vector, pack(tokens)) for vector, tokens in zip(both.vectors, both.tokens, strict=True)]
    return [_Encoded(vector, None) for vector in encode_documents(embedder, parts)]


def _parts(text: str, passages: Sequence[Passage]) -> list[str]:
    return [text[passage.start : passage.end] for passage in passages]


def _long(text: str, passages: Sequence[Passage], encoded: Mapping[str, _Encoded]) -> dict[str, Any]:
    first = passages[:FIRST_PASSAGES]
    parts = _parts(text, first)
    mean = np.sum([encoded[part].vector * len(part) for part in parts], axis=0)
    placed = [_placed(passage, encoded[part]) for passage, part in zip(first, parts, strict=True)]
    return {"vector": encode_vector(unit(mean)), "passages": min(len(passages), EMBEDDED_PASSAGES), "first": placed}


def _placed(passage: Passage, encoded: _Encoded) -> dict[str, Any]:
    place = {"number": passage.number, "start": passage.start, "end": passage.end}
    return {"passage": place, **encoded.numbers(with_tokens=passage.number < TOKEN_PASSAGES)}
