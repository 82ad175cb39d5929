"""A node on one thread on which every memory, of any kind, has its vector at once."""

from __future__ import annotations

from processors.memory.registry import REPEATED
from processors.memory.stages.changes import MemoryChanges
from streams.events import LoggedEvent
from tests.valence.conftest import BeliefNode


class EmbeddingNode(BeliefNode):
    """As the node of beliefs. `is_slow`: memories get no vectors."""

    is_slow = False

    def _derive(self, logged: LoggedEvent) -> None:
        is_belief = logged.event.type.startswith("thalweg.valence.")
        if logged.event.type in MemoryChanges.accepts | REPEATED and not is_belief and not self.is_slow:
            self._keep(self._embedded(logged.event))
        super()._derive(logged)
