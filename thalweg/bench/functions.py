"""Functions of real transcripts as memories, and their names in words as questions.

For `thalweg bench views --functions`. The transcripts are not in this repository: docs/benchmarks.md says which, and
where they are from.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from processors.context_graph.rules.views.code import split_name
from streams.errors import Refused
from thalweg.bench.recall_sets import Conversation, Question, Turn

ASKED = 100
"""Functions whose name is asked for; the others are there to be confused with."""
_FUNCTION = re.compile(
    r"^(?:export )?(?:async )?(?:func|function|fn) (?:\([^()\n]*\) )?(\w+)\(.*?^}", re.MULTILINE | re.DOTALL
)
_CHARS = (80, 3000)
_START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def read_functions(directory: Path) -> Conversation:
    """Each function of two words or more, once, in an order that depends on its name alone.

    Raises Refused when the folder's *.jsonl have none.
    """
    found: dict[str, str] = {}
    for file in sorted(directory.rglob("*.jsonl")):
        for line in file.read_bytes().splitlines():
            for text in _texts(_decoded(line)):
                for match in _FUNCTION.finditer(text):
                    if _CHARS[0] < len(match[0]) < _CHARS[1] and len(split_name(match[1])) > 1:
                        found.setdefault(match[1], match[0])
    if not found:
        raise Refused(f"The folder {directory.name!r} has no *.jsonl with functions in them.")
    names = sorted(found, key=lambda name: zlib.crc32(name.encode()))
    turns = [Turn(name, None, _START + timedelta(minutes=place), found[name]) for place, name in enumerate(names)]
    asked = [Question(" ".join(split_name(name)), "symbol", frozenset([name]), frozenset()) for name in names[:ASKED]]
    return Conversation("functions", turns, asked)


def _decoded(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except ValueError:
        return None  # a transcript may end in the middle of a line


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
