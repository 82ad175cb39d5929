"""A tool is one self-describing value on one screen.

The inventory finds it in `toolsets/<toolset>/<tool>.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import NOTHING_LONG, Truncation
from mcp_ingress.services import Services

Handler = Callable[[Call, dict[str, Any]], Awaitable[dict[str, Any]]]
Kind = Literal["read", "write"]

_COUNT = {"type": "integer", "minimum": 1}
GAP_FIELDS: Mapping[str, Any] = {
    "embedding_behind": {
        **_COUNT,
        "description": "This many of your writes are found by their words only, because they have no vectors yet.",
    },
    "behind": {
        "type": "object",
        "description": "What the node has not applied of the log yet: records, and the age of the oldest in seconds.",
        "properties": {"records": _COUNT, "seconds": {"type": "number"}},
    },
}
"""What a search's answer lacks; `behind` is in that of every read. Neither is there where nothing is lacking."""


@dataclass(frozen=True)
class Tool:
    """Name, contract and handler. The module that defines one calls it `TOOL`.

    The input schema is exact (`additionalProperties: false` is added by the inventory, defaults are filled in before
    the handler sees the arguments). A handler returns the answer's object, or raises Refused (with the toolset's own
    code and extras) or Unavailable.
    """

    name: str
    toolset: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    kind: Kind
    handler: Handler
    timeout_s: float = 5.0
    idempotent: bool = False
    destructive: bool = False
    open_world: bool = False
    always_load: bool = False
    notes_under: str | None = None
    """The object of a read's answer that says what it lacks (`behind`, `embedding_behind`); None: the answer itself."""
    truncation: Truncation | None = NOTHING_LONG
    """The texts of its answer that have an address, and how to ask for what does not fit; None: its handler fits it."""
    defaults: Callable[[Services], Mapping[str, Any]] | None = None
    """Defaults of arguments that the node's settings decide, for the schema that it lists."""
    unavailable_code: str | None = None
    """The toolset's own code of an answer that fails because a part of the node is down; None: that of all tools."""
    memory_operation: str | None = None
    """OpenTelemetry GenAI memory operation (`create_memory`, `search_memory` …), when it is one."""
    is_upkeep: bool = False
    """Whether it tends what is stored already, as a dream does."""

    @property
    def is_activity(self) -> bool:
        """Whether a call stores or recalls for somebody who works: then it wakes a dream."""
        return self.memory_operation is not None and not self.is_upkeep
