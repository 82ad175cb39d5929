"""The real Claude Code, pinned, in an environment with nothing of this user's own."""

from __future__ import annotations

import os
from pathlib import Path

from tests.conformance.messages_api import MessagesApi
from tests.conformance.npm import installed

PACKAGE = "@anthropic-ai/claude-code@2.1.329"
RUN_S = 300
PATIENCE_MS = "120000"
"""How long Claude Code may wait for a server that starts slowly, and for a call."""


def claude_program() -> Path:
    """The native program that the package brings for this machine."""
    [program] = (installed(PACKAGE) / "@anthropic-ai").glob("claude-code-*/claude")
    return program


def environment(api: MessagesApi, home: Path) -> dict[str, str]:
    """Nothing of this user's own.

    Telemetry, updates and error reports off; every other machine behind the API, which refuses.
    """
    off = (
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
    )
    proxy = {"HTTPS_PROXY": api.url, "HTTP_PROXY": api.url, "NO_PROXY": "127.0.0.1"}
    waits = ("MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "MCP_CONNECT_TIMEOUT_MS", "CLAUDE_CODE_MCP_STARTUP_WAIT_MS")
    account = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "scripted"}
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        **dict.fromkeys(off, "1"),
        **dict.fromkeys(waits, PATIENCE_MS),
        **proxy,
        **account,
    }
