"""The golden test: precision, classes of queries, baseline and drift, and what a set must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TOP = 5
SHORT_WORDS, LONG_WORDS = 10, 30
CLASSES = ("short", "medium", "long")
SHARES: Mapping[str, float] = {"short": 0.4, "medium": 0.4, "long": 0.2}
TOLERANCE = 0.05
SET_SIZES = (50, 100)
BASELINE_DAYS = 7
MIN_DAYS = 3
DRIFT = 0.05
NORMAL = "All metrics within normal range"


def precision_at_5(found: Sequence[int], expected: Sequence[int]) -> float:
    """|top 5 ∩ expected| / 5."""
    return len(set(found[:TOP]) & set(expected)) / TOP


def query_type(query: str) -> str:
    """`short` to 10 words, `medium` to 29, `long` from 30."""
    words = len(query.split())
    return "short" if words <= SHORT_WORDS else "medium" if words < LONG_WORDS else "long"


def breakdown(precisions: Sequence[tuple[str, float]]) -> dict[str, dict[str, Any]]:
    """Count and mean precision of each class, None for one without queries. `precisions`: (class, precision)."""
    by_class = {name: [value for kind, value in precisions if kind == name] for name in CLASSES}
    return {
        name: {"count": len(values), "precision_at_5": sum(values) / len(values) if values else None}
        for name, values in by_class.items()
    }


@dataclass(frozen=True, slots=True)
class Drift:
    """What a day's precision means beside the days before."""

    baseline: float | None
    detected: bool
    details: str
    drop_absolute: float | None
    drop_relative: float | None


def drift(today: float, previous: Sequence[float]) -> Drift:
    """`previous`: precisions of the days with a result among the last seven, today not among them."""
    if len(previous) < MIN_DAYS:
        return Drift(None, False, f"Baseline needs {MIN_DAYS} days of results; {len(previous)} recorded", None, None)
    baseline = round(sum(previous) / len(previous), 9)
    drop = round(baseline - today, 9)
    relative = round(drop / baseline, 9) if baseline else None
    if drop > DRIFT:
        return Drift(baseline, True, f"Precision@5 dropped by {drop:.2f} from baseline {baseline:.2f}", drop, relative)
    return Drift(baseline, False, NORMAL, drop, relative)


def set_problem(queries: Sequence[str]) -> str | None:
    """Why these queries cannot be the golden set: their number or the shares of classes; None if they can."""
    smallest, largest = SET_SIZES
    if not smallest <= len(queries) <= largest:
        return f"A golden set has {smallest} to {largest} queries; these are {len(queries)}."
    counts = Counter(query_type(query) for query in queries)
    for name, share in SHARES.items():
        given = counts[name] / len(queries)
        if round(abs(given - share), 9) > TOLERANCE:
            return f"A golden set has {share:.0%} ± {TOLERANCE:.0%} {name} queries; these have {given:.0%}."
    return None
