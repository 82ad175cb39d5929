"""The process that builds a projection from a graph on stdin (JSON).

`python -m storage.graph.build FILE`.
A process of its own, so that nothing in the native library can end the node.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ladybug
import orjson

BATCH = 2000
MAX_DB_BYTES = 2**33


def build(path: Path, graph: Mapping[str, Any]) -> None:
    """Write the graph into a new file."""
    database = ladybug.Database(str(path), max_num_threads=1, max_db_size=MAX_DB_BYTES, buffer_pool_size=256 * 2**20)
    connection = ladybug.Connection(database)
    for label, properties in graph["schema"]["nodes"].items():
        columns = "".join(f", `{name}` {kind}" for name, kind in properties.items())
        connection.execute(f"CREATE NODE TABLE `{label}`(id STRING PRIMARY KEY{columns})")
    for relation, spec in graph["schema"]["edges"].items():
        pairs = ", ".join(f"FROM `{start}` TO `{end}`" for start, end in spec["pairs"])
        columns = "".join(f", `{name}` {kind}" for name, kind in spec["properties"].items())
        connection.execute(f"CREATE REL TABLE `{relation}`({pairs}{columns})")
    connection.execute("BEGIN TRANSACTION")
    for label, rows in graph["nodes"].items():
        types = graph["schema"]["nodes"][label]
        values = _assigned(types)
        _insert(connection, f"UNWIND $rows AS r CREATE (:`{label}` {{id: r.id{values}}})", rows)
    for key, rows in graph["edges"].items():
        relation, start, end = key.split(" ")
        types = graph["schema"]["edges"][relation]["properties"]
        values = _assigned(types).removeprefix(", ")
        _insert(
            connection,
            f"UNWIND $rows AS r MATCH (a:`{start}` {{id: r.`from`}}) MATCH (b:`{end}` {{id: r.`to`}}) "
            f"CREATE (a)-[:`{relation}` {{{values}}}]->(b)",
            rows,
        )
    connection.execute("COMMIT")
    connection.execute("CHECKPOINT")
    connection.close()
    database.close()


def _assigned(types: Mapping[str, str]) -> str:
    return "".join(f", `{name}`: CAST(r.`{name}` AS {kind})" for name, kind in types.items())


def _insert(connection: Any, query: str, rows: Sequence[dict[str, Any]]) -> None:
    """Run the query over the rows, a batch at a time; every row has every property."""
    for start in range(0, len(rows), BATCH):
        connection.execute(query, {"rows": list(rows[start : start + BATCH])})


def main() -> None:
    build(Path(sys.argv[1]), orjson.loads(sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
