"""The data directory is its owner's alone: made so, narrowed with a sentence, or refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.atomic_file import SUFFIX
from streams.errors import SettingsError
from thalweg.paths import make_home
from thalweg.process import housekeeping


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_home_is_made_for_its_owner_alone_and_nothing_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_home(tmp_path / "home")
    assert rights(tmp_path / "home") == 0o700
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_a_home_that_others_may_open_is_narrowed_with_a_sentence(
    mode: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(mode)
    make_home(home)
    assert rights(home) == 0o700
    said = f"thalweg: The data directory {home} was open to other users ({mode:03o}); it is yours alone now (700).\n"
    assert capsys.readouterr().err == said
    make_home(home)
    assert capsys.readouterr().err == ""


def test_somebody_elses_home_is_refused_and_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr("thalweg.paths.os.geteuid", lambda: os.getuid() + 1)
    with pytest.raises(SettingsError, match=r"belongs to another user, with the id .* choose another with --home"):
        make_home(tmp_path)
    assert rights(tmp_path) == 0o755


def test_a_home_that_cannot_be_narrowed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", lambda path, mode: None)
    with pytest.raises(SettingsError, match="other users may open it, and its file system keeps no rights"):
        make_home(tmp_path)


def test_files_that_an_earlier_version_left_open_are_narrowed_and_others_are_left_alone(tmp_path: Path) -> None:
    theirs = [tmp_path / "notes.txt", tmp_path / "elsewhere.txt"]
    ours = [
        tmp_path / name
        for name in ("log.db", "log.db-wal", "thalweg.duckdb", "thalweg.duckdb.wal", "node.log", "spool", "token")
    ]
    folders = [tmp_path / "indexes", tmp_path / "indexes" / "deep", tmp_path / "snapshots"]
    log = tmp_path / "logs" / "agents.db"
    for folder in (*folders, log.parent):
        folder.mkdir()
    ours += [tmp_path / "indexes" / "deep" / "1-graph", tmp_path / "snapshots" / "analysts.duckdb", log]
    for file in (*ours, *theirs):
        file.touch()
    (tmp_path / "snapshots" / "link").symlink_to(theirs[1])
    housekeeping.narrow(tmp_path, f"sqlite://{log}")
    assert {rights(path) for path in ours} == {0o600} and {rights(path) for path in folders} == {0o700}
    assert {rights(path) for path in theirs} == {0o644}


def test_what_a_killed_process_left_half_written_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    left, kept = (
        [tmp_path / f".token.x{SUFFIX}", tmp_path / "models" / f".graph.x{SUFFIX}"],
        [tmp_path / f".mine.x{SUFFIX}"],
    )
    for file in (*left, *kept):
        file.touch()
    housekeeping.clear(tmp_path)
    assert not any(file.exists() for file in left) and all(file.exists() for file in kept)
