"""A sealed directory: index files and a manifest that proves they are whole. Anything else reads as absent.

    write each file under a new name, fsync → manifest.json (atomically) → delete what it does not name

A file of a snapshot that the directory has already stays under its name, and is neither synced nor read again. The
rename is the only moment at which the directory changes meaning; a crash before it leaves the old content valid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from storage.atomic_file import atomic_file
from storage.search.files.hard_links import HardLink, SnapshotFile
from streams.failpoints import hit
from streams.files import sync

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Sealed:
    """What was sealed: file paths by logical name, and the facts that were stored with them."""

    files: Mapping[str, Path]
    facts: Mapping[str, Any]


def seal(directory: Path, writers: Mapping[str, Callable[[Path], None]], facts: Mapping[str, Any]) -> None:
    """Write every file by its writer (given the path to write) and make them the directory's content.

    An OSError (disk full) passes through; the former content stays valid.
    """
    directory.mkdir(parents=True, exist_ok=True)
    generation, former = _generation(directory) + 1, _part(directory, "files") or {}
    entries: dict[str, dict[str, Any]] = {}
    for name, write in writers.items():
        if name in former and isinstance(write, SnapshotFile) and write.is_at(directory / former[name]["file"]):
            entries[name] = former[name]
            continue
        path = directory / f"{generation}-{name}"
        path.unlink(missing_ok=True)
        write(path)
        hit("mid_index_save")
        if not (isinstance(write, HardLink) and write.is_at(path)):  # the source of a link is on disk
            sync(path)
        entries[name] = {"file": path.name, "bytes": path.stat().st_size, "sha256": _sha256(path)}
    body = orjson.dumps(
        {"format": FORMAT, "generation": generation, "facts": dict(facts), "files": entries},
        option=orjson.OPT_SORT_KEYS,
    )
    with atomic_file(directory / MANIFEST) as manifest:
        manifest.write(orjson.dumps({"sha256": hashlib.sha256(body).hexdigest(), "body": body.decode()}))
    hit("after_rename")
    _delete_others(directory, {entry["file"] for entry in entries.values()} | {MANIFEST})


def open_sealed(directory: Path) -> Sealed | None:
    """The content, when the manifest is whole and every file is exactly what was sealed; else None. Never raises."""
    try:
        manifest = _manifest(directory)
        files = {}
        for name, entry in manifest["files"].items():
            path = directory / entry["file"]
            if path.stat().st_size != entry["bytes"] or _sha256(path) != entry["sha256"]:
                return None
            files[name] = path
        return Sealed(files, manifest["facts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def sealed_facts(directory: Path) -> Mapping[str, Any] | None:
    """The facts alone, without looking into the files; None without a whole manifest."""
    return _part(directory, "facts")


def is_ahead(directory: Path, positions: Mapping[str, int]) -> bool:
    """Whether the content covers more than these positions (`facts["covered"]`).

    If it does, it belongs to another table.
    """
    facts = sealed_facts(directory) or {}
    return any(offset > positions.get(at, 0) for at, offset in facts.get("covered", {}).items())


def _manifest(directory: Path) -> dict[str, Any]:
    envelope = orjson.loads((directory / MANIFEST).read_bytes())
    body = envelope["body"].encode()
    if hashlib.sha256(body).hexdigest() != envelope["sha256"]:
        raise ValueError("the manifest is damaged")
    manifest: dict[str, Any] = orjson.loads(body)
    if manifest["format"] != FORMAT:
        raise ValueError("another format")
    return manifest


def _part(directory: Path, name: str) -> dict[str, Any] | None:
    """A part of the manifest; None without a whole one."""
    try:
        part: dict[str, Any] = _manifest(directory)[name]
        return part
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _generation(directory: Path) -> int:
    """The highest number that any file bears, so that a half-written file is never taken for a new one."""
    numbers = [path.name.split("-", 1)[0] for path in directory.iterdir()]
    return max((int(number) for number in numbers if number.isdecimal()), default=0)


def _delete_others(directory: Path, kept: set[str]) -> None:
    for path in directory.iterdir():
        if path.is_file() and path.name not in kept:
            path.unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
