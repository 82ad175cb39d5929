"""A full disk is recognised from whatever says so, and the room that is left is told before it is used up."""

from __future__ import annotations

import errno
import shutil
from collections import namedtuple
from pathlib import Path

import duckdb
import pytest

from storage.disk import LOW_BYTES, is_full, low_sentence
from storage.search.files.hard_links import Copy, HardLink, link


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "x"), True),
        (OSError(errno.EDQUOT, "x"), True),
        (OSError(errno.EACCES, "x"), False),
        (duckdb.IOException("Could not write file: No space left on device"), True),
        (RuntimeError("database or disk is full"), True),
        (duckdb.IOException("Could not read file"), False),
    ],
)
def test_a_full_disk_is_known_by_its_number_or_by_the_words_of_an_engine(error: Exception, expected: bool) -> None:
    assert is_full(error) is expected
    outer = RuntimeError("the write failed")
    outer.__cause__ = error
    assert is_full(outer) is expected


def test_little_room_is_a_sentence_with_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(LOW_BYTES))
    assert low_sentence(tmp_path) is None
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(LOW_BYTES - 1))
    assert "(16383 KiB left): writes are refused until there is room" in str(low_sentence(tmp_path))


def test_of_a_directory_that_is_not_there_no_room_is_told(tmp_path: Path) -> None:
    assert low_sentence(tmp_path / "gone") is None


def test_where_the_file_system_has_no_hard_links_a_file_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "segment"
    source.write_bytes(b"words")
    HardLink(source)(tmp_path / "linked")
    assert (tmp_path / "linked").samefile(source)

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no hard links here")

    monkeypatch.setattr("os.link", refuse)
    link(source, tmp_path / "copied")
    assert (tmp_path / "copied").read_bytes() == b"words" and not (tmp_path / "copied").samefile(source)


def test_a_segment_that_is_gone_or_a_list_of_segments_that_has_changed_ends_the_copy(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        link(tmp_path / "gone", tmp_path / "copy")
    listed = tmp_path / "meta.json"
    listed.write_bytes(b"two segments")
    with pytest.raises(FileNotFoundError):
        Copy(listed, b"one segment")(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    Copy(listed, b"two segments")(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"two segments"
