"""A store with spaces in it: registrations, switches, vectors and texts as the log brings them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from processors.embedding.hashing import HashingEmbedder
from processors.frame.batch import Reduced
from processors.memory.reembedding import facts_of, missing_labels, read_texts
from processors.memory.stages.embed import encode_texts
from processors.memory.vector_facts import embedded_by, encode_vector
from streams.codec import encode, encode_batch
from streams.event_types.memory import EMBEDDED
from streams.event_types.spaces import SPACE_DROPPED, SPACE_REGISTERED, SPACE_SWITCHED, SYSTEM
from streams.events import Event
from streams.log.base import RECORD_BYTES
from streams.topics import DERIVED
from tests.processors.harness import NOW, Store, event

FIRST, SECOND = HashingEmbedder(), HashingEmbedder(16)
ONE, TWO = FIRST.info.space, SECOND.info.space


class Spaces(Store):
    """`Store` with what happens to spaces; each event gets an id of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._number = 0

    def happen(self, event_type: str, data: dict[str, Any], *, partition: int = 0) -> Reduced:
        self._number += 1
        happened = Event(f"s{self._number}", "test", event_type, SYSTEM, NOW, data)
        return self.apply(self.record(encode(DERIVED.name, happened), partition))

    def register(self, embedder: HashingEmbedder, **changed: Any) -> Reduced:
        return self.happen(SPACE_REGISTERED, {"embedder": embedder.info.model_id, **asdict(embedder.info), **changed})

    def switch(self, space: str) -> Reduced:
        return self.happen(SPACE_SWITCHED, {"space": space})

    def drop(self, space: str) -> Reduced:
        return self.happen(SPACE_DROPPED, {"space": space})

    def write(self, content: str, *, id: str, embedder: HashingEmbedder | None = FIRST) -> str:
        """A journal entry, embedded by this model; its record id."""
        self.publish(event("talos.journal.written", {"content": content, "category": "insight"}, id=id))
        [(record_id,)] = self.sql("SELECT entry_id FROM talos_journal WHERE event_id = ?", id)
        if embedder is not None:
            self.embed(embedder, record_id, content)
        return str(record_id)

    def embed(self, embedder: HashingEmbedder, record_id: str, text: str, *, partition: int = 1) -> Reduced:
        self._number += 1
        data = embedded_by(embedder.info) | {
            "vectors": [{"record_id": record_id, "vector": encode_vector(embedder.encode([text])[0])}]
        }
        return self.apply(
            self.record(
                encode(DERIVED.name, Event(f"v{self._number}", "test", EMBEDDED, "default", NOW, data)), partition
            )
        )

    def fill(self, embedder: HashingEmbedder, limit: int | None = None) -> int:
        """Embed what the space lacks, at most `limit` texts, as the node does; how many it lacked."""
        cursor = self.database.cursor()
        labels, _ = missing_labels(cursor, embedder.info.space)
        [(building,)] = self.sql("SELECT event_id FROM spaces WHERE space = ?", embedder.info.space)
        texts = read_texts(cursor, labels[:limit])
        facts = (
            facts_of(
                embedder.info,
                building,
                texts,
                encode_texts(embedder, [missing.text for missing in texts]),
                RECORD_BYTES,
            )
            if texts
            else []
        )
        self.apply(*(self.record(encode_batch(DERIVED.name, group[0], group)) for group in facts))
        return len(labels)

    def states(self) -> dict[str, str]:
        return dict(self.sql("SELECT space, state FROM spaces"))

    def vectors(self, space: str) -> int:
        [(count,)] = self.sql("SELECT count(*) FROM embeddings WHERE space = ?", space)
        return int(count)
