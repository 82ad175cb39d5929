"""The kept mutants fit the program, and the command tells one that is seen from one that survives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.__main__ import verdict
from tests.mutants.catalogue import ROOT, Mutant, StaleMutant, chosen_from, kept_mutants

PROGRAM = "def doubled(number):\n    return 2 * number\n"
TEST = "from program import doubled\n\n\ndef test_doubled():\n    assert doubled(2) == 4\n"


def mutant(line: str = "return 2 * number", becomes: str = "return 3 * number") -> Mutant:
    return Mutant("here", "program.py", line, becomes, ("test_program.py",))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "test_program.py").write_text(TEST)
    return tmp_path


def test_at_least_150_mutants_are_kept_and_each_fits_the_line_that_it_changes() -> None:
    kept = kept_mutants()
    assert len(kept) >= 150 and len(set(kept)) == len(kept)
    for each in kept:
        text = (ROOT / each.file).read_text()
        assert each.applied_to(text) != text
        assert each.tests and all((ROOT / test.partition("::")[0]).exists() for test in each.tests), each


@pytest.mark.process
def test_a_mutant_that_its_tests_see_is_told_from_one_that_survives_and_the_line_is_put_back(tree: Path) -> None:
    assert verdict(tree, mutant()) is None
    assert verdict(tree, mutant(becomes="return number + number")) == "survived"
    broken = verdict(
        tree, Mutant("here", "program.py", "return 2 * number", "return 2 * number)", ("test_program.py",))
    )
    assert broken is not None and broken.startswith("did not run"), (
        "a line that cannot be read says nothing of the tests"
    )
    assert (tree / "program.py").read_text() == PROGRAM


@pytest.mark.parametrize("line", ["return number", "def doubled(number):\n"])
def test_a_mutant_whose_line_is_gone_says_so(line: str) -> None:
    with pytest.raises(StaleMutant, match="stands 0 times"):
        mutant(line).applied_to(PROGRAM)
    with pytest.raises(StaleMutant, match="stands 2 times"):
        mutant().applied_to(PROGRAM + PROGRAM)
    with pytest.raises(StaleMutant, match="is not changed"):
        mutant(becomes="return 2 * number").applied_to(PROGRAM)


def test_words_choose_by_domain_and_by_file() -> None:
    kept = kept_mutants()
    assert {each.domain for each in chosen_from(kept, ["valence"])} >= {"valence"}
    assert {each.file for each in chosen_from(kept, ["streams/codec.py"])} == {"streams/codec.py"}
    assert chosen_from(kept, []) == kept and chosen_from(kept, ["no-such-place"]) == []
