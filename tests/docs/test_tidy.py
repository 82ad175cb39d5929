"""The source stays in order: a module says what it is for, is no longer than can be read, and leaves nothing for later."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("streams", "storage", "processors", "mcp_ingress", "thalweg", "tests")
MODULES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
LATER = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def test_every_module_says_what_it_is_for_and_leaves_nothing_for_later() -> None:
    wrong = []
    for path in MODULES:
        text = path.read_text()
        if text.strip() and not re.match(r'r?"""', text):
            wrong.append(f"{path.relative_to(ROOT)}: no docstring")
        if text.count("\n") > 400:
            wrong.append(f"{path.relative_to(ROOT)}: over 400 lines")
        if LATER.search(text):
            wrong.append(f"{path.relative_to(ROOT)}: something is left for later")
    assert len(MODULES) > 400 and wrong == []
