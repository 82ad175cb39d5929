"""What the terminal shows: plain tables, readable numbers, and nothing that a text can turn into markup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from thalweg.doctor.checks import Diagnosis
from thalweg.terminal.show import MAX_CELL, bar, cell, number, plain, show_diagnoses, show_rows, show_status, sparkline


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


CONTROLS = st.characters(categories=["Cc"], exclude_characters="\n\t") | st.sampled_from("\u202e\u2066")


@given(
    st.text(
        st.characters(
            exclude_categories=["Cc", "Cs"], exclude_characters="\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
        ),
        max_size=MAX_CELL,
    )
)
def test_a_cell_shows_the_text_itself_whatever_is_in_it(text: str) -> None:
    assert cell(text).plain == text


@given(st.text(CONTROLS, min_size=1, max_size=MAX_CELL))
def test_what_would_steer_the_terminal_is_shown_as_a_sign(text: str) -> None:
    shown = cell(text).plain
    assert len(shown) == len(text) and not set(shown) & set(text)


def test_within_markup_a_text_is_no_markup() -> None:
    assert Text.from_markup(f"[bold]{plain('[red]a[/red]')}[/bold] \\[b]").plain == "[red]a[/red] [b]"


def test_a_long_cell_is_cut_and_a_null_is_a_dash() -> None:
    shown = cell("x" * 1000).plain
    assert len(shown) == MAX_CELL and shown.endswith("…")
    assert cell(None).plain == "–"


@pytest.mark.parametrize(
    "value, shown",
    [
        (0.012345, "0.01235"),
        (12.5, "12.5"),
        (1793520011.4, "1793520011"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (1e300, "1e+300"),
    ],
)
def test_a_number_keeps_the_digits_that_count(value: float, shown: str) -> None:
    assert number(value) == shown


def test_rows_are_a_table_with_numbers_to_the_right_and_a_line_that_counts_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_rows(["tool", "calls"], [["[red]Bash[/red]", 7], ["Edit", 1200]], "3 ms")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "tool             calls",
        "[red]Bash[/red]      7",
        "Edit              1200",
        "2 rows, 3 ms",
    ]


def test_rows_that_are_too_wide_for_a_readable_table_are_records(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names, text = [f"column_{number:02}" for number in range(12)], "a sentence that takes its room"
    show_rows(names, [[text] * 12, [None] * 12], "")
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if text in line] == [f"{name}  {text}" for name in names]
    assert [line.split()[0] for line in lines if "──" in line] == ["1", "2"]
    assert lines[-1] == "2 rows" and max(map(len, lines)) <= 80
    show_rows(names[:2], [["short", "a long text " * 9]], "")
    assert capsys.readouterr().out.split()[:2] == names[:2], "one long column folds and stays readable"


def test_no_rows_are_a_table_too(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(["tool"], [], "")
    assert capsys.readouterr().out.split() == ["tool", "0", "rows"]


def test_a_bar_grows_with_its_share_and_is_seen_as_soon_as_there_is_something() -> None:
    assert (bar(0.0, 8), bar(0.001, 8), bar(0.5, 8), bar(1.0, 8), bar(7.0, 8)) == (
        "",
        "▏",
        "████",
        "████████",
        "████████",
    )


@given(st.lists(st.integers(0, 10_000), max_size=60))
def test_a_sparkline_has_a_letter_a_count_and_no_count_is_lost(counts: list[int]) -> None:
    line = sparkline(counts)
    assert len(line) == len(counts)
    assert [letter == " " for letter in line] == [count == 0 for count in counts]
    assert not counts or max(counts) == 0 or line[counts.index(max(counts))] == "█"


def test_without_a_node_the_status_says_why_it_is_red_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    show_status({"status": "red", "problems": ["No node runs on here."], "remedy": "Start one."})
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["thalweg is red", "• No node runs on here.", "→ Start one."]


def test_a_failing_check_is_shown_with_its_remedy_a_passing_one_without(capsys: pytest.CaptureFixture[str]) -> None:
    show_diagnoses(
        [
            Diagnosis("python", True, "3.12.1", "unused"),
            Diagnosis("log", False, "No broker answers " + "x" * 200, "Start it."),
        ]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "✓ python: 3.12.1"
    assert lines[1] == "✗ log: No broker answers " + "x" * 200
    assert lines[2].strip() == "→ Start it." and len(lines) == 3
