"""The memories that answers name, as a resource of every server, whichever toolsets it serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress.resource import SHARED
from mcp_ingress.toolset import ErrorStyle, Toolset


def _described(tool: str, code: str, message: str, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body of an error of a resource: its category, what is wrong, and which resource it is."""
    category = "Resource not found" if code == "resource_not_found" else "Parameter validation failed"
    return {**extra, "error": category, "details": message, "tool": tool}


TOOLSET = Toolset(name=SHARED, errors=ErrorStyle(shape=_described))
