"""Memories that became one: what the new one is made of, and what becomes of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from processors.context_graph.rules.memories import (
    CONTENTS,
    ENDS,
    LEARNED,
    MEMORIES,
    hash_of,
    living_id,
    make_searchable,
    united,
    words_of,
)
from processors.frame.reducer import Row, Rows, at
from streams.events import Event
from streams.ids import derived_id, document_label

MERGED = "merged"


def merged_id_of(namespace: str, sources: Sequence[str]) -> str:
    """The id of the memory that these become, in whatever order they are named."""
    return derived_id(namespace, "context.merged", *sorted(sources))


@dataclass(frozen=True, slots=True)
class Merge:
    """What became of a group. `bytes_saved`: of the texts that are searched; `refused`: why nothing became of it."""

    memory_id: str
    merged_from: list[str]
    similarity: float | None
    pairs: int
    bytes_saved: int = 0
    refused: str | None = None


def merge(event: Event, group: Mapping[str, Any], rows: Rows) -> Merge:
    """Make one memory of a group's, and end these, unless one of them is not there or has ended before.

    What may have changed since the group was found is read again: tags, importance, learning.
    """
    sources = list(dict.fromkeys(group["merged_from"]))
    found = [rows.get(MEMORIES, source) for source in sources]
    members = sorted((row for row in found if row is not None), key=_age)
    merged = Merge(group["memory_id"], sources, group.get("similarity"), group.get("pairs") or len(sources) - 1)
    if refused := _refusal(group, sources, members, rows):
        return replace(merged, refused=refused)
    row = _made_of(event, group, members)
    rows.put(MEMORIES, row)
    make_searchable(rows, row)
    if rows.get(CONTENTS, row["content_hash"]) is None:
        rows.put(CONTENTS, {"content_hash": row["content_hash"], "memory_id": row["memory_id"]})
    how = event.data.get("strategy") or "similarity"
    ended = {"merged_into": row["memory_id"], "how": how, "similarity": merged.similarity}
    for member in members:
        rows.put(ENDS, {"memory_id": member["memory_id"], **ended, "ended_at": at(event.time)})
    before = sum(len(member["content"].encode()) for member in members)
    return replace(merged, bytes_saved=max(0, before - len(row["content"].encode())))


def _refusal(group: Mapping[str, Any], sources: Sequence[str], members: Sequence[Row], rows: Rows) -> str | None:
    if len(members) < len(sources) or group["memory_id"] in sources:
        return "not_found"
    if len(sources) < 2 or not group["content"].strip():
        return "invalid_argument"
    if rows.get(MEMORIES, group["memory_id"]) is not None:
        return "conflict"
    return "already_merged" if any(living_id(rows, source) != source for source in sources) else None


def _age(row: Row) -> tuple[Any, ...]:
    return row["created_at"], row["memory_id"]


def _made_of(event: Event, group: Mapping[str, Any], members: Sequence[Row]) -> Row:
    """The row of the new memory, as old as the oldest of its sources, which come in order of age."""
    first, content, tags = members[0], group["content"], united(member["tags"] for member in members)
    learned = next((member for member in members if member["learning_score"] is not None), first)
    searched = words_of(content, first["modality"], group.get("rationale"), tags)
    return {
        "memory_id": group["memory_id"],
        "label": document_label(event.namespace, group["memory_id"]),
        "content": content,
        "searched": None if searched == content else searched,
        "rationale": group.get("rationale"),
        "modality": first["modality"],
        "importance": max(member["importance"] for member in members),
        "tags": tags,
        "content_hash": hash_of(content),
        "session_id": first["session_id"],
        "times": 0,  # its sources count for themselves
        "created_at": first["created_at"],
        "last_stored_at": max(member["last_stored_at"] for member in members),
        "created_event_id": event.id,
        "merged_from": [member["memory_id"] for member in members],
        "merged_at": at(event.time),
        **{name: learned[name] for name in LEARNED},
    }
