"""The limit of a searchable write: log, model, a DuckDB transaction and a vector index in one process.

What a program would do that only has to find a text again: no MCP, no schema check, no extraction, no outcome,
no record of the call, no keyword index, no second process. The next batch is encoded while the last is stored.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import numpy as np
import orjson

from processors.embedding.model import Embedder, ModelInfo
from processors.memory.vector_facts import decode_vector, encode_vector
from storage.search.vectors.vector_index import VectorIndex
from streams.log import open_log
from streams.log.base import Log, LogReader, Outgoing, Record
from streams.positions import Partition
from streams.topics import Topic

TEXTS = Topic("thalweg.bench.texts.v1", "texts of `thalweg bench write`, read by its bare spine", partitions=1)
VECTORS = Topic("thalweg.bench.vectors.v1", "their vectors", partitions=1)
BATCH = 16
WAIT_S = 30.0
SCHEMA = """
CREATE TABLE texts ("offset" BIGINT PRIMARY KEY, text VARCHAR);
CREATE TABLE vectors ("offset" BIGINT PRIMARY KEY, vector FLOAT[]);
CREATE TABLE positions (topic VARCHAR PRIMARY KEY, next_offset BIGINT);
"""


def searchable_ms(broker: str, file: Path, model: Embedder, entries: Sequence[str], callers: int) -> list[float]:
    """Milliseconds from each call until its text and vector are stored and indexed.

    This many callers write in a closed loop.
    """
    return asyncio.run(_run(broker, file, model, entries, callers))


async def _run(broker: str, file: Path, model: Embedder, entries: Sequence[str], callers: int) -> list[float]:
    log = open_log(broker)
    await log.start()
    try:
        await log.create_topics([TEXTS, VECTORS])
        start = await log.end_offsets([TEXTS.name, VECTORS.name])
        texts = {at: offset for at, offset in start.items() if at.topic == TEXTS.name}
        store = _SpineStore(file, model.info)
        readers = await log.reader(texts), await log.reader(start)
        embedding = asyncio.create_task(_embed(log, readers[0], model))
        storing = asyncio.create_task(store.follow(readers[1]))
        try:
            return await _write(log, store, entries, callers)
        finally:
            for task in (embedding, storing):
                task.cancel()
            await asyncio.gather(embedding, storing, return_exceptions=True)
            await asyncio.gather(*(reader.close() for reader in readers))
            store.close()
    finally:
        await log.stop()


async def _write(log: Log, store: _SpineStore, entries: Sequence[str], callers: int) -> list[float]:
    waiting, durations = iter(entries), []

    async def work() -> None:
        for text in waiting:
            started = time.perf_counter()
            [position] = await log.publish(
                [Outgoing(TEXTS.name, b"bench", orjson.dumps({"text": text}), ())], timeout_s=WAIT_S
            )
            await asyncio.wait_for(store.embedded(position.offset), WAIT_S)
            durations.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*(work() for _ in range(callers)))
    return durations


async def _embed(log: Log, reader: LogReader, model: Embedder) -> None:
    """Texts -> their vectors, one record a batch, on a thread of its own."""
    thread = ThreadPoolExecutor(1, thread_name_prefix="bare-embed")
    loop = asyncio.get_running_loop()
    while True:
        records = await reader.read(timeout_s=WAIT_S, max_records=BATCH)
        if records:
            rows = await loop.run_in_executor(
                thread, model.encode, [orjson.loads(record.value or b"")["text"] for record in records]
            )
            body = [[record.offset, encode_vector(row)] for record, row in zip(records, rows, strict=True)]
            await log.publish([Outgoing(VECTORS.name, b"bench", orjson.dumps(body), ())], timeout_s=WAIT_S)


class _SpineStore:
    """One DuckDB file and one vector index; tells who waits once a text's vector is in both."""

    def __init__(self, file: Path, info: ModelInfo) -> None:
        self._connection = duckdb.connect(file, config={"threads": 1})
        self._connection.execute(SCHEMA)
        self._index = VectorIndex(info)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="bare-writer")

    def embedded(self, offset: int) -> asyncio.Future[None]:
        """Done when the text at this offset can be found."""
        return self._waiting.setdefault(offset, asyncio.get_running_loop().create_future())

    async def follow(self, reader: LogReader) -> None:
        """Store what comes, one transaction a read."""
        loop = asyncio.get_running_loop()
        while True:
            records = await reader.read(timeout_s=WAIT_S, max_records=500)
            if records:
                for offset in await loop.run_in_executor(self._thread, self._apply, records):
                    found = self.embedded(offset)
                    if not found.done():
                        found.set_result(None)

    def _apply(self, records: Sequence[Record]) -> list[int]:
        texts = [
            (record.offset, orjson.loads(record.value or b"")["text"])
            for record in records
            if record.topic == TEXTS.name
        ]
        bodies = [orjson.loads(record.value or b"[]") for record in records if record.topic == VECTORS.name]
        vectors = [(offset, decode_vector(vector)) for body in bodies for offset, vector in body]
        execute = self._connection.execute
        execute("BEGIN")
        for table, rows in (("texts", texts), ("vectors", vectors)):
            if rows:
                execute(
                    f"INSERT INTO {table} VALUES " + ", ".join(["(?, ?)"] * len(rows)),
                    [value for row in rows for value in row],
                )
        for at, offset in {Partition(record.topic, record.partition): record.offset + 1 for record in records}.items():
            execute("INSERT OR REPLACE INTO positions VALUES (?, ?)", [at.topic, offset])
        execute("COMMIT")
        if vectors:
            self._index.add([offset for offset, _ in vectors], np.stack([vector for _, vector in vectors]))
        return [offset for offset, _ in vectors]

    def close(self) -> None:
        self._thread.shutdown()
        self._connection.close()
