"""What the belief tools read: beliefs, entities and tensions as the objects that they answer with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import orjson

from mcp_ingress.other_records import repeated
from processors.valence.read.belief_consistency import Consistency, read_consistency, with_tensions
from processors.valence.read.belief_rows import read_beliefs, read_labelled
from processors.valence.rules.confidence import WEIGHTS, Confidence, label_of
from processors.valence.rules.entities import name_key
from processors.valence.rules.tensions import SEVERITIES
from storage.search.ranked_list import MAX_OTHERS
from storage.search.records.clusters import Clusters
from storage.search.records.label_map import ABSENT
from storage.statements import execute, marks
from streams.clock import format_time
from streams.ids import document_label

Cursor = duckdb.DuckDBPyConnection
Row = dict[str, Any]

_BELIEF = f"""belief_id, content, domain_path, status, valid_from, valid_until, created_at, modified_at,
extraction_method, supersedes_id, superseded_by_id, corroboration_count, source_id, links,
overall, overall_origin, {", ".join(WEIGHTS)}"""
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
_ROLE_ORDER = {"subject": 0, "object": 1, "context": 2}
_TENSION = """
SELECT tension_id, belief_a_id, belief_b_id, type, description, severity, status, resolution, resolved_at, detected_at,
score, materiality,        suggested_action, action"""
_TENSION_FIELDS = (
    "id",
    "belief_a_id",
    "belief_b_id",
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
    "action",
)
_ENTITY = "e.entity_id, e.name, e.type, e.description, e.aliases, e.canonical_id, e.created_at, e.modified_at"
_ENTITY_FIELDS = ("id", "name", "type", "description", "aliases", "canonical_id", "created_at", "modified_at")


def find_beliefs(cursor: Cursor, namespace: str, ids: Sequence[str]) -> dict[str, Row]:
    """The beliefs with these ids, by id, each with its source and the entities it is linked to."""
    return beliefs_of(cursor, namespace, [document_label(namespace, identity) for identity in ids])


def beliefs_of(cursor: Cursor, namespace: str, labels: Sequence[int]) -> dict[str, Row]:
    """The beliefs with these labels, by id, with the values of the view `beliefs`.

    It does not ask the view, which reads every belief even to show a few.
    """
    rows = read_labelled(cursor, _BELIEF, namespace, labels)
    links = {row[0]: orjson.loads(row[13]) for row in rows}
    entities = _named(cursor, namespace, {link["entity_id"] for given in links.values() for link in given})
    sources = _sources(cursor, namespace, {row[12] for row in rows} - {None})
    standing = read_consistency(cursor, namespace, list(links))
    return {
        row[0]: _belief(row, sources.get(row[12]), _linked(links[row[0]], entities), standing.get(row[0]))
        for row in rows
    }


def _named(cursor: Cursor, namespace: str, ids: Collection[str]) -> dict[str, Row]:
    """The entities that stand for these, by the ids that are asked for."""
    if not ids:
        return {}
    rows = execute(
        cursor,
        """SELECT e.entity_id, c.entity_id, c.name, c.type
        FROM (SELECT entity_id, coalesce((SELECT r.canonical_id FROM entity_resolutions r
            WHERE r.namespace = ? AND r.entity_id = i.entity_id),
                                         entity_id) AS canonical_id
              FROM (SELECT unnest(?::VARCHAR[]) AS entity_id) i) e
        JOIN valence_entities c ON c.namespace = ? AND c.entity_id = e.canonical_id""",
        [namespace, list(ids), namespace],
    ).fetchall()
    return {linked_id: {"id": entity_id, "name": name, "type": kind} for linked_id, entity_id, name, kind in rows}


def _linked(links: Sequence[Row], entities: Mapping[str, Row]) -> list[Row]:
    """Each entity once for each of its roles: subjects first, then by name."""
    once = {
        (entities[link["entity_id"]]["id"], link["role"]): entities[link["entity_id"]]
        for link in links
        if link["entity_id"] in entities
    }
    placed = sorted(once.items(), key=lambda link: (_ROLE_ORDER[link[0][1]], link[1]["name"], link[0][0]))
    return [{"entity": entity, "role": role} for (_, role), entity in placed]


def _sources(cursor: Cursor, namespace: str, ids: Collection[str]) -> dict[str, Row]:
    if not ids:
        return {}
    rows = execute(
        cursor,
        "SELECT source_id, type, title, url, session_id FROM valence_sources "
        f"WHERE namespace = ? AND source_id IN ({marks(ids)})",
        [namespace, *ids],
    ).fetchall()
    return {row[0]: dict(zip(("id", "type", "title", "url", "session_id"), row, strict=True)) for row in rows}


def _belief(row: Sequence[Any], source: Row | None, entities: list[Row], standing: Consistency | None) -> Row:
    plain = _shown(_PLAIN, row)
    overall, origin, *dimensions = row[14:]
    given = {name: value for name, value in zip(WEIGHTS, dimensions, strict=True) if value is not None}
    confidence, status = with_tensions(
        Confidence(overall, origin, given), plain["status"], plain["corroboration_count"], standing
    )
    return plain | {
        "status": status,
        "confidence": {
            "overall": confidence.overall,
            **{name: confidence.dimensions[name] for name in WEIGHTS if name in confidence.dimensions},
        },
        "confidence_label": label_of(confidence.overall),
        "source": source,
        "entities": entities,
    }


def _shown(names: Sequence[str], row: Sequence[Any]) -> Row:
    return {
        name: time_text(value) if isinstance(value, datetime) else value
        for name, value in zip(names, row, strict=False)
    }


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
    fields = ("id", "content", "created_at", "valid_from", "valid_until", "reason")
    return [
        {name: step[name] for name in fields} | {"position": place, "is_current": step["superseded_by_id"] is None}
        for place, step in enumerate(line, 1)
    ]


def _step(cursor: Cursor, namespace: str, belief_id: str) -> Row:
    names = ("id", "content", "created_at", "valid_from", "valid_until", "reason", "supersedes_id", "superseded_by_id")
    [row] = cursor.execute(
        "SELECT belief_id, content, created_at, valid_from, valid_until, reason, supersedes_id, superseded_by_id "
        "FROM valence_beliefs "
        "WHERE namespace = ? AND belief_id = ?",
        [namespace, belief_id],
    ).fetchall()
    return _shown(names, row)


def find_tension(cursor: Cursor, namespace: str, tension_id: str) -> Row | None:
    """The tension, with `action`: how a call resolved it; None when no call did."""
    return find_recorded(cursor, namespace, [tension_id]).get(tension_id)


def find_recorded(cursor: Cursor, namespace: str, ids: Sequence[str]) -> dict[str, Row]:
    """Those of these tensions that are recorded, by id, each with its `action`."""
    if not ids:
        return {}
    found = f"SELECT tension_id FROM tension_findings WHERE tension_id IN ({marks(ids)}) AND namespace = ?"
    ids = [tension_id for (tension_id,) in execute(cursor, found, [*ids, namespace]).fetchall()]
    if not ids:
        return {}  # of a belief that was just stated; the view reads all beliefs
    rows = cursor.execute(
        f"{_TENSION} FROM tensions WHERE namespace = ? AND tension_id IN ({marks(ids)})", [namespace, *ids]
    ).fetchall()
    return {row["id"]: row for row in _with_contents(cursor, namespace, [_shown(_TENSION_FIELDS, row) for row in rows])}


def _with_contents(cursor: Cursor, namespace: str, tensions: Sequence[Row]) -> list[Row]:
    """The tensions with the texts of both beliefs, which are read for these only and not for all."""
    sides = {row[side] for row in tensions for side in ("belief_a_id", "belief_b_id")}
    contents = dict(read_beliefs(cursor, "belief_id, content", namespace, sides))
    return [
        row | {"belief_a_content": contents[row["belief_a_id"]], "belief_b_content": contents[row["belief_b_id"]]}
        for row in tensions
    ]


@dataclass(frozen=True, slots=True)
class TensionFilter:
    """Which tensions are wanted; None: any. `severity` is the least."""

    status: str | None = None
    severity: str | None = None
    entity_id: str | None = None
    belief_id: str | None = None
    open_only: bool = False


def list_tensions(
    cursor: Cursor, namespace: str, conditions: TensionFilter, limit: int, clusters: Clusters
) -> tuple[list[Row], int]:
    """Tensions that pass the filter, the latest detected first, and how many there are.

    Those of one status between beliefs that state the same are one row, the latest, which names the others.
    """
    where, parameters = _tension_condition(namespace, conditions)
    pairs = cursor.execute(
        f"SELECT tension_id, status, belief_a_id, belief_b_id FROM tensions WHERE {where} "
        "ORDER BY detected_at DESC, tension_id",
        parameters,
    ).fetchall()
    groups = _same_tensions(namespace, clusters, pairs)
    chosen = [ids[0] for ids in groups[:limit]]
    rows = find_recorded(cursor, namespace, chosen)
    also = [repeated([("Tension", other) for other in ids[1 : MAX_OTHERS + 1]], len(ids)) for ids in groups[:limit]]
    return [without_action(rows[identity]) | others for identity, others in zip(chosen, also, strict=True)], len(groups)


def _same_tensions(namespace: str, clusters: Clusters, pairs: Sequence[tuple[str, str, str, str]]) -> list[list[str]]:
    """The ids of (tension, status, belief, belief) by what they are between.

    In the order of the first of each.
    """
    labels = np.array([document_label(namespace, belief) for *_, a, b in pairs for belief in (a, b)], np.int64)
    found = clusters.find(labels)
    stated = np.where(found == ABSENT, -labels, found).reshape(-1, 2)
    groups: dict[tuple[str, int, int], list[str]] = {}
    for (identity, status, *_), (one, other) in zip(pairs, np.sort(stated, axis=1).tolist(), strict=True):
        groups.setdefault((status, one, other), []).append(identity)
    return list(groups.values())


def _tension_condition(namespace: str, conditions: TensionFilter) -> tuple[str, list[Any]]:
    severity, entity_id = conditions.severity, conditions.entity_id
    clauses, parameters = ["namespace = ?"], list[Any]([namespace])
    if conditions.status is not None:
        clauses.append("status = ?")
        parameters.append(conditions.status)
    if conditions.open_only:
        clauses.append("status IN ('detected', 'investigating')")
    if severity is not None:
        clauses.append("severity IN (SELECT unnest(?))")
        parameters.append(list(SEVERITIES[SEVERITIES.index(severity) :]))
    if entity_id is not None:
        among = "(SELECT belief_id FROM belief_entities WHERE namespace = ? AND entity_id = ?)"
        clauses.append(f"(belief_a_id IN {among} OR belief_b_id IN {among})")
        parameters += [namespace, entity_id] * 2
    if conditions.belief_id is not None:
        clauses.append("? IN (belief_a_id, belief_b_id)")
        parameters.append(conditions.belief_id)
    return " AND ".join(clauses), parameters


def without_action(tension: Mapping[str, Any]) -> Row:
    """The tension as it is shown."""
    return {name: value for name, value in tension.items() if name != "action"}


def find_canonical(cursor: Cursor, namespace: str, entity_id: str) -> str | None:
    """The entity that stands for the one with this id, itself when it was not merged. None when there is none."""
    rows = cursor.execute(
        "SELECT coalesce(canonical_id, entity_id) FROM knowledge_entities WHERE namespace = ? AND entity_id = ?",
        [namespace, entity_id],
    ).fetchall()
    return rows[0][0] if rows else None


def find_entity(cursor: Cursor, namespace: str, entity_id: str) -> Row:
    """The entity with this id, which is one that `find_canonical` gave."""
    rows = cursor.execute(
        f"SELECT {_ENTITY} FROM knowledge_entities e WHERE e.namespace = ? AND e.entity_id = ?", [namespace, entity_id]
    ).fetchall()
    [entity] = _counted(cursor, namespace, rows)
    return entity


def _counted(cursor: Cursor, namespace: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
    """These rows as entities, each with the number of active beliefs that are linked to it."""
    ids = [row[0] for row in rows]
    counts = cursor.execute(
        """SELECT l.entity_id, count(DISTINCT l.belief_id) FROM belief_entities l
        JOIN valence_beliefs b ON b.namespace = l.namespace AND b.belief_id = l.belief_id AND b.status = 'active'
        WHERE l.namespace = ? AND l.entity_id IN (SELECT unnest(?::VARCHAR[])) GROUP BY l.entity_id""",
        [namespace, ids],
    ).fetchall()
    known = dict(counts)
    return [_shown(_ENTITY_FIELDS, row) | {"belief_count": known.get(row[0], 0)} for row in rows]


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
    """Canonical entities whose name or alias contains the query.

    Exact names come first, then beginnings of names, insides of names, and aliases. Each names what was merged into it.
    """
    rows = cursor.execute(
        f"""WITH found AS (
            SELECT *, CASE WHEN name_key = $2 THEN 1 WHEN starts_with(name_key, $2) THEN 2
                WHEN contains(name_key, $2) THEN 3
                WHEN len(list_filter(aliases, lambda alias: contains(lower(alias), $2))) > 0 THEN 4 END AS place
            FROM knowledge_entities WHERE namespace = $1 AND canonical_id IS NULL AND ($3 IS NULL OR type = $3))
        SELECT {_ENTITY}, count(*) OVER () FROM found e WHERE e.place IS NOT NULL
        ORDER BY e.place, e.name_key, e.entity_id LIMIT $4""",
        [namespace, name_key(query), kind, limit],
    ).fetchall()
    found = _counted(cursor, namespace, rows)
    merged = _merged(cursor, namespace, [entity["id"] for entity in found])
    also = [[("Entity", other) for other in merged.get(entity["id"], ())] for entity in found]
    named = [entity | repeated(some[:MAX_OTHERS], 1 + len(some)) for entity, some in zip(found, also, strict=True)]
    return named, rows[0][-1] if rows else 0


def _merged(cursor: Cursor, namespace: str, ids: Sequence[str]) -> dict[str, list[str]]:
    """By entity those that were merged into it."""
    rows = cursor.execute(
        "SELECT canonical_id, list(entity_id ORDER BY entity_id) FROM entity_resolutions "
        "WHERE namespace = ? AND entity_id <> canonical_id AND canonical_id IN (SELECT unnest(?::VARCHAR[])) "
        "GROUP BY canonical_id",
        [namespace, list(ids)],
    ).fetchall()
    return dict(rows)


def details_of(tension: Mapping[str, Any]) -> Row:
    """What is said of a tension that is closed."""
    return {name: tension[name] for name in ("status", "resolution", "resolved_at")}
