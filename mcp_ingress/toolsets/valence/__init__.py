"""The Valence tools, one module a tool. `common`, `*answers`, `*queries` and some `belief_*` hold what they share."""

from mcp_ingress.toolset import ErrorStyle, Toolset
from mcp_ingress.toolsets.valence.part import Valence

TOOLSET = Toolset(
    name="valence",
    errors=ErrorStyle(
        codes={
            "invalid_argument": "INVALID_PARAMS",
            "unavailable": "STORAGE_ERROR",
            "log_unavailable": "STORAGE_ERROR",
            "embedder_unavailable": "STORAGE_ERROR",
            "timeout": "STORAGE_ERROR",
            "internal_error": "INTERNAL_ERROR",
        }
    ),
    groups={
        "valence.substrate": ("belief", "entity", "tension"),
        "valence.vkb": ("session", "exchange", "pattern", "insight"),
    },
    part=lambda setup: Valence(auto_capture=setup.settings.valence_auto_capture),
)
