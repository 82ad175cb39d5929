"""What the writes of beliefs answer with: the belief as the store has it after the decision, and the tensions it is in."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from mcp_ingress.gateway import Call
from mcp_ingress.toolsets.valence.belief_queries import Row, find_belief, find_tension
from mcp_ingress.toolsets.valence.belief_search import similar_beliefs, tensions_ahead, vector_of
from processors.valence.tensions import Finding
from streams.clock import format_time
from streams.errors import Unavailable


async def near_to(call: Call, content: str) -> tuple[np.ndarray | None, list[dict[str, Any]]]:
    """The text's vector and what is near to it; nothing while the store does not answer: the write goes on."""
    vector = await vector_of(call, content)
    try:
        return vector, await similar_beliefs(call, vector)
    except Unavailable:
        return vector, []


def belief_after(cursor: duckdb.DuckDBPyConnection, namespace: str, belief_id: str) -> Row:
    """The belief with this id, which a reducer has just named."""
    belief = find_belief(cursor, namespace, belief_id)
    if belief is None:
        raise Unavailable("The store is behind its own decision; ask for the belief in a moment.")
    return belief


async def tensions_of(call: Call, belief_id: str, vector: np.ndarray | None) -> list[dict[str, Any]]:
    """The tensions of a belief that was just made, worst first: recorded ones as they are, the others as the detector will record them."""
    findings = await tensions_ahead(call, belief_id, vector)
    return await call.read(lambda cursor: [_tension(cursor, call, finding) for finding in findings])


def _tension(cursor: duckdb.DuckDBPyConnection, call: Call, finding: Finding) -> dict[str, Any]:
    known = find_tension(cursor, call.namespace, finding.tension_id)
    if known is not None:
        return {name: value for name, value in known.items() if name != "action"}
    ids = [finding.belief_a_id, finding.belief_b_id]
    contents = dict(
        cursor.execute(
            "SELECT belief_id, content FROM valence_beliefs WHERE namespace = ? AND belief_id IN (?, ?)", [call.namespace, *ids]
        ).fetchall()
    )
    return {
        "id": finding.tension_id,
        "belief_a_id": finding.belief_a_id,
        "belief_b_id": finding.belief_b_id,
        "belief_a_content": contents[finding.belief_a_id],
        "belief_b_content": contents[finding.belief_b_id],
        "type": finding.type,
        "description": finding.description,
        "severity": finding.severity,
        "status": "detected",
        "resolution": None,
        "resolved_at": None,
        "detected_at": format_time(call.clock.now()),
        "score": finding.score,
        "materiality": finding.materiality,
        "suggested_action": finding.suggested_action,
    }
