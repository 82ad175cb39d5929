"""A door over a real store in which each text has the cosine that a test says; vectors of eight numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import numpy as np

from mcp_ingress.door import Answer, Door, Request, Visitor
from mcp_ingress.inventory import find_tools
from mcp_ingress.services import Limits, Services
from mcp_ingress.spool import Spool
from processors.embedding.hashing import HashingEmbedder
from processors.embedding.model import ModelInfo
from processors.inner_voice.config import InnerVoiceConfig
from processors.memory.registry import SOURCES
from storage.applied import AppliedPositions
from storage.search.index_set import IndexSet
from storage.vector_codec import stored_vector
from streams.clock import SystemClock
from streams.ids import record_label
from streams.log.base import Log
from tests.processors.harness import Store
from tests.talos.node import FallibleReader

MODEL = replace(HashingEmbedder().info, space="text/test-8", model_id="test-8", dim=8)
START = datetime(2026, 1, 5)


class FixedEmbedder:
    """Every query points along the first axis. `fault` is raised, `dim` is what it gives instead."""

    def __init__(self) -> None:
        self.info: ModelInfo = MODEL
        self.fault: Exception | None = None
        self.dim = MODEL.dim

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if self.fault is not None:
            raise self.fault
        return np.tile(np.eye(1, self.dim, dtype=np.float32), (len(texts), 1))


class Rig:
    """`remember` puts rows as reducers would, `ask` calls the tool through the door."""

    def __init__(self, home: Path, **config: Any) -> None:
        self.store = Store()
        self.embedder = FixedEmbedder()
        self.reader = FallibleReader(self.store.database, threads=1)
        self.indexes = IndexSet(home / "indexes", self.store.database.cursor, MODEL, sources=SOURCES)
        self.indexes.open({})
        self.services = Services(
            cast(Log, None),
            AppliedPositions(),
            self.reader,
            self.indexes,
            self.embedder,
            Spool(home / "spool"),
            SystemClock(),
            Limits(0.05, 1.0, 0.05),
            parts={InnerVoiceConfig: InnerVoiceConfig(**{"is_enabled": True, **config})},
        )
        self.door = Door(self.services, find_tools())
        self._count = 0

    def remember(
        self,
        text: str,
        cosine: float = 0.5,
        *,
        kind: str = "Reflection",
        toolset: str = "talos",
        record_id: str | None = None,
        domain: str | None = None,
        namespace: str = "default",
        dim: int = MODEL.dim,
        created_at: datetime | None = None,
        is_embedded: bool = True,
    ) -> str:
        self._count += 1
        identity = record_id or f"r{self._count:04}"
        label = record_label(f"{namespace}\0{identity}")
        self.store.sql(
            "INSERT INTO documents (label, record_id, toolset, kind, domain, text, created_at, namespace, topic, "
            'partition, "offset", event_id) '
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 't', 0, ?, ?)",
            *(
                label,
                identity,
                toolset,
                kind,
                domain,
                text,
                created_at or START + timedelta(minutes=self._count),
                namespace,
                self._count,
                identity,
            ),
        )
        vector = np.zeros(dim, np.float32)
        vector[:2] = cosine, (1 - cosine**2) ** 0.5
        if is_embedded:
            self.store.sql(
                "INSERT INTO embeddings (label, space, record_id, model_id, dtype, dim, is_trained, vector, "
                'namespace, topic, partition, "offset", '
                "event_id) VALUES (?, ?, ?, ?, 'float32', ?, false, ?, ?, 't', 0, ?, ?)",
                *(
                    label,
                    MODEL.space,
                    identity,
                    MODEL.model_id,
                    dim,
                    stored_vector(vector),
                    namespace,
                    self._count,
                    identity,
                ),
            )
        self.indexes.apply([(label, namespace, text)], [(label, vector)] if is_embedded and dim == MODEL.dim else [])
        return identity

    async def answer(self, **arguments: Any) -> Answer:
        return await self.door.call(Visitor(self.door.local), Request("inner_voice.retrieve", arguments))

    async def ask(self, query: str = "anything", **arguments: Any) -> dict[str, Any]:
        answer = await self.answer(query=query, **arguments)
        assert not answer.is_error, answer.text
        return answer.body

    async def code(self, **arguments: Any) -> str:
        answer = await self.answer(**arguments)
        assert answer.is_error and answer.body["code"] == answer.body["error_code"] and answer.body["message"]
        return str(answer.body["code"])

    def records(self) -> list[dict[str, Any]]:
        return [dict(event.data) for _, event in self.door.publisher._queue]

    def close(self) -> None:
        self.indexes.close(save=False)
        self.reader.close()
        self.store.database.close()
