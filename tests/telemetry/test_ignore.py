"""What an ignore list names is never captured: by no import, by no hook; and what was left out is counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from streams.errors import Refused
from tests.telemetry.test_claude_code import entry
from tests.telemetry.test_importing import imported, lines, on
from thalweg.importing.ignore import NAME, IgnoreLists, switch_off, switch_on


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def listed(folder: Path, *globs: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_text("\n".join(globs) + "\n", encoding="utf-8")


def test_a_list_in_the_data_directory_leaves_out_folders_with_all_in_them(home: Path) -> None:
    listed(home, "# not these", "", "/src/secret", "*/customers/*", "~/private")
    lists = IgnoreLists(home)
    left_out = ("/src/secret", "/src/secret/deep/er", "/x/customers/acme", os.path.expanduser("~/private/notes"))
    for path in left_out:
        assert lists.reason(path) is not None, path
    assert "leaves out /src/secret" in str(lists.reason("/src/secret"))
    for path in ("/src", "/src/secrets", "/x/customers", "relative", "", "\0", "C:\\src"):
        assert lists.reason(path) is None, path


def test_a_list_in_a_project_speaks_of_that_folder_alone(home: Path, tmp_path: Path) -> None:
    quiet, partly = tmp_path / "quiet", tmp_path / "partly"
    listed(quiet, ".")
    listed(partly, "keys", "drafts-*")
    lists = IgnoreLists(home)
    assert lists.reason(str(quiet)) is not None and lists.reason(str(quiet / "src" / "x")) is not None
    assert lists.reason(str(partly / "keys" / "a")) is not None and lists.reason(str(partly / "drafts-1")) is not None
    assert lists.reason(str(partly)) is None and lists.reason(str(tmp_path)) is None


def test_a_list_that_cannot_be_read_leaves_out_all_that_it_may_speak_of(home: Path, tmp_path: Path) -> None:
    (tmp_path / "project" / NAME).mkdir(parents=True)
    assert IgnoreLists(home).reason(str(tmp_path / "project" / "src")) is not None
    assert IgnoreLists(home).reason(str(tmp_path)) is None


def test_off_and_on_write_the_list_of_the_data_directory_and_say_what_they_did(home: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a [b] *"
    assert "no longer captured" in switch_off(home, odd)
    assert "already" in switch_off(home, odd)
    assert IgnoreLists(home).reason(str(odd / "src")) is not None
    assert IgnoreLists(home).reason(str(tmp_path / "a b c")) is None
    assert switch_on(home, odd) == f"Sessions in {odd} are captured again."
    assert switch_on(home, odd) == f"Sessions in {odd} are captured already."
    assert IgnoreLists(home).reason(str(odd)) is None
    listed(tmp_path, ".")
    with pytest.raises(Refused, match=r"still not captured.*change that list"):
        switch_on(home, odd)


def session(name: str, folder: str, **more: Any) -> dict[str, Any]:
    return entry(uuid=f"{name}-{folder}", content=f"What lies in {folder}?") | {"sessionId": name, "cwd": folder} | more


def test_an_import_leaves_out_transcripts_and_lines_of_ignored_folders_and_counts_them(
    home: Path, tmp_path: Path
) -> None:
    listed(home, "/src/secret", str(tmp_path / "files" / "private"))
    summary = {"type": "summary", "summary": "A secret.", "leafUuid": "a-/src/secret"}
    lines(tmp_path / "files" / "a.jsonl", summary, session("a", "/src/secret"), session("a", "/src/open"))
    lines(tmp_path / "files" / "b.jsonl", session("b", "/src/open"), session("b", "/src/secret/keys"))
    lines(tmp_path / "files" / "private" / "c.jsonl", session("c", "/src/open"), {"broken": True})
    report, records = imported(tmp_path, "claude-code", tmp_path / "files", ignore_reason=IgnoreLists(home).reason)
    assert (report.files, report.events, report.ignored_files, report.ignored_lines) == (1, 1, 2, 1)
    assert [Path(skipped.split(":")[0]).name for skipped in sorted(report.skipped)] == ["a.jsonl", "c.jsonl"]
    assert report.unreadable == 0
    published = b"".join(record.value or b"" for record in records)
    assert b"What lies in /src/open?" in published and b"secret" not in published
    assert len(on("thalweg.telemetry.v1", records)) == 1
