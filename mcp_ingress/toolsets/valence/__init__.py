"""The Valence tools, one module a tool. `answers`, `kb_answers` and `kb_queries` hold what they share and are no tools."""

ERROR_CODES = {
    "invalid_argument": "INVALID_PARAMS",
    "unavailable": "STORAGE_ERROR",
    "log_unavailable": "STORAGE_ERROR",
    "embedder_unavailable": "STORAGE_ERROR",
    "timeout": "STORAGE_ERROR",
    "internal_error": "INTERNAL_ERROR",
}
"""What the toolset calls the codes that all tools share."""
