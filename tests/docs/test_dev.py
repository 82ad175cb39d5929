"""The README's command on a machine that lacks something: one sentence that says what, and nothing half made."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("flags", "path", "lacking"),
    [((), "", "a C++ compiler"), (("-S",), None, "pip")],  # without site-packages there is no pip
)
def test_what_is_missing_is_one_sentence(tmp_path: Path, flags: tuple[str, ...], path: str | None, lacking: str) -> None:
    for name in ("dev.py", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    compiler = tmp_path / "bin"
    compiler.mkdir()
    (compiler / "g++").touch(mode=0o755)
    done = subprocess.run(
        [sys.executable, *flags, "dev.py", "setup"],
        cwd=tmp_path,
        env={"PATH": str(compiler) if path is None else path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    [sentence] = done.stderr.splitlines()
    assert sentence.startswith(f"thalweg needs {lacking}") and "Debian: apt-get install" in sentence
    assert not (tmp_path / ".venv").exists()
