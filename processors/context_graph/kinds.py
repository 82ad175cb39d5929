"""What Context Graph declares about its memories: each is a thought that a tool noted."""

from __future__ import annotations

from processors.memory.kind import TOOL_THOUGHT, Kind

KINDS = (Kind("context_graph", (), TOOL_THOUGHT),)
