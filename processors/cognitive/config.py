"""The settings of Cognitive Memory: the density below which an insight is thin, and the two judges."""

from __future__ import annotations

from dataclasses import dataclass, field

from processors.cognitive.rules.judging import Judge
from processors.cognitive.rules.text_quality import THRESHOLD


@dataclass(frozen=True)
class CognitiveConfig:
    """`judges`: two of them; None while the node has not been given any. `is_staged`: one is enough while both agree.
    `missing_key`: what is missing to the configured model of a provider."""

    fidelity_threshold: float = THRESHOLD
    judges: tuple[Judge, Judge] | None = field(default=None)
    is_staged: bool = False
    missing_key: str | None = None
