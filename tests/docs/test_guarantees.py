"""GUARANTEES.md says of each row which tests show it, and on which broker they run.

Compared with what pytest collects.
"""

from __future__ import annotations

import re

import pytest

from tests.docs.brokers import Runs
from tests.docs.pages import ROOT

FOLDERS = ("tests/crash", "tests/kafka", "tests/properties")
"""Whose tests show guarantees."""
WITHOUT_ROW = {
    "tests/crash/test_power_cut.py::test_the_journal_misses_nothing_that_the_log_and_the_spool_do": "checks the rig",
    "tests/kafka/test_bench.py": "the figures of a command",
    "tests/kafka/test_compose.py": "docker-compose.yml and the image",
    "tests/kafka/test_faust_traps.py": "pins how another project behaves",
    "tests/kafka/test_foreign_producers.py": "the form of records, which docs/topics.md describes",
}
"""Tests there, or whole files, that no row names, and why."""
ROWS = [f"G{n}" for n in range(1, 6)] + [f"I{n}" for n in range(1, 12)] + [f"R{n}" for n in range(1, 19)]
PAGE = (ROOT / "GUARANTEES.md").read_text()


def table(title: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    section = PAGE.partition(f"## {title}")[2].partition("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| ")
    ][1:]


def find_tests(cell: str) -> list[str]:
    """`file::test`, or a file alone; `::test` is of the file before it."""
    found: list[str] = []
    for file, test in re.findall(r"`(tests/[\w/]*test_\w+\.py)?((?:::\w+)?)`", cell):
        if file or test:
            found.append((file or found[-1].partition("::")[0]) + test)
    return found


def test_every_test_of_a_guarantee_is_named_by_a_row() -> None:
    rows = find_tests(PAGE)
    named = {*rows, *WITHOUT_ROW}
    tests = {
        f"{path.relative_to(ROOT)}::{name}"
        for folder in FOLDERS
        for path in (ROOT / folder).glob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), flags=re.MULTILINE)
    }
    assert {test for test in tests if not {test, test.partition("::")[0]} & named} == set()
    exist = tests | {test.partition("::")[0] for test in tests}
    assert {name for name in WITHOUT_ROW if name not in exist or name in rows} == set()


@pytest.fixture(scope="module")
def runs() -> Runs:
    """Of every file that the page names a test of."""
    return Runs.of(sorted(set(re.findall(r"`(tests/[\w/]*test_\w+\.py)", PAGE))))


@pytest.mark.process
def test_every_invariant_and_recipe_has_a_row_that_names_a_test_and_the_brokers_on_which_ci_runs_it(runs: Runs) -> None:
    rows = table("Row by row")
    assert [cells[0].split()[0] for cells in rows if not cells[0].startswith("…")] == ROWS
    wrong, shown = {}, [""]
    for row, _, shown_by, on in rows:
        shown = find_tests(shown_by) or shown  # "the same": as the row above
        if on != (column := runs.column(shown)):
            wrong[f"{row}: {shown[0]}"] = f"says {on!r} and is {column!r}"
    assert not wrong


@pytest.mark.process
def test_every_failure_marked_with_a_dagger_is_tried_on_both_brokers(runs: Runs) -> None:
    marked = [cells for cells in table("What happens at each failure") if "†" in cells[2]]
    assert len(marked) > 5
    for failure, _, shown_by in marked:
        first, *_ = find_tests(shown_by.partition("†")[2])
        assert runs.column([first]).startswith("both"), failure


KILLS = "tests/crash/test_kills.py::test_random_kills_under_load_lose_nothing_and_repeat_nothing"
OUTAGE = "tests/kafka/test_outages.py::test_what_waits_for_a_dead_broker_is_bounded_in_bytes"
FULL = "tests/ingress/test_spool.py::test_a_full_spool_refuses_the_write_as_unavailable"
TERM = "tests/crash/test_kills.py::test_a_term_in_mid_batch_ends_cleanly_and_nothing_is_lost"
DISK = "tests/crash/test_full_disk.py"


@pytest.fixture(scope="module")
def few_runs() -> Runs:
    """Of the files of these five: to collect all takes 10 seconds."""
    return Runs.of(sorted({test.partition("::")[0] for test in (KILLS, OUTAGE, FULL, TERM, DISK)}))


@pytest.mark.parametrize(
    ("tests", "column"),
    [
        ([KILLS], "both"),
        ([OUTAGE], "Kafka"),
        ([FULL], "no broker"),
        ([TERM], "both, in CI SQLite"),
        ([DISK], "SQLite"),
        ([DISK, OUTAGE], "both"),
    ],
)
def test_where_a_test_runs_is_read_off_its_marks_parameters_and_what_it_opens(
    few_runs: Runs, tests: list[str], column: str
) -> None:
    assert few_runs.column(tests) == column


def test_a_test_that_ci_does_not_run_is_said(few_runs: Runs) -> None:
    assert Runs(few_runs.cases, frozenset()).column([FULL]) == "not all in CI"
