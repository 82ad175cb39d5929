"""Right after a write the newer statement stands first, and its writer was told what it changes: over the real MCP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from processors.memory.rules.words import word_set
from tests.e2e.program import Program
from tests.e2e.test_agent import call, over_stdio

pytestmark = pytest.mark.timeout(300)
SERVICES = word_set(
    "harbour lexer billing search mail queue export login audit report "
    "cache worker proxy index store ledger planner router mixer camera"
)


@pytest.fixture
def thalweg(home: Path) -> Iterator[Program]:
    """On the log of a file: how soon a broker's is read is not what this is about."""
    program = Program(home)
    yield program
    program("stop")


async def test_a_question_right_after_two_writes_is_answered_by_the_newer_first(thalweg: Program) -> None:
    wrong, untold = [], []
    async with over_stdio(thalweg) as client:
        for number, service in enumerate(sorted(SERVICES)):
            texts = [f"The {service} service listens on port {port}." for port in (8000 + number, 9000 + number)]
            for text in texts:
                written = await call(client, "journal_write", content=text, category="observation")
            if [row["text"] for row in written.get("contradicts", ())] != texts[:1]:
                untold.append(service)
            asked = f"Does the {service} service still listen on port {8000 + number}?"
            found = await call(client, "journal_query", query=asked)
            shown = [row["content"] for row in found["results"] if row["content"] in texts]
            if shown != texts[::-1]:
                wrong.append(service)
    # a machine that is slow may be too late for one: it waits for a moment, not for ever
    assert len(wrong) <= 1 and len(untold) <= 1, (wrong, untold)
