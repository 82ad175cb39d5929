"""`memories` is the union of the domains' own views, with the columns and rows of the one SELECT that it was before."""

from __future__ import annotations

from collections import Counter

import duckdb

from storage.migrate import known_migrations
from tests.schema import fresh_database
from tests.sql.rows import TUESDAY, insert, insert_story
from tests.sql.valence_story import tell_valence

WHOLE = 27
"""The last migration that wrote `memories` as one SELECT over the tables of all domains."""


def described(cursor: duckdb.DuckDBPyConnection, view: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind, *_ in cursor.execute(f"DESCRIBE {view}").fetchall()]


def rows_of(cursor: duckdb.DuckDBPyConnection, view: str) -> Counter[tuple[object, ...]]:
    return Counter(cursor.execute(f"FROM {view}").fetchall())


def test_the_union_of_the_domains_views_has_the_columns_and_the_rows_of_the_view_that_it_replaced() -> None:
    database = fresh_database()
    cursor = database.cursor()
    insert_story(cursor)
    tell_valence(database)
    [(entity,)] = cursor.execute("SELECT max(record_id) FROM merges").fetchall()
    insert(cursor, "prunes", record_id=entity, reason="unused", pruned_at=TUESDAY)
    [whole] = [each.sql for each in known_migrations() if each.version == WHOLE]
    cursor.execute(whole[whole.index("CREATE OR REPLACE VIEW memories AS") :].replace("memories", "former", 1))
    rows = rows_of(cursor, "memories")
    assert rows == rows_of(cursor, "former") and described(cursor, "memories") == described(cursor, "former")
    parts = [f"{domain}_memories" for domain in ("talos", "valence", "cognitive", "context_graph")]
    assert sum((rows_of(cursor, part) for part in parts), Counter()) == rows
    assert all(described(cursor, part) == described(cursor, "former") for part in parts)
    assert {(toolset, is_live) for _, _, toolset, *_, is_live, _, _ in rows} >= {
        ("talos", False), ("talos", True), ("valence", False), ("valence", True), ("cognitive_memory", True),
    }  # fmt: skip
