"""Declares telemetry's kind: turns of captured sessions, what people and agents said to each other.

They are not memories (`storage/search/captured.py`): a search must ask for them.
"""

from __future__ import annotations

from processors.memory.kind import Kind, Place

TOOLSET, TURN = "telemetry", "Turn"

KINDS = (
    Kind(TOOLSET, (TURN,), Place("thoughts", roles="SELECT namespace, record_id, role FROM turns"), is_source=True),
)
