"""Keeps what the views compare of each text, so that a search computes it of the query alone.

What the file lacks is made of the store a few memories at a time, once they have their vectors. The file keeps what was
added, so that a node that was killed resumes where it was; another model's is begun anew.
"""

from __future__ import annotations

import asyncio
import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypeVar

import duckdb
import numpy as np

from processors.context_graph.read.memory_texts import FingerprintCache, MemoryTexts, feature_space, read_documents
from processors.embedding.model import Embedder, TokenEmbedder
from processors.frame.job import Job
from storage.append_only import NOTHING, counts, new_rows
from storage.search.vectors.vector_file import VectorFile
from streams.failpoints import hit
from thalweg.process.running import Running

BATCH = 16
"""Memories whose rows are made before it is looked whether somebody waits."""
CHECKED = 4096
"""Rows that are compared with the table at once when a file is opened."""
WAITING = 256
"""Of the memories that lacked vectors at the last look this many are looked at again."""
TABLE = "context_memories"
Result = TypeVar("Result")
Memory = tuple[str, int]
"""Namespace and label."""


class FeatureFilling:
    """One for each node. `run` until cancelled."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._features = running.store.indexes.features
        self._opened: tuple[str, VectorFile] | None = None
        self._reached = NOTHING
        self._waiting: list[Memory] = []
        """Those that lacked vectors at the last look."""
        self.run = Job("features", running.log, running.store.applied, self._look).run

    async def _look(self) -> None:
        """Make the rows that the live space's file lacks; nothing while another model embeds."""
        model, embedder = self._running.store.indexes.model, self._running.embedder
        if (None if model is None else model.space) != (None if embedder is None else embedder.info.space):
            return
        space = feature_space("" if model is None else model.space)
        if self._opened is None or self._opened[0] != space:
            self._opened = space, await self._checked(space)
            self._features.serve(*self._opened)
            self._reached, self._waiting = NOTHING, []
        file = self._opened[1]
        fresh = await self._read(functools.partial(self._new, file))
        asked, self._waiting = fresh + self._waiting[:WAITING], self._waiting[WAITING:]
        await self._fill(file, embedder, asked, len(asked) + len(self._waiting))

    async def _checked(self, space: str) -> VectorFile:
        """The file of a space without the rows of what the table does not have, or has otherwise."""
        file = await asyncio.to_thread(self._features.open, space)
        labels = file.labels().tolist()
        for start in range(0, len(labels), CHECKED):
            await self._read(functools.partial(_remove_stale, file, labels[start : start + CHECKED]))
        file.forget_digests()
        return file

    def _new(self, file: VectorFile, cursor: duckdb.DuckDBPyConnection) -> list[Memory]:
        """The memories that were stored since the last look and have no row."""
        (count,) = counts(cursor, TABLE)
        if count == self._reached.rows:
            return []
        found = new_rows(cursor, TABLE, "namespace, label", self._reached, count)
        if found is None:  # the table was rebuilt: at the next look all of it is new
            self._reached = NOTHING
            return []
        memories, self._reached = found
        has_row = np.isin([label for _, label in memories], file.labels())
        return [
            (namespace, label) for (namespace, label), has in zip(memories, has_row.tolist(), strict=True) if not has
        ]

    async def _fill(
        self, file: VectorFile, embedder: Embedder | None, memories: Sequence[Memory], lacking: int
    ) -> None:
        """Make rows of those that have their vectors; the others wait. `lacking`: all without a row."""
        self._features.lacking = lacking
        by_namespace = defaultdict[str, list[int]](list)
        for namespace, label in memories:
            by_namespace[namespace].append(label)
        for namespace, labels in by_namespace.items():
            for start in range(0, len(labels), BATCH):
                some = labels[start : start + BATCH]
                await self._running.yield_to_writes()
                made = await self._read(functools.partial(self._add, file, embedder, namespace, some))
                hit("mid_features")
                lacking -= len(made)
                self._features.lacking = lacking
                self._waiting += [(namespace, label) for label in some if label not in made]

    def _add(
        self,
        file: VectorFile,
        embedder: Embedder | None,
        namespace: str,
        labels: Sequence[int],
        cursor: duckdb.DuckDBPyConnection,
    ) -> set[int]:
        """Keep the rows of these memories; the labels of those that have one now."""
        tokens = embedder if isinstance(embedder, TokenEmbedder) else None
        texts = MemoryTexts(cursor, self._running.store.indexes, tokens, FingerprintCache(), namespace)
        rows = texts.rows_of(labels)
        file.add(rows)
        return {label for label, _, _ in rows}

    async def _read(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        return await self._running.store.reader.run(query)


def _remove_stale(file: VectorFile, labels: Sequence[int], cursor: duckdb.DuckDBPyConnection) -> None:
    """Remove the rows of those labels that the table does not have, or has otherwise."""
    digests = {one.label: one.digest for one in read_documents(cursor, labels)}
    if gone := [*file.stale(digests), *(label for label in labels if label not in digests)]:
        file.remove(gone)
