"""A node on one thread on which every memory, of any kind, has its vector at once."""

from __future__ import annotations

from processors.memory.registry import REPEATED
from processors.memory.stages.changes import MemoryChanges
from streams.events import Event
from tests.valence.conftest import BeliefNode


class EmbeddingNode(BeliefNode):
    """As the node of beliefs. `is_slow`: memories get no vectors."""

    is_slow = False

    def _has_vector(self, event: Event) -> bool:
        is_belief = event.type.startswith("thalweg.valence.")
        return super()._has_vector(event) or (
            event.type in MemoryChanges.accepts | REPEATED and not is_belief and not self.is_slow
        )
