"""docs/tables.md names exactly the tables, views, columns and types that the migrations make."""

from __future__ import annotations

import re
from pathlib import Path

from storage.database import Database

PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
PROMISED = {
    "sessions": "session_id parent_session_id namespace source project agent model goal summary started_at "
    "ended_at duration_s",
    "memories": "memory_id kind toolset session_id text created_at valid_from valid_until superseded_by is_live "
    "source_event_id",
}


def documented() -> dict[str, list[tuple[str, ...]]]:
    """Table name -> (column, type, meaning, origin) as the page has them."""
    sections = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
    row = re.compile(r"^\| `(\w+)` \| `([^`]+)` \| (.+) \| (.+) \|$", flags=re.MULTILINE)
    return {section.split("\n", 1)[0]: row.findall(section) for section in sections}


def real(store: Database) -> dict[str, list[tuple[str, str]]]:
    columns: dict[str, list[tuple[str, str]]] = {}
    for table, column, kind in store.cursor().execute(
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_catalog = current_database() AND table_schema = 'main' ORDER BY table_name, ordinal_position"
    ).fetchall():  # fmt: skip
        columns.setdefault(table, []).append((column, kind))
    return columns


def test_the_page_has_every_column_of_the_schema_in_its_order_and_no_other(store: Database) -> None:
    assert {name: [entry[:2] for entry in rows] for name, rows in documented().items()} == real(store)


def test_every_column_has_a_meaning_and_an_origin() -> None:
    assert all(len(entry[2]) > 3 and len(entry[3]) > 2 for rows in documented().values() for entry in rows)


def test_the_promised_views_begin_with_the_promised_columns(store: Database) -> None:
    columns = {table: [name for name, _ in rows] for table, rows in real(store).items()}
    for table, promised in PROMISED.items():
        names = promised.split()
        assert columns[table][: len(names)] == names
