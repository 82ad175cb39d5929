"""The README's command on a machine that lacks something: one sentence that says what, and nothing half made."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("command", ["setup", "models"])
@pytest.mark.parametrize(
    ("flags", "path", "lacking"),
    [((), "", "a C++ compiler"), (("-S",), None, "pip")],  # without site-packages there is no pip
)
def test_what_is_missing_is_one_sentence(
    tmp_path: Path, command: str, flags: tuple[str, ...], path: str | None, lacking: str
) -> None:
    for name in ("dev.py", "pyproject.toml", "requirements.lock", "requirements-models.lock"):
        shutil.copy(ROOT / name, tmp_path)
    compiler = tmp_path / "bin"
    compiler.mkdir()
    (compiler / "g++").touch(mode=0o755)
    done = subprocess.run(
        [sys.executable, *flags, "dev.py", command],
        cwd=tmp_path,
        env={"PATH": str(compiler) if path is None else path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    [sentence] = done.stderr.splitlines()
    assert sentence.startswith(f"thalweg needs {lacking}") and "Debian: apt-get install" in sentence
    assert not list(tmp_path.glob(".venv*"))


def pins(lock: str) -> set[str]:
    """`name==version`, with its marker. Hashes follow each that is ever installed."""
    text = (ROOT / lock).read_text()
    found = set(re.findall(r"^(\S+==[^\\\n]+?)(?: \\)?$", text, re.MULTILINE))
    hashed = set(re.findall(r"^(\S+==[^\\\n]+?) \\\n    --hash=sha256:", text, re.MULTILINE))
    assert all(pin.endswith("sys_platform == 'never'") for pin in found - hashed)
    return found


def test_the_environment_of_named_models_is_the_others_and_the_extra() -> None:
    models = pins("requirements-models.lock")
    assert pins("requirements.lock") | pins("requirements-dev.lock") <= models
    assert {"sentence-transformers", "torch"} <= {pin.partition("==")[0] for pin in models}
