"""Whether the two judges agree enough for the ground truth to be accepted (cognitive memory 3.5), as a report for operators."""

from __future__ import annotations

from typing import Any

import duckdb
import orjson

from processors.cognitive.agreement import ACCEPTED, APART, macro_micro


def agreement_report(cursor: duckdb.DuckDBPyConnection, namespace: str) -> dict[str, Any]:
    """Macro and micro κ over the judged queries, whether both suffice, and the queries in which the judges differ."""
    rows = cursor.execute(
        "SELECT id, judge1_scores, judge2_scores, kappa FROM ground_truth WHERE namespace = ? AND kappa IS NOT NULL ORDER BY id",
        [namespace],
    ).fetchall()
    if not rows:
        return {
            "judged": 0,
            "accepted": False,
            "macro_kappa": None,
            "micro_kappa": None,
            "differing": [],
            "summary": "Nothing is judged yet.",
        }
    runs = [(number, orjson.loads(one), orjson.loads(other), kappa) for number, one, other, kappa in rows]
    macro, micro = macro_micro([(one, other) for _, one, other, _ in runs])
    differing = []
    for number, one, other, kappa in runs:
        first, second = sum(one) / len(one), sum(other) / len(other)
        if abs(first - second) > APART or kappa < ACCEPTED:
            differing.append({"query_id": number, "judge1_score": first, "judge2_score": second, "kappa": kappa})
    accepted = macro >= ACCEPTED and micro >= ACCEPTED
    verdict = "accepted" if accepted else "not accepted"
    summary = f"The ground truth is {verdict}: {len(runs)} queries judged, kappa {macro:.2f} by query and {micro:.2f} in all."
    return {
        "judged": len(runs),
        "accepted": accepted,
        "macro_kappa": macro,
        "micro_kappa": micro,
        "differing": differing,
        "summary": summary,
    }
