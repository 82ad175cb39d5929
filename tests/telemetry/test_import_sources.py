"""What an import reads: regular files inside the folder, and nothing that only looks like one."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from processors.telemetry.formats.catalogue import format_of
from streams.clock import SystemClock
from streams.errors import Refused
from tests.ingress.parts import opened_log
from thalweg.importing import importer as importing
from thalweg.importing.sources import find_files, open_regular

FORM = format_of("claude-code")
LINE = '{"type": "user", "sessionId": "s1", "uuid": "u1", "message": {"content": "Mend it."}}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One transcript, beside it all that is not one."""
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    (folder / "deep").mkdir(parents=True)
    outside.mkdir()
    for file in (folder / "a.jsonl", outside / "secret.jsonl"):
        file.write_text(LINE)
    (folder / "deep" / "inside.jsonl").symlink_to(folder / "a.jsonl")
    (folder / "deep" / "outside.jsonl").symlink_to(outside / "secret.jsonl")
    (folder / "dangling.jsonl").symlink_to(tmp_path / "nothing")
    (folder / "linked").symlink_to(outside)
    os.mkfifo(folder / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(folder / "socket.jsonl"))
    return folder


async def test_links_pipes_and_sockets_of_a_folder_are_named_and_skipped(folder: Path, tmp_path: Path) -> None:
    async with opened_log(tmp_path / "log.db") as log:
        report = await importing.import_files(log, "claude-code", [folder], namespace="ana", clock=SystemClock())
    assert (report.files, report.events, report.unreadable) == (1, 1, 0)
    assert sorted(report.skipped) == [
        f"{folder}/dangling.jsonl: a symbolic link",
        f"{folder}/deep/inside.jsonl: a symbolic link",
        f"{folder}/deep/outside.jsonl: a symbolic link",
        f"{folder}/linked: a symbolic link",
        f"{folder}/pipe.jsonl: a named pipe",
        f"{folder}/socket.jsonl: a socket",
    ]


@pytest.mark.parametrize(
    ("name", "kind"), [("pipe.jsonl", "a named pipe"), ("socket.jsonl", "a socket"), ("/dev/null", "a device")]
)
def test_named_itself_what_is_neither_file_nor_folder_is_refused(folder: Path, name: str, kind: str) -> None:
    with pytest.raises(Refused, match=f"is {kind}; only regular files and folders are imported"):
        find_files(FORM, [folder / name])


def test_named_itself_a_link_is_followed(folder: Path, tmp_path: Path) -> None:
    assert find_files(FORM, [folder / "deep" / "outside.jsonl"]) == ([tmp_path / "outside" / "secret.jsonl"], [])
    assert find_files(FORM, [folder / "linked"]) == ([tmp_path / "outside" / "secret.jsonl"], [])


def test_when_only_such_things_are_there_the_refusal_names_them(folder: Path) -> None:
    with pytest.raises(Refused, match=r"No claude-code file .* Left out: .*inside.jsonl: a symbolic link"):
        find_files(FORM, [folder / "deep"])


@pytest.mark.parametrize("exchanged", ["link", "pipe", "gone"])
async def test_a_file_that_is_exchanged_after_it_was_found_is_skipped_and_the_others_are_read(
    folder: Path, tmp_path: Path, exchanged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "b.jsonl").write_text(LINE.replace("u1", "u2"))
    victim = folder / "a.jsonl"

    def exchange(path: Path) -> object:
        if path == victim and not victim.is_symlink() and victim.is_file():
            victim.unlink()
            if exchanged == "link":
                victim.symlink_to(tmp_path / "outside" / "secret.jsonl")
            elif exchanged == "pipe":
                os.mkfifo(victim)
        return open_regular(path)

    monkeypatch.setattr(importing, "open_regular", exchange)
    async with opened_log(tmp_path / "log.db") as log:
        report = await importing.import_files(log, "claude-code", [folder], namespace="ana", clock=SystemClock())
    assert report.files == 1 and report.events == 1
    assert [skipped for skipped in report.skipped if skipped.startswith(f"{victim}: ")]
