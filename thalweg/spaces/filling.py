"""Fills a space of vectors until nothing is missing.

It reads from the store what the space lacks, embeds that and publishes it. Texts without a vector get the first
passages at once; the other passages of long texts follow in slices, the newest text first, each of which lets the stage
`embed` go first. What model or log refuses is a fact too, so that nothing is tried for ever.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import duckdb
import numpy as np

from processors.embedding.model import Embedder
from processors.frame.job import Job, Progress
from processors.frame.stage import ENVELOPE_BYTES
from processors.memory.reembedding import (
    Missing,
    fact_of_failure,
    facts_of,
    facts_of_passages,
    lacking_before,
    lacking_turns,
    missing_labels,
    missing_passages,
    partial_labels,
    read_texts,
    slices,
)
from processors.memory.stages.embed import encode_or_probe, encode_passages, encode_texts
from storage.append_only import counts
from storage.search.captured import CAPTURED, reading
from storage.search.records.passages import Passage, split_passages
from streams.codec import encode_batches
from streams.errors import RecordRefused, Unavailable
from streams.events import Event
from streams.failpoints import hit
from streams.log.base import RECORD_BYTES
from streams.positions import Partition
from streams.topics import DERIVED
from thalweg.process.running import Running

SLICE_PASSAGES = 32
"""About half a second of one core."""
_TABLES_OF_TURNS = "turns", "turn_embeddings", "embedding_failures"
NOT_APPLIED = "its vectors were published and not applied; `thalweg dlq list` says why"
Row = dict[str, Any]
Result = TypeVar("Result")


class TextFailed(Exception):
    """The model fails on this text and on no other."""


class Filling:
    """One for each node; its job publishes what it makes and shows its progress."""

    def __init__(self, running: Running, job: Job) -> None:
        self._running = running
        self._job = job
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reembed")
        self._long: tuple[int, Missing, list[Passage]] | None = None
        self.partial = 0
        """How many long texts lacked passages at the last look."""
        self.turns = 0
        """How many turns lacked vectors at the last look."""
        self._whole: tuple[str, list[str], tuple[int, ...]] | None = None
        """Space, namespaces left out and rows of the tables at the last look that found no turn without a vector."""
        self._published: set[tuple[str, str]] = set()
        """The turns of the last slice: those that still lack a vector were not applied."""

    async def repair(self, row: Row, embedder: Embedder, reached: Mapping[Partition, int]) -> bool:
        """Embed the texts before these offsets that a live space lacks. True at the end.

        What follows is the stage's: it would be embedded twice.
        """
        lacking = await self._read(lambda cursor: lacking_before(cursor, row["space"], reached))
        return await self.fill(row, embedder, among=lacking)

    async def fill(self, row: Row, embedder: Embedder, *, enough: int = 0, among: np.ndarray | None = None) -> bool:
        """Embed the texts that the space lacks, until a look finds at most `enough`; those too. True at the end.

        `among`: no others than these.
        """
        before = np.empty(0, np.int64)
        while True:
            labels, count = await self._read(lambda cursor: missing_labels(cursor, row["space"]))
            labels = labels if among is None else np.intersect1d(labels, among)
            again = np.intersect1d(labels, before)
            for some in await self._slices(again):
                await self._give_up(row, embedder, await self._texts(some), NOT_APPLIED)
            labels = np.setdiff1d(labels, again)
            self._job.progress = progress = Progress(row["space"], count, count + len(labels))
            for some in await self._slices(labels):
                await self._embed(row, embedder, await self._texts(some))
                progress.done += len(some)
                hit("mid_reembed")
            if len(labels) <= enough:
                return True
            before = np.union1d(before, labels)

    async def complete(self, row: Row, embedder: Embedder) -> bool:
        """Embed the passages that long texts lack, a slice of the newest text at a time.

        True when nothing is missing then, False when a text is not in the store yet.
        """
        tried: set[tuple[int, int]] = set()
        while labels := await self._read(lambda cursor: partial_labels(cursor, row["space"])):
            self.partial = len(labels)
            if (newest := await self._newest(labels)) is None:
                return False  # the vectors came before the text: at the next look it is there
            label, missing, passages = newest
            lacking = await self._read(functools.partial(_lacking, label=label, space=row["space"], passages=passages))
            await self._running.yield_to_writes()
            if not lacking or (label, lacking[0].number) in tried:
                await self._give_up(row, embedder, [missing], NOT_APPLIED)
            else:
                tried.add((label, lacking[0].number))
                await self._embed_passages(row, embedder, missing, lacking[:SLICE_PASSAGES])
            hit("mid_reembed")
        self.partial, self._long = 0, None
        return True

    async def embed_turns(self, row: Row, embedder: Embedder, unsearched: Sequence[str]) -> bool:
        """Embed a slice of the newest turns that lack a vector; whether there were any. Not during an import.

        Of a long turn the passages that come with the whole are embedded, the others are found by their words.
        """
        seen = row["space"], list(unsearched), await self._read(lambda cursor: counts(cursor, *_TABLES_OF_TURNS))
        if seen == self._whole:
            return False  # to look for some among 100,000 takes 15 ms, every second
        labels, self.turns = await self._read(lambda cursor: lacking_turns(cursor, row["space"], unsearched))
        self._whole = None if len(labels) else seen
        captured = self._running.store.indexes.turns
        if not len(labels) or captured is None or not captured.is_idle:
            return False
        await self._running.yield_to_writes()
        turns = await self._read(lambda cursor: _read_turns(cursor, labels))
        again = [turn for turn in turns if (turn.namespace, turn.record_id) in self._published]
        await self._give_up(row, embedder, again, NOT_APPLIED)
        await self._embed(row, embedder, [turn for turn in turns if turn not in again], of_turns=True)
        self._published = {(turn.namespace, turn.record_id) for turn in turns}
        hit("mid_reembed")
        return True

    async def _newest(self, labels: Sequence[int]) -> tuple[int, Missing, list[Passage]] | None:
        """The first of the texts that is in the store, cut; it is cached, because it is needed slice by slice."""
        for label in labels:
            if self._long is None or self._long[0] != label:
                texts = await self._texts(np.array([label], np.int64))
                self._long = (
                    (label, texts[0], await asyncio.to_thread(split_passages, texts[0].text)) if texts else None
                )
            if self._long is not None:
                return self._long
        return None

    async def _embed(self, row: Row, embedder: Embedder, texts: Sequence[Missing], *, of_turns: bool = False) -> None:
        """Embed the texts; one of them that model or log refuses is given up, the others are not."""
        if not texts:
            return
        try:
            encoded = await self._encoded(
                encode_texts, embedder, list(dict.fromkeys(missing.text for missing in texts))
            )
            await self._publish_groups(
                facts_of(embedder.info, row["event_id"], texts, encoded, self._largest, of_turns=of_turns)
            )
        except (RecordRefused, TextFailed) as error:
            if len(texts) == 1:
                await self._give_up(row, embedder, texts, str(error))
            else:
                for missing in texts:
                    await self._embed(row, embedder, [missing], of_turns=of_turns)

    async def _embed_passages(
        self, row: Row, embedder: Embedder, missing: Missing, passages: Sequence[Passage]
    ) -> None:
        try:
            encoded = await self._encoded(encode_passages, embedder, missing.text, passages)
            await self._publish_groups(
                [facts_of_passages(embedder.info, row["event_id"], missing, encoded, self._largest)]
            )
        except (RecordRefused, TextFailed) as error:
            await self._give_up(row, embedder, [missing], str(error))

    async def _give_up(self, row: Row, embedder: Embedder, texts: Sequence[Missing], reason: str) -> None:
        """Keep on the log that these texts get no more vectors in this space: no start tries them again."""
        await self._publish_groups(
            [[fact_of_failure(embedder.info, row["event_id"], missing, reason)] for missing in texts]
        )

    async def _encoded(self, encode: Callable[..., Result], embedder: Embedder, *arguments: Any) -> Result:
        """On the thread. Raises EmbedderUnavailable when the model fails on everything, TextFailed on this alone."""
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, encode_or_probe, encode, embedder, *arguments
            )
        except Unavailable:
            raise
        except Exception as error:
            raise TextFailed(f"{embedder.info.model_id} fails on it ({type(error).__name__}: {error})") from error

    @property
    def _largest(self) -> int:
        return min(RECORD_BYTES, self._running.log.largest(DERIVED.name)) - ENVELOPE_BYTES

    async def _publish_groups(self, groups: Sequence[Sequence[Event]]) -> None:
        """Facts, those of one namespace together."""
        records = [
            record
            for group in groups
            for record in encode_batches(DERIVED.name, lambda some: some[0], group, self._largest)
        ]
        await self._job.publish(records)

    async def _slices(self, labels: np.ndarray) -> list[np.ndarray]:
        return await self._read(lambda cursor: slices(cursor, labels))

    async def _texts(self, labels: np.ndarray) -> list[Missing]:
        return await self._read(lambda cursor: read_texts(cursor, labels))

    async def _read(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        return await self._running.store.reader.run(query)


def _lacking(cursor: duckdb.DuckDBPyConnection, label: int, space: str, passages: Sequence[Passage]) -> list[Passage]:
    return missing_passages(cursor, label, space, passages)


def _read_turns(cursor: duckdb.DuckDBPyConnection, labels: np.ndarray) -> list[Missing]:
    with reading(cursor, CAPTURED):
        return read_texts(cursor, labels)
