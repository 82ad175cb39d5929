"""Set up and run, with nothing but Python: `python3 dev.py demo`, `python3 dev.py test`.

The first call makes `.venv` from the hash-pinned requirements.lock, the first test adds requirements-dev.lock; later
calls only look whether they are current. `models` has an environment of its own: its torch brings 4 GB.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
MODELS_VENV = ROOT / ".venv-models"
LOCK = ROOT / "requirements.lock"
DEV_LOCK = ROOT / "requirements-dev.lock"
MODELS_LOCK = ROOT / "requirements-models.lock"
GROUPS = {
    LOCK: ("--no-default-groups", "--group", "model"),
    DEV_LOCK: ("--only-group", "dev"),
    MODELS_LOCK: ("--extra", "models"),
}
BIN = "Scripts" if os.name == "nt" else "bin"
TWO = ("-n", "2", "--dist", "worksteal")
"""Two workers. What a file shares among its tests is made once: it stays with one of them but for what the other takes
over at the end."""
QUICK = (*TWO, "-m", "not kafka and not crash and not process and not conformance and not models")
COUNTED = ("-m", "coverage", "run")
COUNTS = "DEV_COUNTS"
"""Where it is set, `test` counts what it runs, and `coverage` reports on that."""
MODELS = ("-m", "models", "tests/models")
USAGE = "usage: python3 dev.py setup | demo | test | coverage | models | lock [--check] | run COMMAND …"


def main(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled when it is first imported
    if sys.version_info < (3, 11):  # noqa: UP036 - the caller may have an older one
        print("thalweg needs Python 3.11 or newer.", file=sys.stderr)
        return 2
    match arguments:
        case ["setup"]:
            return set_up(VENV, LOCK)
        case ["demo", *rest]:
            return set_up(VENV, LOCK) or call(str(VENV / BIN / "thalweg"), "demo", *rest)
        case ["test", *rest]:
            return set_up(VENV, LOCK, DEV_LOCK) or call(
                str(VENV / BIN / "python"), *(COUNTED if COUNTS in os.environ else ()), "-m", "pytest", *(rest or QUICK)
            )
        case ["coverage"]:
            return set_up(VENV, LOCK, DEV_LOCK) or coverage()
        case ["models", *rest]:
            return set_up(MODELS_VENV, MODELS_LOCK) or call(
                str(MODELS_VENV / BIN / "python"), "-m", "pytest", *(rest or MODELS)
            )
        case ["run", command, *rest]:
            return set_up(VENV, LOCK, DEV_LOCK) or call(str(VENV / BIN / command), *rest)
        case ["lock"]:
            return lock(check=False)
        case ["lock", "--check"]:
            return lock(check=True)
    print(USAGE, file=sys.stderr)
    return 2


def call(*command: str, **environment: str) -> int:
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}).returncode


def set_up(directory: Path, base: Path, *added: Path) -> int:
    """Make the environment of the lock `base` unless it is current, and add the others. 0, or the failing step's exit
    code."""
    # the pip that is there installs into the environment, which so needs none of its own
    python = str(directory / BIN / "python")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check")
    pip = (*pip, "--no-warn-script-location", "--root-user-action=ignore", "--no-compile", "--no-deps")
    if not _is_current(directory, base):
        if missing := _missing():
            print(f"thalweg needs {missing}", file=sys.stderr)
            return 2
        print(f"Setting up {directory.name} (once) …", file=sys.stderr, flush=True)
        venv.create(directory, with_pip=False, clear=True)
        if failed := call(*pip, "--require-hashes", "-r", str(base)) or call(*pip, "-e", str(ROOT)):
            return failed
        _stamp(directory, base).write_text(_wanted(base))
    for lock in added:
        if not _is_current(directory, lock):
            if failed := call(*pip, "--require-hashes", "-r", str(lock)):
                return failed
            _stamp(directory, lock).write_text(_wanted(lock))
    return 0


def _missing() -> str | None:
    """What this machine lacks for the set-up, and how it comes; None when all is there."""
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        return "a C++ compiler for hnswlib: install g++ (Debian: apt-get install g++) or clang."
    if importlib.util.find_spec("pip") is None:
        return f"pip for {sys.executable} (Debian: apt-get install python3-pip)."
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        return f"the headers of {sys.executable} to compile hnswlib (Debian: apt-get install python3-dev)."
    return None


def _stamp(directory: Path, lock: Path) -> Path:
    return directory / f"{lock.name}.sha256"


def _wanted(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()


def _is_current(directory: Path, lock: Path) -> bool:
    stamp = _stamp(directory, lock)
    return stamp.exists() and stamp.read_text() == _wanted(lock)


def coverage() -> int:
    """Run the quick suite; fails when it leaves too many branches out.

    .coveragerc says what counts, and how much of it must be run. What a command fails with is the exit code.
    """
    tool = (str(VENV / BIN / "python"), "-m", "coverage")
    first = [] if COUNTS in os.environ else [("erase",), ("run", "-m", "pytest", *QUICK)]
    for arguments in (*first, ("combine", "--quiet"), ("report",)):
        if failed := call(*tool, *arguments):
            return failed
    return 0


def lock(*, check: bool) -> int:
    """Write the locks from pyproject.toml with uv (one resolution for all); with `check`, say whether they fit it."""
    uv = shutil.which("uv") or str(VENV / BIN / "uv")
    with tempfile.TemporaryDirectory() as directory:
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, directory)
        for path, groups in GROUPS.items():
            made = Path(directory) / path.name
            if check:
                shutil.copy(path, made)  # uv keeps the versions that it finds there
            export = [
                uv,
                "export",
                "--quiet",
                "--no-emit-project",
                "--no-header",
                "--no-annotate",
                "--format",
                "requirements-txt",
            ]
            done = subprocess.run(
                [*export, *groups, "--output-file", str(made)], cwd=directory, stdout=subprocess.DEVNULL
            )
            if done.returncode:
                return done.returncode
            if check and _pins(made.read_text()).keys() != _pins(path.read_text()).keys():
                print(f"{path.name} does not fit pyproject.toml: run `python3 dev.py lock`.", file=sys.stderr)
                return 1
            if not check:
                shutil.copy(made, path)
    return 0


def _pins(text: str) -> dict[str, str]:
    """Version by name, of the lines that pin one."""
    pins = (line.split(" ")[0].split("==") for line in text.splitlines() if "==" in line)
    return {name: version for name, version in pins}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
