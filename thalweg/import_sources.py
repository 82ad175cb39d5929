"""Finds the files of an import and cuts them into the units that a reader takes: lines, or a whole document."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import BinaryIO

import orjson

from processors.telemetry.formats import Format
from streams.errors import Refused

MAX_LINE_BYTES = 8 * 1024 * 1024
MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
KEPT_OF_TOO_LONG = 1024 * 1024
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Unit:
    """A line without its end (`size` counts that too), or a document of `lines` lines; of one too long, the start."""

    number: int
    raw: bytes
    size: int
    lines: int = 1
    is_cut: bool = False


def find_files(form: Format, paths: Iterable[Path]) -> list[Path]:
    """The files to import, each once: a named file whatever its name, of a folder those that fit the format, sorted."""
    found: dict[Path, Path] = {}
    searched = list(paths)
    for path in searched:
        if not path.exists():
            raise Refused(f"The path {path} does not exist.")
        for file in _walk(form, path) if path.is_dir() else [path]:
            found.setdefault(file.resolve(), file)
    if not found:
        where = ", ".join(str(path) for path in searched) or "(none given)"
        raise Refused(f"No {form.kind} file ({', '.join(form.patterns)}) was found under the path {where}.")
    return list(found.values())


def _walk(form: Format, folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(place, name) for name in sorted(names) if any(fnmatch(name, pattern) for pattern in form.patterns))


def read_units(path: Path, *, documents: bool) -> Iterator[Unit]:
    """The lines of a file; where `documents` are possible and the first line is no JSON by itself, the file as one unit.

    A file that is no JSON as a whole either is read by lines after all, so that only its bad lines are unreadable.
    """
    with path.open("rb", buffering=256 * 1024) as file:
        if documents and path.stat().st_size <= MAX_DOCUMENT_BYTES:
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
        kept = line[:KEPT_OF_TOO_LONG]
        while not line.endswith(b"\n") and (line := file.readline(MAX_LINE_BYTES)):
            size += len(line)
        yield Unit(number, kept, size, is_cut=True)
