"""What the belief tools read: beliefs, entities and tensions as the objects that they answer with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb

from processors.valence.beliefs import label_of_record
from processors.valence.confidence import WEIGHTS, label_of
from processors.valence.entities import name_key
from processors.valence.tensions import SEVERITIES
from streams.clock import format_time

Cursor = duckdb.DuckDBPyConnection
Row = dict[str, Any]

_BELIEF = f"""
SELECT b.belief_id, b.content, b.domain_path, b.status, b.valid_from, b.valid_until, b.created_at, b.modified_at, b.extraction_method,
       b.supersedes_id, b.superseded_by_id, b.corroboration_count, b.overall, {", ".join(f"b.{name}" for name in WEIGHTS)},
       b.source_id, s.type, s.title, s.url, s.session_id
FROM %s b LEFT JOIN valence_sources s ON s.namespace = b.namespace AND s.source_id = b.source_id"""
_PLAIN = (
    "id",
    "content",
    "domain_path",
    "status",
    "valid_from",
    "valid_until",
    "created_at",
    "modified_at",
    "extraction_method",
    "supersedes_id",
    "superseded_by_id",
    "corroboration_count",
)
_TENSION = """
SELECT tension_id, belief_a_id, belief_b_id, belief_a_content, belief_b_content, type, description, severity, status, resolution,
       resolved_at, detected_at, score, materiality, suggested_action
FROM tensions"""
_TENSION_FIELDS = (
    "id",
    "belief_a_id",
    "belief_b_id",
    "belief_a_content",
    "belief_b_content",
    "type",
    "description",
    "severity",
    "status",
    "resolution",
    "resolved_at",
    "detected_at",
    "score",
    "materiality",
    "suggested_action",
)
_ENTITY = """
SELECT e.entity_id, e.name, e.type, e.description, e.aliases, e.canonical_id, e.created_at, e.modified_at,
       (SELECT count(DISTINCT l.belief_id) FROM belief_entities l JOIN valence_beliefs b
               ON b.namespace = l.namespace AND b.belief_id = l.belief_id AND b.status = 'active'
        WHERE l.namespace = e.namespace AND l.entity_id = e.entity_id)
FROM knowledge_entities e"""
_ENTITY_FIELDS = ("id", "name", "type", "description", "aliases", "canonical_id", "created_at", "modified_at", "belief_count")


def find_beliefs(cursor: Cursor, namespace: str, ids: Sequence[str]) -> dict[str, Row]:
    """The beliefs with these ids, by id, each with its source and the entities it is linked to."""
    if not ids:
        return {}
    marks = ", ".join("?" * len(ids))
    labels = [label_of_record(namespace, identity) for identity in ids]
    select = _BELIEF % standing(cursor, namespace, ids)
    rows = cursor.execute(f"{select} WHERE b.label IN ({marks}) AND b.namespace = ?", [*labels, namespace]).fetchall()
    links = cursor.execute(
        f"""SELECT l.belief_id, l.role, e.entity_id, e.name, e.type
        FROM belief_entities l JOIN valence_entities e ON e.namespace = l.namespace AND e.entity_id = l.entity_id
        WHERE l.namespace = ? AND l.belief_id IN ({marks}) ORDER BY l.role = 'context', l.role = 'object', e.name, e.entity_id""",
        [namespace, *ids],
    ).fetchall()
    linked: dict[str, list[Row]] = {}
    for belief_id, role, entity_id, name, kind in links:
        linked.setdefault(belief_id, []).append({"entity": {"id": entity_id, "name": name, "type": kind}, "role": role})
    return {row[0]: _belief(row, linked.get(row[0], [])) for row in rows}


def standing(cursor: Cursor, namespace: str, ids: Sequence[str]) -> str:
    """Where to read these beliefs as they stand: the view, or its table when none of them was ever in a tension.

    The view counts tensions in for all beliefs; without any it is the table, at a tenth of the time.
    """
    marks = ", ".join("?" * len(ids))
    [(in_tension,)] = cursor.execute(
        f"SELECT count(*) FROM tension_findings WHERE namespace = ? AND (belief_a_id IN ({marks}) OR belief_b_id IN ({marks}))",
        [namespace, *ids, *ids],
    ).fetchall()
    return "beliefs" if in_tension else "valence_beliefs"


def _belief(row: Sequence[Any], entities: list[Row]) -> Row:
    plain = _shown(_PLAIN, row)
    overall, *dimensions = row[12 : 13 + len(WEIGHTS)]
    source_id, kind, title, url, session_id = row[13 + len(WEIGHTS) :]
    given = {name: value for name, value in zip(WEIGHTS, dimensions, strict=True) if value is not None}
    source = {"id": source_id, "type": kind, "title": title, "url": url, "session_id": session_id}
    return plain | {
        "confidence": {"overall": overall, **given},
        "confidence_label": label_of(overall),
        "source": None if source_id is None else source,
        "entities": entities,
    }


def _shown(names: Sequence[str], row: Sequence[Any]) -> Row:
    return {name: time_text(value) if isinstance(value, datetime) else value for name, value in zip(names, row, strict=False)}


def time_text(moment: datetime | None) -> str | None:
    """A moment of the store as the answers say it."""
    return None if moment is None else format_time(moment.replace(tzinfo=UTC))


def find_belief(cursor: Cursor, namespace: str, belief_id: str) -> Row | None:
    return find_beliefs(cursor, namespace, [belief_id]).get(belief_id)


def find_line(cursor: Cursor, namespace: str, belief_id: str) -> list[Row]:
    """The whole line of a belief, oldest first: what it came from, itself, and what it became."""
    line = [_step(cursor, namespace, belief_id)]
    while line[0]["supersedes_id"] is not None:
        line.insert(0, _step(cursor, namespace, line[0]["supersedes_id"]))
    while line[-1]["superseded_by_id"] is not None:
        line.append(_step(cursor, namespace, line[-1]["superseded_by_id"]))
    shown = ("id", "content", "created_at", "valid_from", "valid_until", "reason")
    return [
        {name: step[name] for name in shown} | {"position": place, "is_current": step["superseded_by_id"] is None}
        for place, step in enumerate(line, 1)
    ]


def _step(cursor: Cursor, namespace: str, belief_id: str) -> Row:
    names = ("id", "content", "created_at", "valid_from", "valid_until", "reason", "supersedes_id", "superseded_by_id")
    [row] = cursor.execute(
        "SELECT belief_id, content, created_at, valid_from, valid_until, reason, supersedes_id, superseded_by_id FROM valence_beliefs "
        "WHERE namespace = ? AND belief_id = ?",
        [namespace, belief_id],
    ).fetchall()
    return _shown(names, row)


def find_tension(cursor: Cursor, namespace: str, tension_id: str) -> Row | None:
    """The tension, with `action`: what resolved it, None when that was no call."""
    rows = cursor.execute(f"{_TENSION} WHERE namespace = ? AND tension_id = ?", [namespace, tension_id]).fetchall()
    if not rows:
        return None
    [(action,)] = cursor.execute(
        "SELECT max(action) FROM tension_resolutions WHERE namespace = ? AND tension_id = ?", [namespace, tension_id]
    ).fetchall()
    return _shown(_TENSION_FIELDS, rows[0]) | {"action": action}


def list_tensions(
    cursor: Cursor,
    namespace: str,
    *,
    status: str | None = None,
    severity: str | None = None,
    entity_id: str | None = None,
    belief_id: str | None = None,
    open_only: bool = False,
    limit: int,
) -> tuple[list[Row], int]:
    """Tensions that meet every condition, the latest detected first, and how many there are. `severity` is the least."""
    clauses, parameters = ["namespace = ?"], list[Any]([namespace])
    if status is not None:
        clauses.append("status = ?")
        parameters.append(status)
    if open_only:
        clauses.append("status IN ('detected', 'investigating')")
    if severity is not None:
        clauses.append("severity IN (SELECT unnest(?))")
        parameters.append(list(SEVERITIES[SEVERITIES.index(severity) :]))
    if entity_id is not None:
        among = "(SELECT belief_id FROM belief_entities WHERE namespace = ? AND entity_id = ?)"
        clauses.append(f"(belief_a_id IN {among} OR belief_b_id IN {among})")
        parameters += [namespace, entity_id] * 2
    if belief_id is not None:
        clauses.append("? IN (belief_a_id, belief_b_id)")
        parameters.append(belief_id)
    where = " AND ".join(clauses)
    rows = cursor.execute(f"{_TENSION} WHERE {where} ORDER BY detected_at DESC, tension_id LIMIT ?", [*parameters, limit]).fetchall()
    [(total,)] = cursor.execute(f"SELECT count(*) FROM tensions WHERE {where}", parameters).fetchall()
    return [_shown(_TENSION_FIELDS, row) for row in rows], total


def find_canonical(cursor: Cursor, namespace: str, entity_id: str) -> str | None:
    """The entity that stands for the one with this id, itself when it was not merged; None when there is none."""
    rows = cursor.execute(
        "SELECT coalesce(canonical_id, entity_id) FROM knowledge_entities WHERE namespace = ? AND entity_id = ?", [namespace, entity_id]
    ).fetchall()
    return rows[0][0] if rows else None


def find_entity(cursor: Cursor, namespace: str, entity_id: str) -> Row:
    """The entity with this id, which is one that `find_canonical` gave."""
    [row] = cursor.execute(f"{_ENTITY} WHERE e.namespace = ? AND e.entity_id = ?", [namespace, entity_id]).fetchall()
    return _shown(_ENTITY_FIELDS, row)


def newest_beliefs(cursor: Cursor, namespace: str, entity_id: str, limit: int) -> list[Row]:
    """The active beliefs linked to the entity, newest first."""
    rows = cursor.execute(
        """SELECT belief_id FROM valence_beliefs b
        WHERE namespace = $1 AND status = 'active'
          AND belief_id IN (SELECT belief_id FROM belief_entities WHERE namespace = $1 AND entity_id = $2)
        ORDER BY created_at DESC, "offset" DESC, belief_id LIMIT $3""",
        [namespace, entity_id, limit],
    ).fetchall()
    ids = [identity for (identity,) in rows]
    found = find_beliefs(cursor, namespace, ids)
    return [found[identity] for identity in ids]


def search_entities(cursor: Cursor, namespace: str, query: str, kind: str | None, limit: int) -> tuple[list[Row], int]:
    """Canonical entities whose name or alias holds the query: exact names first, then beginnings, insides, aliases."""
    wanted = name_key(query)
    matches = """
        SELECT *, CASE WHEN name_key = $2 THEN 1 WHEN starts_with(name_key, $2) THEN 2 WHEN contains(name_key, $2) THEN 3
                       WHEN len(list_filter(aliases, lambda alias: contains(lower(alias), $2))) > 0 THEN 4 END AS place
        FROM knowledge_entities WHERE namespace = $1 AND canonical_id IS NULL AND ($3 IS NULL OR type = $3)"""
    rows = cursor.execute(
        f"WITH found AS ({matches}) {_ENTITY.replace('knowledge_entities', 'found')} WHERE e.place IS NOT NULL "
        "ORDER BY e.place, e.name_key, e.entity_id LIMIT $4",
        [namespace, wanted, kind, limit],
    ).fetchall()
    [(total,)] = cursor.execute(f"SELECT count(*) FROM ({matches}) WHERE place IS NOT NULL", [namespace, wanted, kind]).fetchall()
    return [_shown(_ENTITY_FIELDS, row) for row in rows], total


def details_of(tension: Mapping[str, Any]) -> Row:
    """What is said of a tension that is closed."""
    return {name: tension[name] for name in ("status", "resolution", "resolved_at")}
