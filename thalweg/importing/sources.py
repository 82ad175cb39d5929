"""Finds the files of an import and cuts them into units: lines, or a whole document."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import BinaryIO

import orjson

from processors.telemetry.formats.catalogue import Format
from streams.errors import Refused

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
CUT_LINE_BYTES = 1024 * 1024
SHOWN = 10
"""Names that a sentence gives at most."""
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Unit:
    """A line without its end (`size` counts that too), or a document of `lines` lines. Of one too long, the start."""

    number: int
    raw: bytes
    size: int
    lines: int = 1
    is_cut: bool = False


def find_files(form: Format, paths: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """The regular files to import, each once and sorted; and what was skipped.

    A file that is named is always imported, a file in a folder if it fits the format. Skipped in a folder are links,
    which may lead out of it, pipes, devices and sockets. Raises Refused for a path that does not exist, a named one
    that is neither file nor folder, and when there is nothing to import.
    """
    found: dict[Path, None] = {}
    skipped: list[str] = []
    searched = list(paths)
    for path in searched:
        if not path.exists():
            raise Refused(f"The path {path} does not exist.")
        named = path.resolve()  # the caller's own word, through a link too
        if named.is_dir():
            found.update(dict.fromkeys(_walk(form, named, skipped)))
        elif kind := _irregular(named.lstat().st_mode):
            raise Refused(f"The path {path} is {kind}; only regular files and folders are imported.")
        else:
            found[named] = None
    if not found:
        where = ", ".join(str(path) for path in searched) or "(none given)"
        left = f" Left out: {'; '.join(skipped[:SHOWN])}." if skipped else ""
        raise Refused(f"No {form.kind} file ({', '.join(form.patterns)}) was found under the path {where}.{left}")
    return list(found), skipped


def _walk(form: Format, folder: Path, skipped: list[str]) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        skipped += [
            f"{Path(place, name)}: {_KINDS[stat.S_IFLNK]}" for name in folders if Path(place, name).is_symlink()
        ]
        for name in sorted(names):
            if any(fnmatch(name, pattern) for pattern in form.patterns):
                path = Path(place, name)
                if kind := _irregular(path.lstat().st_mode):
                    skipped.append(f"{path}: {kind}")
                else:
                    yield path


def _irregular(mode: int) -> str | None:
    """What it is instead of a regular file."""
    return None if stat.S_ISREG(mode) else _KINDS.get(stat.S_IFMT(mode), "not a regular file")


def open_regular(path: Path) -> BinaryIO:
    """The file, to be read. Raises OSError for what is not a regular file by now: nothing is followed or waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if kind := _irregular(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, kind)
    return open(handle, "rb", buffering=256 * 1024)


def read_units(file: BinaryIO, *, documents: bool) -> Iterator[Unit]:
    """The lines of a file, or with `documents` the whole file as one unit.

    It is one unit if its first line alone is not JSON and the whole file is. Otherwise it is read by lines, so that
    only its bad lines are unreadable.
    """
    if documents and os.fstat(file.fileno()).st_size <= MAX_DOCUMENT_BYTES:
        start = file.readline(MAX_LINE_BYTES + 1)
        if not _is_json(start) and _is_json(whole := start + file.read()):
            yield Unit(1, whole, len(whole), lines=whole.count(b"\n") + (not whole.endswith(b"\n")))
            return
        file.seek(0)
    yield from _lines(file)


def _is_json(raw: bytes) -> bool:
    try:
        orjson.loads(raw.removeprefix(_BOM))
    except orjson.JSONDecodeError:
        return False
    return True


def _lines(file: BinaryIO) -> Iterator[Unit]:
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        size = len(line)
        if size <= MAX_LINE_BYTES or line.endswith(b"\n"):
            raw = line.rstrip(b"\r\n")
            yield Unit(number, raw.removeprefix(_BOM) if number == 1 else raw, size)
            continue
        kept = line[:CUT_LINE_BYTES]
        while not line.endswith(b"\n") and (line := file.readline(MAX_LINE_BYTES)):
            size += len(line)
        yield Unit(number, kept, size, is_cut=True)
