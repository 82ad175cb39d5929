"""What every server has, whichever toolsets it serves: in `resources` the memories that answers name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress.resource import CORE
from mcp_ingress.toolset import ErrorStyle, Toolset


def _described(tool: str, code: str, message: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body of an error of a resource: its category, what is wrong, and which resource it is."""
    category = "Resource not found" if code == "resource_not_found" else "Parameter validation failed"
    return {**extra, "error": category, "details": message, "tool": tool}


TOOLSET = Toolset(name=CORE, errors=ErrorStyle(shape=_described))
