"""Which sessions are never captured: lists in projects and in the data directory say it.

A list is a file `.thalwegignore`: in a project or a folder above it, or in the data directory. A line is a glob
(`fnmatch`: `*` stands for any characters, `/` too) of a path, or of a folder with all that is in it. It is taken from
the folder of its list, unless it begins with `/`, `~` or `*`. `#` begins a comment. A list that cannot be read leaves
out all that it may speak of: what was meant to stay outside does.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from streams.errors import Refused

NAME = ".thalwegignore"
HEAD = "# Sessions in these folders, and these transcripts, are never captured: `thalweg hook --off` and `--on`.\n"


class IgnoreLists:
    """The lists that speak of a path. Each is read once: make a new one for each import and each hook."""

    def __init__(self, home: Path) -> None:
        """`home`: the data directory."""
        self._home = home
        self._globs: dict[Path, list[str]] = {}
        self._reasons: dict[str, str | None] = {}

    def reason(self, path: str) -> str | None:
        """Why what belongs to this path (a working directory, a transcript) is left out; None where it is not."""
        if path not in self._reasons:
            self._reasons[path] = self._find_reason(path)
        return self._reasons[path]

    def _find_reason(self, path: str) -> str | None:
        place = os.path.normpath(path)
        for folder in self._folders(place):
            for glob in self._read(folder):
                if any(fnmatchcase(str(each), glob) for each in (PurePath(place), *PurePath(place).parents)):
                    return f"{folder / NAME} leaves out {glob}"
        return None

    def _folders(self, place: str) -> Iterator[Path]:
        yield self._home
        if os.path.isabs(place) and "\0" not in place:
            yield from (Path(place), *Path(place).parents)

    def _read(self, folder: Path) -> list[str]:
        if folder not in self._globs:
            self._globs[folder] = globs_of(folder)
        return self._globs[folder]


def globs_of(folder: Path) -> list[str]:
    """The globs of a folder's list, absolute; none where there is no list."""
    try:
        lines = (folder / NAME).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return ["*"]
    meant = [line.strip() for line in lines]
    return [_absolute(folder, line) for line in meant if line and not line.startswith("#")]


def _absolute(folder: Path, line: str) -> str:
    if line.startswith("*"):
        return line
    return os.path.normpath(folder / os.path.expanduser(line))


def switch_off(home: Path, folder: Path) -> str:
    """Put a folder on the list of the data directory; what was done, as a sentence."""
    if (reason := IgnoreLists(home).reason(str(folder))) is not None:
        return f"Sessions in {folder} are not captured already: {reason}."
    known = _lines(home)
    _write(home, [*(known or [HEAD.rstrip("\n")]), _escaped(folder)])
    return f"Sessions in {folder} are no longer captured: {home / NAME} has it. What was captured before stays."


def switch_on(home: Path, folder: Path) -> str:
    """Take a folder off the list of the data directory; what was done.

    Raises Refused where another line leaves it out.
    """
    known = _lines(home)
    left = [line for line in known if line.strip() not in (_escaped(folder), str(folder))]
    if left != known:
        _write(home, left)
    if (reason := IgnoreLists(home).reason(str(folder))) is not None:
        raise Refused(f"Sessions in {folder} are still not captured: {reason}; change that list.")
    return f"Sessions in {folder} are captured{' again' if left != known else ' already'}."


def _escaped(folder: Path) -> str:
    """The folder as a glob that means nothing else."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in str(folder))


def _lines(home: Path) -> list[str]:
    try:
        return (home / NAME).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return []


def _write(home: Path, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    (home / NAME).write_text(text, encoding="utf-8", errors="surrogateescape")
