"""A store with a few rows of everything that the ten questions ask about, and its published snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storage.database import Database
from storage.migrate import migrate
from storage.sql.snapshot import Snapshots
from tests.sql.rows import insert_story
from tests.sql.valence_story import tell_valence

NOW = datetime(2026, 3, 3, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = Database(tmp_path_factory.mktemp("store"))
    cursor = database.cursor()
    migrate(cursor, NOW)
    insert_story(cursor)
    tell_valence(database)
    yield database
    database.close()


@pytest.fixture(scope="session")
def snapshot(store: Database) -> Path:
    return Snapshots(store).get(max_age_s=0).path
