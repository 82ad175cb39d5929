"""Profiles as the store has them, and those of the system."""

from __future__ import annotations

from typing import Any

import duckdb
import orjson

from processors.context_graph.rules.groups import GROUPS
from processors.context_graph.rules.profiles import SYSTEM, Profile, missing, profile_of, shown
from storage.statements import dicts
from streams.errors import Refused

VIEW_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 13, "maxItems": 13}
GROUP_NUMBERS = {"type": "object", "properties": {group: {"type": "number"} for group in GROUPS}}
_OWN = "SELECT * FROM context_profiles WHERE namespace = $namespace AND NOT is_deleted"


def list_profiles(cursor: duckdb.DuckDBPyConnection, namespace: str) -> list[dict[str, Any]]:
    """The namespace's own profiles by id, then those of the system; each as answers have it."""
    own = _rows(cursor, f"{_OWN} ORDER BY profile_id", namespace=namespace)
    return [*(_answered(row) for row in own), *(shown(profile) for profile in SYSTEM.values())]


def find_profile(cursor: duckdb.DuckDBPyConnection, namespace: str, profile_id: str) -> dict[str, Any]:
    """The profile of this id as answers have it. Raises Refused where there is none."""
    if profile_id in SYSTEM:
        return shown(SYSTEM[profile_id])
    return _answered(_row(cursor, namespace, profile_id))


def profile_for(cursor: duckdb.DuckDBPyConnection, namespace: str, profile_id: str) -> Profile:
    """The profile of this id. Raises Refused where there is none."""
    return SYSTEM.get(profile_id) or profile_of(_row(cursor, namespace, profile_id))


def _row(cursor: duckdb.DuckDBPyConnection, namespace: str, profile_id: str) -> dict[str, Any]:
    found = _rows(cursor, f"{_OWN} AND profile_id = $profile_id", namespace=namespace, profile_id=profile_id)
    if not found:
        raise Refused(missing(profile_id), reason="not_found", field="profile_id")
    return found[0]


def _rows(cursor: duckdb.DuckDBPyConnection, query: str, **parameters: str) -> list[dict[str, Any]]:
    """Rows of profiles, their priorities as an object."""
    rows = dicts(cursor.execute(query, parameters))
    return [row | {"group_priorities": orjson.loads(row["group_priorities"])} for row in rows]


def _answered(row: dict[str, Any]) -> dict[str, Any]:
    return shown(profile_of(row), row["created_at"], row["updated_at"])
