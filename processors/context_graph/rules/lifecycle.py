"""The phases of a namespace's life: what it learns from, by how often it was used."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase, from its first interaction on. All numbers are in [0, 1], but for `first`."""

    name: str
    first: int
    """The number of interactions with which it begins."""
    lambda_s: float
    """Weight of entropy in the learning score; with `lambda_c` it makes 1."""
    lambda_c: float
    """Weight of coherence in the learning score."""
    stance: str
    entropy_trigger: float
    coherence_trigger: float
    min_importance_store: float
    consolidation_threshold: float

    @property
    def gain(self) -> float:
        """The factor of the learning score: 1 where both weights are equal, less the more they differ."""
        return 4.0 * self.lambda_s * self.lambda_c

    @property
    def thresholds(self) -> dict[str, float]:
        """The phase's four thresholds by name."""
        return {
            "entropy_trigger": self.entropy_trigger,
            "coherence_trigger": self.coherence_trigger,
            "min_importance_store": self.min_importance_store,
            "consolidation_threshold": self.consolidation_threshold,
        }


INFANCY = Phase("Infancy", 0, 0.7, 0.3, "capture-novelty", 0.9, 0.2, 0.1, 0.3)
GROWTH = Phase("Growth", 50, 0.5, 0.5, "balanced", 0.7, 0.4, 0.3, 0.5)
MATURITY = Phase("Maturity", 500, 0.3, 0.7, "curation-coherence", 0.6, 0.5, 0.5, 0.7)
PHASES = (INFANCY, GROWTH, MATURITY)


def phase_at(interactions: int) -> Phase:
    """The phase after this many interactions; it never goes back, because they are never fewer."""
    return next(phase for phase in reversed(PHASES) if interactions >= phase.first)
