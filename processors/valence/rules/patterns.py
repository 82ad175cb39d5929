"""The life of a pattern: emerging, established, fading, archived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

EMERGING, ESTABLISHED, FADING, ARCHIVED = "emerging", "established", "fading", "archived"
ESTABLISHED_AT = 5
MAX_CONFIDENCE = 0.99
STEP = 0.1
FADING_AFTER = {EMERGING: timedelta(days=14), ESTABLISHED: timedelta(days=30)}
ARCHIVED_AFTER = timedelta(days=180)
DEFAULT_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True)
class Pattern:
    """What of a pattern changes. `evidence` are ids of sessions, in the order in which they were first named."""

    evidence: tuple[str, ...]
    occurrence_count: int
    confidence: float
    status: str
    last_observed: datetime


def recorded(evidence: Sequence[str], confidence: float | None, moment: datetime) -> Pattern:
    """A new pattern: one occurrence, whatever the evidence."""
    confidence = DEFAULT_CONFIDENCE if confidence is None else float(confidence)
    return Pattern(tuple(dict.fromkeys(evidence)), 1, confidence, EMERGING, moment)


def reinforced(pattern: Pattern, session_id: str | None, moment: datetime) -> Pattern | None:
    """The pattern after one occurrence more. None when this session is counted already, and nothing changes.

    `c <- min(.99, c + .1 (1 - c))`, but never down; established from the fifth occurrence on, also when it had faded.
    """
    if session_id is not None and session_id in pattern.evidence:
        return None
    count = pattern.occurrence_count + 1
    raised = min(MAX_CONFIDENCE, pattern.confidence + STEP * (1 - pattern.confidence))
    return replace(
        pattern,
        evidence=pattern.evidence if session_id is None else (*pattern.evidence, session_id),
        occurrence_count=count,
        confidence=max(pattern.confidence, raised),
        status=ESTABLISHED if count >= ESTABLISHED_AT else EMERGING,
        last_observed=max(pattern.last_observed, moment),
    )


class AgeingStep(NamedTuple):
    """A step of a pattern's ageing, and when it was due."""

    from_status: str
    to_status: str
    due_at: datetime


def ageing_steps(status: str, last_observed: datetime, now: datetime) -> list[AgeingStep]:
    """The steps that a pattern has taken by now, in their order.

    `status` is the stored one, emerging or established.
    """
    steps = [
        AgeingStep(status, FADING, last_observed + FADING_AFTER[status]),
        AgeingStep(FADING, ARCHIVED, last_observed + ARCHIVED_AFTER),
    ]
    return [step for step in steps if step.due_at <= now]


def status_at(status: str, last_observed: datetime, now: datetime) -> str:
    """What has become of a pattern of that stored status by now."""
    steps = ageing_steps(status, last_observed, now)
    return steps[-1].to_status if steps else status
