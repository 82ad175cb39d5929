"""The source stays in order: a module says what it is for, is no longer than can be read, and leaves nothing for later."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("streams", "storage", "processors", "mcp_ingress", "thalweg", "tests")
MODULES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
MOST_LINES = 450
LATER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def test_every_module_says_what_it_is_for_and_leaves_nothing_for_later() -> None:
    wrong = []
    for path in MODULES:
        text = path.read_text()
        if text.strip() and not re.match(r'r?"""', text):
            wrong.append(f"{path.relative_to(ROOT)}: no docstring")
        if text.count("\n") > MOST_LINES:
            wrong.append(f"{path.relative_to(ROOT)}: over {MOST_LINES} lines")
        if LATER.search(text):
            wrong.append(f"{path.relative_to(ROOT)}: something is left for later")
    assert len(MODULES) > 400 and wrong == []


def test_every_package_that_is_imported_is_one_that_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked_for = (*project["dependencies"], *project["optional-dependencies"]["models"])
    declared = {canonical(found[0]) for one in asked_for if (found := re.match(r"[\w.-]+", one))}
    packages = packages_distributions()
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in MODULES
        if path.relative_to(ROOT).parts[0] != "tests"
        for name in imported(path)
        if name not in sys.stdlib_module_names
        and name not in FOLDERS
        and not declared & {canonical(one) for one in packages.get(name, ())}
    }
    assert len(declared) > 20 and wrong == set()


def canonical(name: str) -> str:
    return name.lower().replace("_", "-")


def imported(path: Path) -> set[str]:
    """The packages that a module imports anywhere in it, by the first part of the name."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = (alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names)
    parts = (node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module)
    return {name.partition(".")[0] for name in (*plain, *parts)}
