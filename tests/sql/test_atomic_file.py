"""Files that appear whole or not at all, in folders in which others write too."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.atomic_file import SUFFIX, atomic_file, remove_left_overs


@pytest.fixture(autouse=True)
def wide_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_file_appears_when_the_block_ends_and_replaces_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    with atomic_file(target) as file:
        file.write(b"new")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new" and list(tmp_path.iterdir()) == [target]


def test_a_block_that_raises_leaves_all_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"old")
    with pytest.raises(OSError, match="full"), atomic_file(target) as file:
        file.write(b"new")
        raise OSError("full")
    assert target.read_bytes() == b"old" and list(tmp_path.iterdir()) == [target]


def test_until_then_it_lies_under_another_name_each_time_and_is_its_owners_alone(tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        with atomic_file(tmp_path / "target"):
            [partial] = [path for path in tmp_path.iterdir() if path.name != "target"]
            assert stat.S_IMODE(partial.stat().st_mode) == 0o600
            names.add(partial.name)
    assert len(names) == 3
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o600


def test_what_somebody_laid_at_the_name_is_neither_followed_nor_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "_get_candidate_names", lambda: iter(["link", "file", "free"]))
    victim, target = tmp_path / "victim", tmp_path / "target"
    victim.write_bytes(b"theirs")
    (tmp_path / f".target.link{SUFFIX}").symlink_to(victim)
    (tmp_path / f".target.file{SUFFIX}").write_bytes(b"ready to be written to")
    with atomic_file(target) as file:
        file.write(b"ours")
    assert victim.read_bytes() == b"theirs" and target.read_bytes() == b"ours"
    assert (tmp_path / f".target.file{SUFFIX}").read_bytes() == b"ready to be written to"


def test_a_link_at_the_target_is_replaced_and_not_followed(tmp_path: Path) -> None:
    victim, target = tmp_path / "victim", tmp_path / "target"
    victim.write_bytes(b"theirs")
    target.symlink_to(victim)
    with atomic_file(target) as file:
        file.write(b"ours")
    assert victim.read_bytes() == b"theirs" and target.read_bytes() == b"ours" and not target.is_symlink()


def test_left_overs_are_removed_below_a_folder_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    kept = [tmp_path / "target", tmp_path / ".target.tmp", tmp_path / "deep" / f"target{SUFFIX}"]
    for path in (*kept, tmp_path / f".target.a{SUFFIX}", tmp_path / "deep" / f".target.b{SUFFIX}"):
        path.touch()
    remove_left_overs(tmp_path)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(kept)
