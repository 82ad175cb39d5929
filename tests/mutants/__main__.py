"""`python -m tests.mutants [WORD …]`: run each kept mutant against its tests and print those that survive.

Exit code 1 if any does.

Each runs in a copy of the tree, two at a time. A WORD chooses domains (`valence`) or files (`streams/codec.py`).
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from tests.mutants.catalogue import ROOT, Mutant, chosen_from, kept_mutants

WORKERS = 2
MOST_S = 180
"""A mutant that makes its tests run longer than this is seen, too: the tests did not pass."""
TESTS = "not kafka and not crash and not conformance and not models"
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "node_modules", ".*_cache")
_FAILED = 1
"""Pytest's code for failed tests, and Python's own where pytest is missing, which prints nothing on standard output."""
_moments = itertools.count(1)


def main(words: Sequence[str]) -> int:
    """Run the chosen mutants; 0 when every one of them is seen by its tests."""
    chosen = chosen_from(kept_mutants(), words)
    if not chosen:
        print(f"No mutant is kept for {' '.join(words)}.")
        return 2
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="thalweg-mutants-") as directory:
        trees: Queue[Path] = Queue()
        for number in range(WORKERS):
            trees.put(copy_of_tree(Path(directory) / str(number)))
        if (without := baseline(trees, chosen)) is not None:
            print(f"{without}\nThe tests must pass before a mutant can fail them.")
            return 2
        with ThreadPoolExecutor(WORKERS) as workers:
            seen = sum(workers.map(lambda mutant: _is_seen(trees, mutant), chosen))
    print(f"{seen} of {len(chosen)} mutants were seen by their tests, in {time.monotonic() - started:.0f} s.")
    return 0 if seen == len(chosen) else 1


def copy_of_tree(place: Path) -> Path:
    """A copy of the tree whose lines may be changed."""
    return Path(shutil.copytree(ROOT, place, ignore=LEFT_OUT))


def baseline(trees: Queue[Path], mutants: Sequence[Mutant]) -> str | None:
    """What the tests print when they fail without any mutant; None when they pass."""
    tree = trees.get()
    tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    code, printed = run_tests(tree, tests, ("-n", "2"), most_s=1_800)
    trees.put(tree)
    return None if code == 0 else "\n".join(printed.splitlines()[-40:])


def _is_seen(trees: Queue[Path], mutant: Mutant) -> bool:
    tree = trees.get()
    try:
        found = verdict(tree, mutant)
    finally:
        trees.put(tree)
    if found is not None:
        print(f"{found}: {mutant}\n    {' '.join(mutant.tests)}", flush=True)
    return found is None


def verdict(tree: Path, mutant: Mutant) -> str | None:
    """`survived`, or what is wrong with the mutant itself; None when its tests fail, as they should."""
    path = tree / mutant.file
    text = path.read_text()
    try:
        _write(path, mutant.applied_to(text))
        code, printed = run_tests(tree, mutant.tests, ("-x",))
    finally:
        _write(path, text)
    if code == 0:
        return "survived"
    return None if code == _FAILED and printed.strip() else f"did not run ({printed.strip().splitlines()[-1:]})"


def _write(path: Path, text: str) -> None:
    """Compiled modules are told apart by size and whole seconds: each text gets a second of its own."""
    path.write_text(text)
    moment = time.time() - 10_000_000 + next(_moments)
    os.utime(path, (moment, moment))


def run_tests(tree: Path, tests: Sequence[str], options: Sequence[str], most_s: float = MOST_S) -> tuple[int, str]:
    """The exit code of pytest in this tree (a failure when it takes too long), and what it printed on standard
    output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", TESTS, *options, *tests]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=most_s)
    except subprocess.TimeoutExpired:
        return _FAILED, "took too long"
    return done.returncode, done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
