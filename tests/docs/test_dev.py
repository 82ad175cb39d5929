"""The README's command on a machine that lacks something: one sentence that says what, and nothing half made."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dev
from tests.docs.source import PROGRAM, ROOT


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


UNCOUNTED = ("graph/build", "graph/child", "sandbox", "sql/child")
"""What runs only in children without the node's environment."""


def test_the_gate_counts_the_branches_of_the_whole_program_and_of_its_children() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / ".coveragerc")
    run, report = settings["run"], settings["report"]
    assert run["source_pkgs"].split(", ") == list(PROGRAM) and run.getboolean("branch")
    assert run["patch"].split(", ") == ["subprocess", "_exit"]
    assert report.getfloat("fail_under") == 88 and "omit" not in run
    assert report["omit"].split() == [f"storage/{name}.py" for name in UNCOUNTED]
    script = (ROOT / ".ci" / "run").read_text()
    for command in ("test", "coverage"):
        assert re.search(rf"^DEV_COUNTS=1 step python3 dev\.py {command}$", script, re.MULTILINE), command


@pytest.mark.parametrize("failing", range(5))
def test_the_gate_ends_with_what_its_first_failing_step_says(monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    steps: list[str] = []

    def call(*command: str) -> int:
        steps.append(" ".join(command[3:]))
        return 7 if len(steps) == failing + 1 else 0

    monkeypatch.setattr(dev, "call", call)
    monkeypatch.delenv(dev.COUNTS, raising=False)
    assert dev.coverage() == (7 if failing < 4 else 0)
    assert steps == ["erase", f"run -m pytest {' '.join(dev.QUICK)}", "combine --quiet", "report"][: failing + 1]


def test_where_the_quick_suite_was_counted_the_gate_reports_on_that(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[tuple[str, ...]] = []
    monkeypatch.setattr(dev, "call", lambda *command: steps.append(command) or 0)
    monkeypatch.setattr(dev, "set_up", lambda *locks: 0)
    monkeypatch.setenv(dev.COUNTS, "1")
    assert dev.main(["test"]) == dev.main(["coverage"]) == 0
    assert [step[1:] for step in steps] == [
        ("-m", "coverage", "run", "-m", "pytest", *dev.QUICK),
        ("-m", "coverage", "combine", "--quiet"),
        ("-m", "coverage", "report"),
    ]


def test_the_gate_runs_nothing_again_that_kills_processes_or_breaks_brokers() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    again, once = script[script.index("--reruns") :].split("unset PYTEST_ADDOPTS\n")
    assert re.findall(r"dev\.py (\w+)", again) == ["test", "coverage", "test", "test"]
    assert not re.findall(r'-m "(?!hypothesis and|process and not kafka and not crash")', again)
    for suite in ("conformance", '"kafka and not crash"', '"crash and not kafka"', '"crash and kafka"'):
        assert f"-m {suite}" in once


def test_a_search_at_random_is_never_run_again(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    for item in items:
        marker = item.get_closest_marker("flaky")
        assert (marker is not None and marker.kwargs == {"reruns": 0}) == (
            item.get_closest_marker("hypothesis") is not None
        )


def test_the_quick_suite_starts_no_node(request: pytest.FixtureRequest) -> None:
    if "not process" in request.config.option.markexpr:
        assert not [item.nodeid for item in request.session.items if item.get_closest_marker("process")]
