"""Staged judging: two judges of a provider that have agreed for long enough need not both be paid.

`dual`: both are asked. `single`: the first alone. `spot`: both again, for one query in twenty while there is a single
judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from processors.cognitive.rules.identifiers import number_of

DUAL, SINGLE, SPOT = "dual", "single", "spot"
WINDOW, MIN_RUNS = 100, 10
SINGLE_KAPPA = 0.85
DUAL_KAPPA = 0.70
SPOT_INTERVAL = 20
"""One query in this many is a spot check: 5 %."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the judges.

    `kappa` is None when it says nothing: one judge was asked, or a judge gave one label only.
    """

    mode: str
    kappa: float | None


def next_mode(runs: Sequence[Run], request_id: str) -> str:
    """How the next query is judged.

    `runs`: the last, at most WINDOW, newest first; the request decides whether it is a spot check.
    """
    if not _is_single(runs):
        return DUAL
    return SPOT if number_of("spot", request_id) % SPOT_INTERVAL == 0 else SINGLE


def _is_single(runs: Sequence[Run]) -> bool:
    """κ of .85 over at least ten of the last hundred queries makes one judge enough. A spot check below .70 ends it."""
    if runs and runs[0].mode != DUAL:
        checked = next((run.kappa for run in runs if run.mode == SPOT and run.kappa is not None), None)
        return checked is None or checked >= DUAL_KAPPA
    since = [run.kappa for run in takewhile(lambda run: run.mode == DUAL, runs[:WINDOW]) if run.kappa is not None]
    return len(since) >= MIN_RUNS and round(sum(since) / len(since), 9) >= SINGLE_KAPPA
