"""The check vectors of the specification, number by number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from processors.cognitive.rules import agreement, golden
from processors.cognitive.rules.identifiers import number_of
from processors.cognitive.rules.judging import lexical_score, longest_run
from processors.cognitive.rules.ranking import WEIGHTS, WeightsError, checked_weights, fuse
from processors.cognitive.rules.text_quality import fidelity, reflection_warnings, warning
from streams.errors import Refused
from thalweg.commands.memory.files import read_rows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the machine learning algorithm processes data", 5 / 6),
        ("der machine learning algorithm", 3 / 4),
        ("algorithm", 1.0),
        ("Machine learning algorithms analyze complex mathematical patterns efficiently", 1.0),
        ("this is a test that has many words but not much meaning at all", 5 / 14),
        ("", 0.0),
    ],
)
def test_density_of_a_text(text: str, expected: float) -> None:
    assert fidelity(text) == expected
    assert (warning(fidelity(text)) is None) == (expected >= 0.5)


def test_a_text_of_exactly_the_threshold_is_dense_enough() -> None:
    assert warning(0.5) is None and warning(0.499) is not None


def test_scores_of_ranks() -> None:
    by_label = {each.label: each for each in fuse([1, 2], [1, 3], WEIGHTS)}
    assert (round(by_label[1].rrf_score, 6), round(by_label[1].score, 12)) == (0.016393, 1.0)
    assert (round(by_label[2].rrf_score, 6), round(by_label[2].score, 6)) == (0.01129, 0.68871)
    assert (
        round(fuse([1], [], WEIGHTS)[0].rrf_score, 6) == 0.011475 and round(fuse([1], [], WEIGHTS)[0].score, 12) == 0.7
    )
    assert round(fuse([], [1], WEIGHTS)[0].score, 12) == 0.3 and fuse([], [], WEIGHTS) == []
    with pytest.raises(WeightsError, match=r"Weights must sum to 1\.0, got 0\.8"):
        checked_weights({"semantic": 0.5})


@pytest.mark.parametrize(
    ("one", "other", "expected", "name", "degenerate"),
    [
        ([0.8, 0.6, 0.3, 0.9, 0.4], [0.7, 0.6, 0.2, 0.8, 0.4], 1.0, "almost perfect", False),
        ([0.1] * 5, [0.9] * 5, 0.0, "slight", True),
        ([0.8, 0.6, 0.3, 0.9, 0.4], [0.7, 0.4, 0.2, 0.8, 0.4], 0.6154, "substantial", False),
        ([0.7], [0.9], 1.0, "almost perfect", True),
        ([0.9, 0.9, 0.9], [0.9, 0.1, 0.9], 0.0, "slight", True),
    ],
)
def test_kappa(one: list[float], other: list[float], expected: float, name: str, degenerate: bool) -> None:
    labels = agreement.labels(one), agreement.labels(other)
    value = agreement.kappa(*labels)
    assert (
        round(value, 4) == expected
        and agreement.agreement(value) == name
        and agreement.is_degenerate(*labels) is degenerate
    )


def test_kappa_of_nothing_or_of_unequal_lists_is_an_error() -> None:
    for one, other in (([], []), ([True], [True, False])):
        with pytest.raises(ValueError, match="labels"):
            agreement.kappa(one, other)


def test_scores_snap_to_the_scale_and_halfway_goes_up() -> None:
    assert [agreement.snap(score) for score in (0, 0.14, 0.15, 0.4, 0.6, 0.85, 1)] == [0, 0, 0.3, 0.5, 0.7, 1.0, 1.0]


def test_classes_of_queries_and_precision() -> None:
    assert [golden.query_type("w " * words) for words in (10, 11, 29, 30)] == ["short", "medium", "medium", "long"]
    assert golden.precision_at_5([1, 2, 3, 4, 5, 6], [1, 5]) == 0.4 and golden.precision_at_5([1], [6]) == 0.0
    assert golden.precision_at_5([1, 2, 3, 4, 5, 6], [6]) == 0.0  # the sixth is not among the first five


def test_a_golden_set_may_lack_a_class_no_more_than_have_too_much_of_it() -> None:
    short, medium, long = ("w " * words for words in (5, 20, 30))
    assert golden.set_problem([short] * 40 + [medium] * 40 + [long] * 20) is None
    assert "20% ± 5% long queries; these have 10%" in str(
        golden.set_problem([short] * 45 + [medium] * 45 + [long] * 10)
    )
    assert "50 to 100" in str(golden.set_problem([short] * 49))


def test_words_in_the_querys_order_weigh_three_tenths() -> None:
    assert lexical_score("red fox", "the red fox", {}) == pytest.approx(1.0)
    assert lexical_score("red fox", "a fox that is red", {}) == pytest.approx(0.7 + 0.3 * 1 / 2)
    assert longest_run(["a", "b", "c"], ["b", "c", "a", "b"]) == 2


@pytest.mark.parametrize(
    ("baseline", "today", "detected"), [(0.80, 0.75, False), (0.80, 0.74, True), (0.82, 0.78, False)]
)
def test_drift_is_more_than_five_points_below_the_baseline(baseline: float, today: float, detected: bool) -> None:
    found = golden.drift(today, [baseline] * 3)
    assert found.detected is detected
    assert found.details == (
        f"Precision@5 dropped by {baseline - today:.2f} from baseline {baseline:.2f}" if detected else golden.NORMAL
    )
    assert golden.drift(today, [baseline] * 2).baseline is None and golden.drift(0.0, [0.9] * 2).detected is False


def test_a_reflection_of_the_form_is_not_warned_about_and_of_another_what_it_lacks_is_named() -> None:
    assert reflection_warnings("Problem: a. Lesson: b.") == []
    [line] = reflection_warnings("Problem: a.")
    assert line.startswith("The reflection has no Lesson:;")


def test_ids_have_at_most_53_bits() -> None:
    assert all(1 <= number_of("row", str(number)) < 2**53 for number in range(2000))


def test_bad_rows_are_refused_with_their_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    good = '{"query": "a", "session_id": "s", "expected_docs": [1]}'
    path.write_text(
        "\n".join([good, "{", '{"query": ""}', good, '{"query": "b", "session_id": "s", "expected_docs": ["x"]}'])
    )
    with pytest.raises(Refused) as caught:
        read_rows(path)
    assert all(
        part in caught.value.message
        for part in (
            "line 2: not JSON",
            "line 3: `query`",
            "line 4: the same query as line 1",
            "line 5: `expected_docs`",
        )
    )
    path.write_text(good)
    assert read_rows(path) == [(1, {"query": "a", "session_id": "s", "expected_docs": [1]})]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"query": " "}, "`query` must be a string"),
        ({"session_id": 7}, "`session_id` must be a string"),
        ({"expected_docs": []}, "`expected_docs` must be a list of ids"),
        ({"expected_docs": [True]}, "`expected_docs` must be a list of ids"),
        ({"expected_docs": [2**53]}, "`expected_docs` must be a list of ids"),
        ({"id": 0}, "`id` must be an integer from 1 to 2^53-1"),
        ({"metadata": []}, "`metadata` must be an object"),
        ({"note": ""}, "there is no field `note`"),
    ],
)
def test_a_row_with_a_wrong_field_is_refused_by_name(tmp_path: Path, changed: dict[str, Any], problem: str) -> None:
    path = tmp_path / "truth.jsonl"
    path.write_text(json.dumps({"query": "a", "session_id": "s", "expected_docs": [1], "id": 4, **changed}))
    with pytest.raises(Refused) as caught:
        read_rows(path)
    assert caught.value.message == f"truth.jsonl was not imported: line 1: {problem}."


def test_of_many_bad_rows_twenty_are_named_and_the_others_counted(tmp_path: Path) -> None:
    path = tmp_path / "truth.jsonl"
    path.write_text("[]\n\n" * 25)
    with pytest.raises(Refused) as caught:
        read_rows(path)
    assert caught.value.message.count("not a JSON object") == 20 and "line 39: " in caught.value.message
    assert caught.value.message.endswith("; and 5 more.")


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "truth.jsonl").write_text("\n \n")
    with pytest.raises(Refused, match=r"^truth\.jsonl has no rows: write one JSON object a line\.$"):
        read_rows(tmp_path / "truth.jsonl")
