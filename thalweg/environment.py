"""The environment of the process, read here alone. Light enough for the pump to import."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def process_environment() -> Mapping[str, str]:
    """The variables of this process, as they are now."""
    return os.environ


def default_home() -> Path:
    """The data directory unless another one is named."""
    return Path(process_environment().get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "thalweg"
