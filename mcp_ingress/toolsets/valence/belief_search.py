"""Finding beliefs: which may be found, which match, and in what order (valence 3.4). Also: which are near to a new one."""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np

from mcp_ingress.gateway import Call
from mcp_ingress.toolsets.valence.belief_queries import standing
from processors.tension_candidates import find_tensions
from processors.valence.confidence import age_days, recency
from processors.valence.tensions import DUPLICATE_COSINE, Finding
from processors.valence.wording import without_grammar
from storage.search.engine import SearchIndexes

WEIGHTS: Mapping[str, float] = {"semantic": 0.50, "confidence": 0.35, "recency": 0.15}
MIN_COSINE = 0.30
MIN_POOL = 50
NEAR = 20


@dataclass(frozen=True, slots=True)
class Conditions:
    """What may be found; `entity_id` is canonical, `include_superseded` adds superseded and expired beliefs."""

    namespace: str
    domains: tuple[str, ...] = ()
    entity_id: str | None = None
    include_superseded: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A belief that matches: its rank's score in [0, 1], and the parts that it is made of."""

    belief_id: str
    score: float
    parts: Mapping[str, float]


async def vector_of(call: Call, text: str) -> np.ndarray | None:
    """The unit vector of a text; None without an embedder."""
    embedder = call.gateway.embedder
    if embedder is None:
        return None
    vectors: np.ndarray = await asyncio.get_running_loop().run_in_executor(None, embedder.encode, [text])
    found: np.ndarray = vectors[0]
    return found


async def similar_beliefs(call: Call, vector: np.ndarray | None) -> list[dict[str, Any]]:
    """Beliefs that may say the same as a new one: `{"belief_id", "cosine"}`, nearest first, for the request's event."""
    if vector is None:
        return []
    query = functools.partial(_nearest, indexes=call.gateway.indexes, namespace=call.namespace, vector=vector)
    return await call.read(query)


def _nearest(cursor: duckdb.DuckDBPyConnection, indexes: SearchIndexes, namespace: str, vector: np.ndarray) -> list[dict[str, Any]]:
    near = {label: cosine for label, cosine in indexes.nearest(cursor, vector, NEAR) if cosine > DUPLICATE_COSINE}
    if not near:
        return []
    rows = cursor.execute(
        "SELECT belief_id, label FROM valence_beliefs WHERE namespace = ? AND status = 'active' AND label IN (SELECT unnest(?))",
        [namespace, list(near)],
    ).fetchall()
    found = [{"belief_id": belief_id, "cosine": round(min(1.0, near[label]), 6)} for belief_id, label in rows]
    return sorted(found, key=lambda match: (-match["cosine"], match["belief_id"]))


async def tensions_ahead(call: Call, belief_id: str, vector: np.ndarray | None) -> list[Finding]:
    """What the detector is about to find for this belief: the same rules over the same store, without waiting for it."""
    indexes, namespace = call.gateway.indexes, call.namespace
    return await call.read(lambda cursor: find_tensions(cursor, indexes, namespace, belief_id, vector))


def search_beliefs(
    cursor: duckdb.DuckDBPyConnection,
    indexes: SearchIndexes,
    text: str,
    vector: np.ndarray | None,
    conditions: Conditions,
    limit: int,
    now: datetime,
) -> tuple[list[Found], int]:
    """The best of all matches, and how many matches there are. Filters first; a match shares a word or has cosine >= .30."""
    labels = _allowed(cursor, conditions, now)
    if not len(labels):
        return [], 0
    near, cosines = (np.empty(0, np.int64), np.empty(0)) if vector is None else indexes.within(vector, MIN_COSINE, labels)
    asked, pool = without_grammar(text), max(3 * limit, MIN_POOL)
    said = dict(indexes.words(cursor, asked, conditions.namespace, pool, labels))
    total = indexes.count_matches(cursor, asked, conditions.namespace, labels, np.sort(near))
    chosen = np.array(list(dict.fromkeys([*near[np.argsort(-cosines, kind="stable")][:pool].tolist(), *said])), np.int64)
    meaning = np.full(len(chosen), np.nan) if vector is None else indexes.cosines(vector, chosen)
    most = max(said.values(), default=0.0)
    semantic = {label: _semantic(float(cosine), said.get(label, 0.0), most) for label, cosine in zip(chosen.tolist(), meaning, strict=True)}
    return _ranked(cursor, conditions.namespace, semantic, now)[:limit], total


def _semantic(cosine: float, score: float, most: float) -> float:
    """The cosine; while there is no vector, the keyword score as a share of the best one."""
    if math.isnan(cosine):
        return score / most if most > 0 else 0.0
    return min(1.0, max(0.0, cosine))


def _ranked(cursor: duckdb.DuckDBPyConnection, namespace: str, semantic: Mapping[int, float], now: datetime) -> list[Found]:
    """.50 semantic + .35 confidence + .15 recency; equals by time, newest first, then by id."""
    if not semantic:
        return []
    columns = "belief_id, label, overall, created_at"
    where = f"label IN ({', '.join('?' * len(semantic))}) AND namespace = ?"
    asked = [*semantic, namespace]
    rows = cursor.execute(f"SELECT {columns} FROM valence_beliefs WHERE {where}", asked).fetchall()
    if standing(cursor, namespace, [row[0] for row in rows]) == "beliefs":
        rows = cursor.execute(f"SELECT {columns} FROM beliefs WHERE {where}", asked).fetchall()
    ranked = []
    for belief_id, label, overall, created_at in rows:
        age = age_days(created_at.replace(tzinfo=UTC), now)
        parts = {"semantic": semantic[label], "confidence": overall, "recency": recency(age)}
        score = sum(WEIGHTS[name] * part for name, part in parts.items())
        ranked.append((created_at, Found(belief_id, score, parts)))
    ranked.sort(key=lambda match: match[1].belief_id)
    ranked.sort(key=lambda match: (match[1].score, match[0]), reverse=True)
    return [found for _, found in ranked]


def _allowed(cursor: duckdb.DuckDBPyConnection, conditions: Conditions, now: datetime) -> np.ndarray:
    """Labels of the beliefs that meet the conditions, sorted, int64."""
    clauses, parameters = ["namespace = ?"], list[Any]([conditions.namespace])
    if conditions.include_superseded:
        clauses.append("status IN ('active', 'superseded')")
    else:
        clauses.append("status = 'active' AND (valid_from IS NULL OR valid_from <= ?) AND (valid_until IS NULL OR valid_until > ?)")
        parameters += [now.astimezone(UTC).replace(tzinfo=None)] * 2
    if conditions.domains:
        clauses.append("list_has_any(domain_path, ?::VARCHAR[])")
        parameters.append(list(conditions.domains))
    if conditions.entity_id is not None:
        clauses.append("belief_id IN (SELECT belief_id FROM belief_entities WHERE namespace = ? AND entity_id = ?)")
        parameters += [conditions.namespace, conditions.entity_id]
    found = cursor.execute(f"SELECT label FROM valence_beliefs WHERE {' AND '.join(clauses)} ORDER BY label", parameters).fetchnumpy()
    return np.asarray(found["label"], np.int64)
