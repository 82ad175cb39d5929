"""Reports for operators: whether the two judges agree enough for the ground truth to be accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import duckdb
import orjson

from processors.cognitive.rules.agreement import MAX_SCORE_GAP, MIN_KAPPA, RELEVANT_ABOVE, macro_micro
from processors.cognitive.rules.wilcoxon import signed_rank

PAIRS = 10
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query that both judges have judged: the latest scores of each, document by document."""

    query_id: int
    one: list[float]
    other: list[float]
    kappa: float


def agreement_report(cursor: duckdb.DuckDBPyConnection, namespace: str) -> dict[str, Any]:
    """Macro and micro κ over the judged queries, and whether both suffice.

    Otherwise in what the judges differ: queries, documents, and whether one judge is the milder of the two (Wilcoxon),
    with the threshold that would even it out.
    """
    rows = cursor.execute(
        "SELECT id, judge1_scores, judge2_scores, kappa FROM ground_truth "
        "WHERE namespace = ? AND kappa IS NOT NULL ORDER BY id",
        [namespace],
    ).fetchall()
    runs = [JudgedQuery(number, orjson.loads(one), orjson.loads(other), kappa) for number, one, other, kappa in rows]
    report: dict[str, Any] = {"judged": len(runs), "accepted": False, "macro_kappa": None, "micro_kappa": None}
    report |= {"differing": [], "differing_documents": [], "wilcoxon": None}
    if not runs:
        return report | {"summary": "Nothing is judged yet."}
    macro, micro = macro_micro([(run.one, run.other) for run in runs])
    accepted = macro >= MIN_KAPPA and micro >= MIN_KAPPA
    verdict = "accepted" if accepted else "not accepted"
    report |= {"accepted": accepted, "macro_kappa": macro, "micro_kappa": micro}
    report["summary"] = (
        f"The ground truth is {verdict}: {len(runs)} queries judged, kappa {macro:.2f} by query and {micro:.2f} in all."
    )
    if accepted:
        return report
    return report | {
        "differing": _differing(runs),
        "differing_documents": _documents(cursor, namespace),
        "wilcoxon": bias([score for run in runs for score in run.one], [score for run in runs for score in run.other]),
    }


def _differing(runs: Sequence[JudgedQuery]) -> list[dict[str, Any]]:
    """The queries whose means lie apart, or whose κ is too small."""
    differing = []
    for run in runs:
        first, second = sum(run.one) / len(run.one), sum(run.other) / len(run.other)
        if abs(first - second) > MAX_SCORE_GAP or run.kappa < MIN_KAPPA:
            differing.append(
                {"query_id": run.query_id, "judge1_score": first, "judge2_score": second, "kappa": run.kappa}
            )
    return differing


def _documents(cursor: duckdb.DuckDBPyConnection, namespace: str) -> list[dict[str, Any]]:
    """The documents whose means by the two judges, over all that was judged of them, lie apart."""
    rows = cursor.execute(
        "SELECT document_id, avg(judge1_score) AS one, avg(judge2_score) AS other FROM judgements "
        "WHERE namespace = ? AND judge1_score IS NOT NULL AND judge2_score IS NOT NULL GROUP BY document_id "
        "HAVING round(abs(one - other), 9) > ? ORDER BY document_id",
        [namespace, MAX_SCORE_GAP],
    ).fetchall()
    return [{"document_id": number, "judge1_score": one, "judge2_score": other} for number, one, other in rows]


def bias(one: Sequence[float], other: Sequence[float]) -> dict[str, Any] | None:
    """The Wilcoxon test of the judges' scores, pair by pair; None for fewer than ten.

    `threshold`: .5 moved by the difference of the medians when one judge is significantly the milder, else None.
    """
    if len(one) < PAIRS:
        return None
    statistic, p = signed_rank(one, other)
    moved = round(RELEVANT_ABOVE + abs(median(one) - median(other)), 9)
    return {"n": len(one), "statistic": statistic, "p": p, "threshold": moved if p < SIGNIFICANT else None}


REPORTS = {"agreement": agreement_report}
