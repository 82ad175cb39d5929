"""docs/questions.md: each of its questions answers what it prints, through the guarded child."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from storage.sql.run import run_sql

pytestmark = pytest.mark.process

PAGE = (Path(__file__).parents[2] / "docs" / "questions.md").read_text(encoding="utf-8")
QUESTIONS = re.findall(r"^## (\d+\. .*?)\n.*?```sql\n(.*?)```(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)


def printed_rows(answer: str) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of the Markdown table below a question."""
    lines = [line.strip().strip("|").split("|") for line in answer.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line] for line in lines]
    return cells[0], cells[2:]


def as_text(value: Any) -> str:
    return "" if value is None else str(value)


def test_the_questions_are_numbered_from_one() -> None:
    numbers = [int(title.split(".")[0]) for title, *_ in QUESTIONS]
    assert len(numbers) >= 10 and numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize(
    ("sql", "answer"), [question[1:] for question in QUESTIONS], ids=[question[0] for question in QUESTIONS]
)
def test_a_question_gives_the_columns_and_the_rows_that_the_page_prints(sql: str, answer: str, snapshot: Path) -> None:
    found = run_sql(snapshot, sql)
    columns, rows = printed_rows(answer)
    assert found.columns == columns
    given = [[as_text(value) for value in row] for row in found.rows]
    assert rows and all(row in given for row in rows), given
