"""Ids of merged memories among a tool's arguments: the memory that stands for one is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb

from processors.context_graph.read.ends import followed_all

FOLLOWED_FROM: Mapping[str, Any] = {
    "followed_from": {
        "type": "object",
        "description": "What was asked for, by argument, where it was merged into another memory",
        "additionalProperties": {"type": "string"},
    }
}


def follow(
    cursor: duckdb.DuckDBPyConnection, namespace: str, given: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """By argument the id that stands for it now, and what the answer says of those that were followed."""
    living = followed_all(cursor, namespace, list(given.values()))
    merged = {name: identity for name, identity in given.items() if identity in living}
    ends = {name: living.get(identity, identity) for name, identity in given.items()}
    return ends, {"followed_from": merged} if merged else {}
