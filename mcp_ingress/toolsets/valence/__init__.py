"""The Valence tools, one module a tool. `*answers`, `*queries` and `belief_search` hold what they share and are no tools."""

ERROR_CODES = {
    "invalid_argument": "INVALID_PARAMS",
    "unavailable": "STORAGE_ERROR",
    "log_unavailable": "STORAGE_ERROR",
    "embedder_unavailable": "STORAGE_ERROR",
    "timeout": "STORAGE_ERROR",
    "internal_error": "INTERNAL_ERROR",
}
"""What the toolset calls the codes that all tools share."""

GROUPS = {
    "valence.substrate": ("belief", "entity", "tension"),
    "valence.vkb": ("session", "exchange", "pattern", "insight"),
}
"""Parts of the toolset that can be chosen alone: each is the tools of these nouns."""
