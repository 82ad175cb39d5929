"""The tables of the embedded log, and the statements that read and write them.

A record's `place` is the id of its partition and its offset in one number, so that a partition is one range of the
primary key.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import orjson

from streams.log.base import Headers, Outgoing, Record
from streams.positions import Partition
from streams.topics import Topic

MAX_READ_BYTES = 4 * 1024 * 1024
OFFSET_BITS = 40
SCHEMA = """
CREATE TABLE IF NOT EXISTS partitions (
    id INTEGER PRIMARY KEY, topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic, partition));
CREATE TABLE IF NOT EXISTS records (
    place INTEGER PRIMARY KEY, timestamp_ms INTEGER NOT NULL, key BLOB, value BLOB, headers BLOB);
CREATE TABLE IF NOT EXISTS committed (
    consumer_group TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL,
    PRIMARY KEY (consumer_group, topic, partition)) WITHOUT ROWID;
"""


def read_ends(connection: sqlite3.Connection) -> dict[Partition, int]:
    """The next offset of every partition."""
    rows = connection.execute("SELECT topic, partition, next_offset FROM partitions").fetchall()
    return {Partition(topic, number): offset for topic, number, offset in rows}


def add_topic(connection: sqlite3.Connection, topic: Topic) -> None:
    """Insert the partitions of a topic that are not there."""
    rows = [(topic.name, number) for number in range(topic.partitions)]
    connection.executemany("INSERT OR IGNORE INTO partitions(topic, partition) VALUES (?, ?)", rows)


def append(connection: sqlite3.Connection, placed: Sequence[tuple[Partition, Outgoing]], now_ms: int) -> list[Record]:
    """Insert the records at the next offsets of their partitions; returns them with these offsets."""
    heads: dict[Partition, tuple[int, int]] = {}
    rows, appended = [], []
    for at, record in placed:
        if at not in heads:
            heads[at] = connection.execute(
                "SELECT id, next_offset FROM partitions WHERE topic = ? AND partition = ?", at
            ).fetchone()
        place, offset = heads[at]
        heads[at] = place, offset + 1
        rows.append(((place << OFFSET_BITS) + offset, now_ms, record.key, record.value, _write_headers(record.headers)))
        appended.append(Record(*at, offset, now_ms, record.key, record.value, tuple(record.headers)))
    connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
    connection.executemany(
        "UPDATE partitions SET next_offset = ? WHERE id = ?", [(offset, place) for place, offset in heads.values()]
    )
    return appended


def fetch(connection: sqlite3.Connection, at: Partition, partition_id: int, offset: int, limit: int) -> list[Record]:
    """Up to `limit` records (and about MAX_READ_BYTES) of a partition from an offset, in order."""
    low = partition_id << OFFSET_BITS
    rows = connection.execute(
        "SELECT place, timestamp_ms, key, value, headers FROM records "
        "WHERE place >= ? AND place < ? ORDER BY place LIMIT ?",
        (low + offset, low + (1 << OFFSET_BITS), limit),
    )
    records: list[Record] = []
    size = 0
    for place, timestamp_ms, key, value, headers in rows:
        records.append(Record(at.topic, at.partition, place - low, timestamp_ms, key, value, _read_headers(headers)))
        size += len(value or b"")
        if size >= MAX_READ_BYTES:
            break
    rows.close()
    return records


def _write_headers(headers: Headers) -> bytes:
    return orjson.dumps([[name, value.decode("latin-1")] for name, value in headers])


def _read_headers(raw: bytes | None) -> Headers:
    return tuple((name, value.encode("latin-1")) for name, value in orjson.loads(raw or b"[]"))
