"""`node.json` in the data directory: the log of its last node, and why that failed. Light enough for the pump."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

NAME = "node.json"
OWN = "log.db"
"""What `broker` says on disk of the directory's own log, so that a copied or moved directory means its own too."""


def own_log(home: Path) -> str:
    """The URL of the embedded log in a data directory."""
    return f"sqlite://{home / OWN}"


def read(home: Path) -> dict[str, str]:
    """`broker` (its URL) and `started_at` of the last node; `failure` and `failed_at` when it failed."""
    try:
        content = json.loads((home / NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    state = {str(name): value for name, value in content.items() if isinstance(value, str)}
    return state | {"broker": own_log(home)} if state.get("broker") == OWN else state


def write(home: Path, state: dict[str, str]) -> None:
    """Replace the node's state, for the owner alone. Where it cannot be written, the node goes on without it."""
    if state.get("broker") == own_log(home):
        state = {**state, "broker": OWN}
    making = home / f"{NAME}.{os.getpid()}"
    with contextlib.suppress(OSError):
        with open(making, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            json.dump(state, file)
        making.replace(home / NAME)


def failed(home: Path, sentence: str, at: str) -> None:
    """Keep a node's last sentence beside what is known of its log."""
    write(home, {**read(home), "failure": sentence, "failed_at": at})


def disagreement(home: Path, broker_url: str) -> str | None:
    """A sentence when the log is not that of the directory's last node; None when it is, or none has run."""
    last = read(home).get("broker")
    if last is None or last == broker_url:
        return None
    return (
        f"The last node of {home} used {last}; "
        f"{broker_url} is meant now, because a flag, THALWEG_BROKER or thalweg.toml says so."
    )
