"""The limit of applying: a consumer that inserts each event of the log into a DuckDB table.

One batch is one transaction. The consumer keeps its position beside the rows, as an honest consumer must, and does
nothing else: no schema check, no dedupe, no outcome, no search.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import orjson

from streams.log import open_log
from streams.log.base import Record
from streams.positions import Partition

MAX_RECORDS = 2000
READ_S = 30.0
SCHEMA = """
CREATE TABLE rows (
    topic VARCHAR, partition INTEGER, "offset" BIGINT, idx INTEGER, event_id VARCHAR, event_type VARCHAR, data JSON
);
CREATE TABLE positions (topic VARCHAR, partition INTEGER, next_offset BIGINT, PRIMARY KEY (topic, partition));
"""
STRUCTURE = (
    '[{"topic":"VARCHAR","partition":"INTEGER","offset":"BIGINT","idx":"INTEGER",'
    '"event_id":"VARCHAR","event_type":"VARCHAR","data":"JSON"}]'
)


@dataclass(frozen=True, slots=True)
class Consumption:
    """What was put into the table, and how long that took."""

    events: int
    seconds: float


async def consume(broker: str, topic: str, file: Path) -> Consumption:
    """Read one topic from its beginning to its end as of now."""
    log = open_log(broker)
    await log.start()
    connection = duckdb.connect(file)
    connection.execute(SCHEMA)
    started, events = time.perf_counter(), 0
    try:
        ends = await log.end_offsets([topic])
        reached = dict.fromkeys(ends, 0)
        reader = await log.reader(reached)
        while any(reached[at] < end for at, end in ends.items()):
            records = await reader.read(timeout_s=READ_S, max_records=MAX_RECORDS)
            events += _put(connection, records, reached)
        seconds = time.perf_counter() - started
        await reader.close()
    finally:
        connection.close()
        await log.stop()
    return Consumption(events, seconds)


def _put(connection: duckdb.DuckDBPyConnection, records: Sequence[Record], reached: dict[Partition, int]) -> int:
    rows = [row for record in records for row in _rows(record)]
    for record in records:
        reached[record.position.at] = record.offset + 1
    connection.execute("BEGIN")
    connection.execute(
        f"INSERT INTO rows SELECT unnest(from_json(?, '{STRUCTURE}'), recursive := true)", [orjson.dumps(rows).decode()]
    )
    for at, offset in {record.position.at: reached[record.position.at] for record in records}.items():
        connection.execute("INSERT OR REPLACE INTO positions VALUES (?, ?, ?)", [*at, offset])
    connection.execute("COMMIT")
    return len(rows)


def _rows(record: Record) -> Iterator[dict[str, Any]]:
    body = orjson.loads(record.value or b"null")
    headers = dict(record.headers)
    where = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    items = body if isinstance(body, list) else [{"data": body}]
    for index, item in enumerate(items):
        name, kind = item.get("id") or headers["ce_id"].decode(), item.get("type") or headers["ce_type"].decode()
        yield {**where, "idx": index, "event_id": name, "event_type": kind, "data": item.get("data")}
