"""A log that was recorded with real stages replays to the store that it made then: every table, every row.

`recorded/log.jsonl.gz` holds records of every toolset, with repeats, refusals and poison;
`recorded/store.jsonl.gz` the rows that they made when they were recorded. Later columns and tables are left out.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from processors.frame.batch import reduce_batch
from streams.log.base import Record
from streams.topics import DLQ_SUFFIX
from tests.processors.harness import Store
from tests.schema import NOW

RECORDED = Path(__file__).parent / "recorded"
LEFT_OUT = ("schema_migrations", "progress_tokens")
"""Not made of events; how far the log was read is the view `positions`, which the other tests compare."""


def lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(RECORDED / name, "rb") as file:
        yield from map(orjson.loads, file)


def recorded_log() -> list[Record]:
    """The dead letters first, as the materialiser reads them; then the topics one after the other."""
    records = [
        Record(
            line["topic"],
            line["partition"],
            line["offset"],
            line["timestamp_ms"],
            None if line["key"] is None else line["key"].encode(),
            None if line["value"] is None else line["value"].encode(),
            tuple((name, value.encode()) for name, value in line["headers"]),
        )
        for line in lines("log.jsonl.gz")
    ]
    return sorted(records, key=lambda record: (not record.topic.endswith(DLQ_SUFFIX), record.topic, record.offset))


def replayed(records: Sequence[Record], size: int) -> Store:
    """The store after the records in batches of this size. What is buried lies in its topic already."""
    store = Store()
    for start in range(0, len(records), size):
        store.writer.commit(reduce_batch(store.writer, records[start : start + size], NOW).changes)
    return store


def rows_of(store: Store) -> list[bytes]:
    """A line for each row: its table and what is in it, NULLs left out."""
    found = []
    for name, table in sorted(store.writer.tables.items()):
        if name in LEFT_OUT:
            continue
        for values in store.sql(f"SELECT * FROM {name}"):
            row = {
                column: _plain(value, table.columns[column])
                for column, value in zip(table.columns, values, strict=True)
                if value is not None
            }
            found.append(orjson.dumps({"table": name, "row": row}, option=orjson.OPT_SORT_KEYS))
    return sorted(found)


def _plain(value: Any, kind: str) -> Any:
    if kind == "JSON":
        return orjson.loads(value)
    return value if isinstance(value, bool | int | float | str | list) else repr(value)


def known_columns(line: dict[str, Any], columns: dict[str, set[str]]) -> bytes:
    row = {name: value for name, value in line["row"].items() if name in columns[line["table"]]}
    return orjson.dumps({"table": line["table"], "row": row}, option=orjson.OPT_SORT_KEYS)


@pytest.mark.parametrize("size", [1, 40, 1000])
def test_a_log_that_was_recorded_before_replays_to_the_same_rows_in_every_table(size: int) -> None:
    store = replayed(recorded_log(), size)
    recorded = list(lines("store.jsonl.gz"))
    columns: dict[str, set[str]] = {}
    for line in recorded:
        columns.setdefault(line["table"], set()).update(line["row"])
    expected = Counter(known_columns(line, columns) for line in recorded)
    now = [line for row in rows_of(store) if (line := orjson.loads(row))["table"] in columns]
    made = Counter(known_columns(line, columns) for line in now)
    assert expected - made == made - expected == Counter()
    store.database.close()


def test_what_was_recorded_fills_nearly_every_table_and_rows_change_more_than_once() -> None:
    store = replayed(recorded_log(), 1000)
    filled = {line["table"] for line in lines("store.jsonl.gz")}
    assert len(filled) == 63 and {"tension_resolutions", "clusters", "passages", "stale_memory", "outcomes"} <= filled
    assert store.sql("SELECT count(DISTINCT event_type) FROM events") == [(65,)]
    assert store.sql("SELECT status FROM outcomes GROUP BY ALL ORDER BY 1") == [("applied",), ("refused",)]
    assert store.sql("SELECT max(corroboration_count) FROM valence_beliefs") == [(2,)]
    store.database.close()
