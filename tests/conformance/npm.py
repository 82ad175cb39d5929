"""Programs from npm for tests of foreign clients: pinned, installed once into the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

INSTALL_S = 900


def installed(*packages: str) -> Path:
    """The `node_modules` that holds these packages (`name@version`).

    Without npm the test is skipped with that sentence; with THALWEG_REQUIRE_CONFORMANCE=1 or THALWEG_REQUIRE_KAFKA=1 it
    fails. No package's own install script runs.
    """
    if shutil.which("npm") is None:
        reason = f"{packages[-1]} comes from npm, which is not installed."
        required = {os.environ.get("THALWEG_REQUIRE_CONFORMANCE"), os.environ.get("THALWEG_REQUIRE_KAFKA")}
        pytest.fail(reason) if "1" in required else pytest.skip(reason)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "thalweg" / "npm"
    home = cache / "+".join(package.replace("/", "-") for package in packages)
    if not home.is_dir():
        making = cache / f"making.{os.getpid()}"
        making.mkdir(parents=True, exist_ok=True)
        (making / "package.json").write_text('{"private": true}')
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", *packages]
        subprocess.run(command, cwd=making, check=True, timeout=INSTALL_S, capture_output=True)
        making.rename(home)
    return home / "node_modules"
