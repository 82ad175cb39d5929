"""embed: a vector for each text of a memory, by the configured model, off the event loop.

The texts are found by the same pure function that `extract` uses, so that a memory is embedded one hop after it is
on the log. Texts of a batch that are equal are encoded once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from processors.embedding.model import Embedder
from processors.embedding.texts import TEXTS, texts_to_embed
from processors.reducers.derived import encode_vector
from processors.stages.stage import Stage
from streams.event_types.derived import EMBEDDED
from streams.events import Event, LoggedEvent
from streams.topics import MEMORY


class Embed(Stage):
    """A memory -> vectors of its texts. Without an embedder it only marks progress: search then says `degraded`."""

    name = "embed"
    source = MEMORY
    accepts = frozenset(TEXTS)
    batch_size = 16

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embed")

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        embedder = self._embedder
        if embedder is None:
            return [[] for _ in events]
        texts = [texts_to_embed(logged.event) for logged in events]
        unique = list(dict.fromkeys(text for found in texts for _, text in found))
        vectors = await asyncio.get_running_loop().run_in_executor(self._thread, embedder.encode, unique)
        encoded = {text: encode_vector(vector) for text, vector in zip(unique, vectors, strict=True)}
        return [[self._embedded(logged, found, encoded)] for logged, found in zip(events, texts, strict=True)]

    def _embedded(self, logged: LoggedEvent, texts: Sequence[tuple[str, str]], encoded: dict[str, str]) -> Event:
        assert self._embedder is not None
        info = self._embedder.info
        return self.fact(
            logged,
            EMBEDDED,
            {
                "space": info.space,
                "model_id": info.model_id,
                "dim": info.dim,
                "trained": info.trained,
                "vectors": [{"record_id": record_id, "vector": encoded[text]} for record_id, text in texts],
            },
        )
