"""The graph side of a search: what is one relation away from the best hits of the other sides."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

_NEIGHBOURS = """
WITH ids AS (  -- the hits, and the records that were merged into them
    SELECT unnest(?::VARCHAR[]) AS id, unnest(?::VARCHAR[]) AS head
    UNION
    SELECT m.record_id, m.into_id FROM merges m WHERE m.namespace = ? AND m.into_id IN (SELECT unnest(?::VARCHAR[]))),
edges AS (
    SELECT from_id AS id, to_id AS other FROM relations WHERE namespace = ?
    UNION ALL
    SELECT to_id, from_id FROM relations WHERE namespace = ?)
SELECT DISTINCT ids.head, coalesce(m.into_id, edges.other)
FROM ids JOIN edges ON edges.id = ids.id LEFT JOIN merges m ON m.namespace = ? AND m.record_id = edges.other
WHERE coalesce(m.into_id, edges.other) <> ids.head
"""


def find_neighbours(cursor: duckdb.DuckDBPyConnection, namespace: str, parents: Sequence[str]) -> dict[str, int]:
    """record id -> the place (0 = best) of its best parent among `parents`, record ids best first.

    Relations count in both directions; a merged record stands for the one that it was merged into.
    """
    if not parents:
        return {}
    ids = list(parents)
    rows = cursor.execute(_NEIGHBOURS, [ids, ids, namespace, ids, namespace, namespace, namespace]).fetchall()
    place = {record_id: number for number, record_id in reversed(list(enumerate(ids)))}
    best: dict[str, int] = {}
    for parent, neighbour in rows:
        best[neighbour] = min(place[parent], best.get(neighbour, len(ids)))
    return best
