"""The form of Cognitive Memory's errors: `{"error", "details", "tool"}`.

`error` is one of five categories.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress.toolset import INTERNAL_ERROR, ErrorStyle

INVALID, STORE, KEY, FAILED, NOT_FOUND = (
    "Parameter validation failed",
    "Database operation failed",
    "API key not configured",
    "Tool execution failed",
    "Resource not found",
)
_CATEGORIES: Mapping[str, str] = {
    "unavailable": STORE,
    "log_unavailable": STORE,
    "timeout": STORE,
    "api_key_not_configured": KEY,
    "embedder_unavailable": FAILED,
    "nothing_to_evaluate": FAILED,
    "rate_limited": FAILED,
    "internal_error": FAILED,
    "resource_not_found": NOT_FOUND,
}
"""Every other code is a parameter that was not accepted."""
WITHOUT_EMBEDDING = frozenset({"compress_to_l2_insight", "store_episode"})
JUDGE_TOOLS = frozenset({"store_dual_judge_scores"})
"""Tools whose time goes to a judge, not to the store."""


def error_shape(tool: str, code: str, message: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body of every error of this toolset."""
    more = {"embedding_status": "failed"} if tool in WITHOUT_EMBEDDING else {}
    error = FAILED if code == "timeout" and tool in JUDGE_TOOLS else _CATEGORIES.get(code, INVALID)
    return {**extra, **more, "error": error, "details": message, "tool": tool}


ERRORS = ErrorStyle(
    shape=error_shape,
    rpc_codes={code: INTERNAL_ERROR for code, category in _CATEGORIES.items() if category != NOT_FOUND},
)
