"""The consciousness level C of a namespace, and what it is made of: shown, and used by nothing.

`C = r · σ(4m − 2) · H`: how far the views agree, how well the last learning scores were foreseen, and how evenly the
purpose is spread over the views.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from processors.context_graph.rules.groups import VIEW_COUNT

ALPHA = 0.3
FIRST_META = 0.5
"""The meta score before anything was foreseen."""
HISTORY = 64
"""The last learning scores from which the meta score follows: what was before has no weight left."""
SURPRISES = 5
"""This many scores in a row that were foreseen badly raise acetylcholine."""
SUFFICIENT = 0.5
_NOTHING = 1e-6


@dataclass(frozen=True, slots=True)
class Consciousness:
    """C and its three factors, all in [0, 1]."""

    integration: float
    """The order parameter r."""
    reflection: float
    """σ(4m − 2) of the meta score m."""
    differentiation: float
    """The entropy of the purpose over the views, 1 where all have the same share."""

    @classmethod
    def of(cls, r: float, meta_score: float, purpose: Sequence[float]) -> Consciousness:
        return cls(r, 1.0 / (1.0 + math.exp(2.0 - 4.0 * meta_score)), differentiation(purpose))

    @property
    def level(self) -> float:
        return self.integration * self.reflection * self.differentiation

    @property
    def limiting_factor(self) -> str:
        """The name of the smallest factor."""
        factors = {name: getattr(self, name) for name in ("integration", "reflection", "differentiation")}
        return min(factors, key=lambda name: factors[name])


def differentiation(purpose: Sequence[float]) -> float:
    """`−Σ p log₂ p / log₂ 13` over the shares of the absolute values; 0 of a purpose of zeros."""
    sizes = [abs(value) for value in purpose if math.isfinite(value)]
    total = sum(sizes)
    if total <= _NOTHING:
        return 0.0
    shares = [size / total for size in sizes if size > 0]
    return min(1.0, max(0.0, -sum(share * math.log2(share) for share in shares) / math.log2(VIEW_COUNT)))


def meta_score(scores: Sequence[tuple[str, float]]) -> float:
    """How well the last learning scores were foreseen; FIRST_META before anything was."""
    return (FIRST_META, *meta_scores(scores))[-1]


def meta_scores(scores: Sequence[tuple[str, float]]) -> list[float]:
    """The running mean of how well each score was foreseen from those before it of its modality.

    scores: (modality, learning score) of each measured memory, oldest first. The first of a modality is foreseen by
    nothing, and says nothing.
    """
    meta, found, expected = FIRST_META, list[float](), dict[str, float]()
    for modality, score in scores[-HISTORY:]:
        if (known := expected.get(modality)) is not None:
            meta = (1 - ALPHA) * meta + ALPHA * (1.0 - abs(known - score))
            found.append(meta)
        expected[modality] = score if known is None else (1 - ALPHA) * known + ALPHA * score
    return found


def is_surprised(scores: Sequence[tuple[str, float]]) -> bool:
    """Whether none of the last learning scores was foreseen well."""
    last = meta_scores(scores)[-SURPRISES:]
    return len(last) == SURPRISES and max(last) < FIRST_META
