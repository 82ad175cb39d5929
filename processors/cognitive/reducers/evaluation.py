"""Reducers of Cognitive Memory's evaluation: judgements and their κ, the golden set, drift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from typing import Any

from processors.cognitive.reducers.memory import INVALID, blank
from processors.cognitive.rules import agreement, golden
from processors.cognitive.rules.identifiers import number_of
from processors.cognitive.rules.staging import DUAL, SINGLE
from processors.frame.reducer import Key, Outcome, Reducer, Rows, at
from streams.event_types.cognitive import GOLDEN_COMPLETED, GOLDEN_SET_IMPORTED, GROUND_TRUTH_IMPORTED, JUDGE_SCORED
from streams.events import LoggedEvent

GROUND_TRUTH, GOLDEN, SESSIONS = "ground_truth", "golden_test_set", "evaluation_sessions"
JUDGE_RUNS, JUDGEMENTS, DRIFT = "judge_runs", "judgements", "model_drift_log"
_GOLDEN_SET = ""
"""The session id of the row that says that the golden set is there."""


def _truth_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield GROUND_TRUTH, (logged.event.data["id"],)
    yield SESSIONS, (logged.event.data["session_id"],)


def _truth_imported(logged: LoggedEvent, rows: Rows) -> Outcome:
    data = logged.event.data
    for name in ("query", "session_id"):
        if not data[name].strip():
            return blank(name)
    number = data["id"]
    row = rows.get(GROUND_TRUTH, number)
    if row is not None:
        if (row["query"], row["expected_docs"], row["session_id"]) == (
            data["query"],
            data["expected_docs"],
            data["session_id"],
        ):
            return Outcome(result={"id": number, "is_new": False})
        return Outcome("refused", INVALID, f"The ground truth holds another query under the id {number}.")
    refusal = _claim(rows, data["session_id"], GROUND_TRUTH)
    if refusal is not None:
        return refusal
    asked = {name: data[name] for name in ("id", "query", "expected_docs", "session_id")}
    unjudged = dict.fromkeys(("judge1_scores", "judge2_scores", "judge1_model", "judge2_model", "kappa", "judged_at"))
    rows.put(
        GROUND_TRUTH, asked | unjudged | {"metadata": data.get("metadata") or {}, "imported_at": at(logged.event.time)}
    )
    return Outcome(result={"id": number, "is_new": True})


def _claim(rows: Rows, session_id: str, wanted: str) -> Outcome | None:
    """Give the session to the set; the refusal when the other one has it."""
    row = rows.get(SESSIONS, session_id)
    if row is not None and row["belongs_to"] != wanted:
        return Outcome(
            "refused", INVALID, f"The session {session_id} belongs to {row['belongs_to']}; the sets share no session."
        )
    if row is None:
        rows.put(SESSIONS, {"session_id": session_id, "belongs_to": wanted})
    return None


def golden_id(namespace: str, query: dict[str, Any]) -> int:
    """The id of a query of the golden set: its own, else a function of what it asks."""
    return int(query.get("id") or number_of(namespace, GOLDEN, query["session_id"], query["query"]))


def _golden_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield SESSIONS, (_GOLDEN_SET,)
    for query in logged.event.data["queries"]:
        yield SESSIONS, (query["session_id"],)
        yield GOLDEN, (golden_id(logged.event.namespace, query),)


def _golden_imported(logged: LoggedEvent, rows: Rows) -> Outcome:
    queries = logged.event.data["queries"]
    if rows.get(SESSIONS, _GOLDEN_SET) is not None:
        return Outcome("refused", INVALID, "The golden test set is there already and does not change.")
    problem = golden.set_problem([query["query"] for query in queries])
    if problem is not None:
        return Outcome("refused", INVALID, problem)
    numbers = [golden_id(logged.event.namespace, query) for query in queries]
    if len(set(numbers)) < len(numbers):
        return Outcome("refused", INVALID, "The golden test set names a query twice.")
    for query in queries:
        row = rows.get(SESSIONS, query["session_id"])
        if not query["session_id"].strip() or (row is not None and row["belongs_to"] != GOLDEN):
            owner = row["belongs_to"] if row else "nobody"
            return Outcome(
                "refused", INVALID, f"The session {query['session_id']} belongs to {owner}; the sets share no session."
            )
    for query, number in zip(queries, numbers, strict=True):
        _claim(rows, query["session_id"], GOLDEN)
        asked = {name: query[name] for name in ("query", "expected_docs", "session_id")}
        kind = golden.query_type(query["query"])
        rows.put(GOLDEN, {"id": number, **asked, "query_type": kind, "imported_at": at(logged.event.time)})
    rows.put(SESSIONS, {"session_id": _GOLDEN_SET, "belongs_to": GOLDEN})
    return Outcome(result={"imported": len(queries)})


def _judged_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield GROUND_TRUTH, (logged.event.data["query_id"],)


def _judged(logged: LoggedEvent, rows: Rows) -> Outcome:
    """A judgement that is missing leaves its document out of the means and of κ. It is never a made-up number."""
    data, moment = logged.event.data, at(logged.event.time)
    truth = rows.get(GROUND_TRUTH, data["query_id"])
    if truth is None:
        return Outcome("refused", INVALID, f"query_id {data['query_id']} does not exist in ground_truth")
    mode = data.get("mode") or DUAL
    asked = ("judge1",) if mode == SINGLE else ("judge1", "judge2")
    judged = [document for document in data["documents"] if all(document[judge] is not None for judge in asked)]
    failed = [document["id"] for document in data["documents"] if any(document[judge] is None for judge in asked)]
    if not judged:
        return Outcome(
            "refused", "nothing_to_evaluate", "No document was judged by each of the judges that were asked."
        )
    scores = {judge: [float(document[judge]) for document in judged] for judge in asked}
    summary = {**_means(scores), **_agreement(scores)}
    models = {name: data[name] for name in ("judge1_model", "judge2_model")}
    given = {"judge1_scores": scores["judge1"], "judge2_scores": scores.get("judge2")}
    rows.change(GROUND_TRUTH, truth, **models, **given, kappa=summary["kappa"], judged_at=moment)
    run = {"query_id": data["query_id"], "judged_at": moment}
    counts = {"evaluated_documents": len(judged), "failed_documents": len(failed)}
    spent = {name: data.get(name) for name in ("input_tokens", "output_tokens", "cost_usd")}
    rows.insert(JUDGE_RUNS, {**run, "query": data["query"], "mode": mode, **models, **summary, **counts, **spent})
    for document in data["documents"]:
        rows.insert(
            JUDGEMENTS,
            {
                **run,
                "document_id": document["id"],
                "judge1_score": document["judge1"],
                "judge2_score": document["judge2"],
            },
        )
    labels = {
        f"{judge}_labels": agreement.labels(scores[judge]) if judge in scores else None
        for judge in ("judge1", "judge2")
    }
    answer = {"query_id": data["query_id"], **summary, "evaluated_documents": len(judged), **given, **labels, **models}
    return Outcome(result=answer | {"failed_documents": failed, "mode": mode})


def _means(scores: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    means = {judge: round(sum(given) / len(given), 9) for judge, given in scores.items()}
    return {f"{judge}_score": means.get(judge) for judge in ("judge1", "judge2")}


def _agreement(scores: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """κ, its name, and whether it says anything; of one judge alone there is none."""
    if len(scores) < 2:
        return {"kappa": None, "kappa_degenerate": False, "agreement": None}
    labels = [agreement.labels(given) for given in scores.values()]
    kappa = round(agreement.kappa(*labels), 9)
    return {
        "kappa": kappa,
        "kappa_degenerate": agreement.is_degenerate(*labels),
        "agreement": agreement.agreement(kappa),
    }


def _completed_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    day = _day(logged)
    yield from ((DRIFT, (day - timedelta(days=back),)) for back in range(golden.BASELINE_DAYS + 1))


def _day(logged: LoggedEvent) -> date:
    """Raises ValueError, so that an event with no date becomes a dead letter."""
    return date.fromisoformat(logged.event.data["date"])


def _completed(logged: LoggedEvent, rows: Rows) -> Outcome:
    """One row a day: a second run on the same day replaces it."""
    data, day = logged.event.data, _day(logged)
    earlier = [rows.get(DRIFT, day - timedelta(days=back)) for back in range(1, golden.BASELINE_DAYS + 1)]
    found = golden.drift(data["precision_at_5"], [row["precision_at_5"] for row in earlier if row is not None])
    measured = {
        name: data.get(name)
        for name in ("precision_at_5", "queries_tested", "embedding_model", "avg_retrieval_time_ms")
    }
    decided = {"baseline_precision": found.baseline, "drift_detected": found.detected, "details": found.details}
    kept = {"query_breakdown": data["query_breakdown"], "completed_at": at(logged.event.time)}
    rows.put(DRIFT, {"date": day, **measured, **decided, **kept})
    drops = {name: value for name, value in asdict(found).items() if name.startswith("drop_")}
    return Outcome(
        result={"date": data["date"], **measured, **decided, "query_breakdown": data["query_breakdown"], **drops}
    )


REDUCERS = {
    GROUND_TRUTH_IMPORTED: Reducer(_truth_imported, _truth_reads),
    GOLDEN_SET_IMPORTED: Reducer(_golden_imported, _golden_reads),
    JUDGE_SCORED: Reducer(_judged, _judged_reads),
    GOLDEN_COMPLETED: Reducer(_completed, _completed_reads),
}
