"""embed: a vector for each text of a memory, by the configured model, off the event loop.

The texts are found by the same pure function that `extract` uses, so that a memory is embedded one hop after it is
on the log. Texts of a batch that are equal are encoded once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from processors.embedding.model import Embedder, ModelInfo, encode_documents
from processors.reducers.derived import embedded_by, encode_vector
from processors.stages.stage import Stage
from processors.talos.extraction import texts_to_embed
from streams.event_types.derived import EMBEDDED
from streams.events import Event, LoggedEvent, wire_type
from streams.topics import MEMORY


class Embed(Stage):
    """A memory -> vectors of its texts. Without an embedder it only marks progress: search then says `degraded`."""

    name = "embed"
    source = MEMORY
    accepts = frozenset({wire_type("talos.journal.written"), wire_type("talos.friction.logged")})
    batch_size = 16
    embedder: Embedder | None
    """The model of the batches that begin from now on: replaced when another space is switched to."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embed")

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        embedder = self.embedder
        if embedder is None:
            return [[] for _ in events]
        texts = [texts_to_embed(logged.event) for logged in events]
        unique = list(dict.fromkeys(text for found in texts for _, text in found))
        vectors = await asyncio.get_running_loop().run_in_executor(self._thread, encode_documents, embedder, unique)
        encoded = {text: encode_vector(vector) for text, vector in zip(unique, vectors, strict=True)}
        return [[self._embedded(logged, embedder.info, found, encoded)] for logged, found in zip(events, texts, strict=True)]

    def _embedded(self, logged: LoggedEvent, info: ModelInfo, texts: Sequence[tuple[str, str]], encoded: dict[str, str]) -> Event:
        vectors = [{"record_id": record_id, "vector": encoded[text]} for record_id, text in texts]
        return self.fact(logged, EMBEDDED, embedded_by(info) | {"vectors": vectors})
