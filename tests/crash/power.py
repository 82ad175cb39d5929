"""What is on disk if the power fails now: only what was synced, and of the rest whatever the disk had come to.

`tests/crash/power.c`, preloaded into a process, keeps a journal of its file operations and of its syncs. From that
journal each moment of one run can be cut: nobody has to be killed. The model is as strict as POSIX: a name is on disk
once its directory is synced, bytes once their file is. Metadata are written in order within a directory; bytes in any
order, torn at pages. Code that calls the system without libc passes by the journal: compare `Disk.now` with what is
there before you rely on a file.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_HEAD = struct.Struct("<cxxxIQQqII")
PAGE = 4096


class Entry(NamedTuple):
    """One operation of the journal; `kind` is the letter that power.c gives it, `k` for a mark of the test's own."""

    kind: str
    directory: int
    inode: int
    number: int
    name: str
    data: bytes


@dataclass
class Content:
    """A file: what is synced, what was done to it since, and whether it was also written where nobody sees it."""

    synced: bytearray = field(default_factory=bytearray)
    since: list[Entry] = field(default_factory=list)
    is_mapped: bool = False

    def sync(self) -> None:
        self.synced = bytearray(self.now())
        self.since.clear()

    def now(self) -> bytes:
        left = bytearray(self.synced)
        for entry in self.since:
            _apply(left, entry)
        return bytes(left)

    def after_cut(self, chance: random.Random | None) -> bytes:
        """What was synced, and with a `chance` any part of the rest."""
        left = bytearray(self.synced)
        for entry in self.since if chance is not None else ():
            for piece in _pieces(entry, chance):
                _apply(left, piece)
        return bytes(left)


@dataclass
class Names:
    """A directory: the names that are synced, and what was done to them since, in order.

    None is a name that was removed.
    """

    synced: dict[str, Node] = field(default_factory=dict)
    since: list[tuple[str, Node | None]] = field(default_factory=list)

    def sync(self) -> None:
        self.synced = self._first(len(self.since))
        self.since.clear()

    def after_cut(self, chance: random.Random | None) -> dict[str, Node]:
        """The names that were synced, and with a `chance` the first of the later changes."""
        return self._first(0 if chance is None else chance.randint(0, len(self.since)))

    def now(self) -> dict[str, Node]:
        return self._first(len(self.since))

    def _first(self, count: int) -> dict[str, Node]:
        names = dict(self.synced)
        for name, node in self.since[:count]:
            if node is None:
                names.pop(name, None)
            else:
                names[name] = node
        return names


Node = Content | Names


def _apply(content: bytearray, entry: Entry) -> None:
    if entry.kind == "t":
        del content[entry.number :]
        content.extend(bytes(entry.number - len(content)))
    else:
        content.extend(bytes(max(0, entry.number - len(content))))
        content[entry.number : entry.number + len(entry.data)] = entry.data


def _pieces(entry: Entry, chance: random.Random) -> Iterator[Entry]:
    """What the disk had come to of one operation: all of it, nothing, or some of its pages."""
    fate = chance.random()
    if fate < 0.4 or (entry.kind == "t" and fate < 0.6):
        yield entry
    elif fate < 0.7 and entry.kind == "w":
        for start in range(-(entry.number % PAGE), len(entry.data), PAGE):
            if chance.random() < 0.5:
                first = max(0, start)
                yield entry._replace(number=entry.number + first, data=entry.data[first : start + PAGE])


class Disk:
    """What the journal says so far. `root` is on disk from the beginning, and empty."""

    def __init__(self, root: Path) -> None:
        self._root = Names()
        self._nodes: dict[int, Node] = {root.stat().st_ino: self._root}

    def take(self, entry: Entry) -> None:
        """One more operation has happened."""
        if entry.kind in "cd":  # an inode's number may have been another file's
            self._nodes[entry.inode] = Names() if entry.kind == "d" else Content()
        node = self._nodes.get(entry.inode)
        if entry.kind in "ur":
            self._name(entry.directory, entry.name, None)
        if entry.kind in "cdl" and node is not None:
            self._name(entry.directory, entry.name, node)
        elif entry.kind == "r" and node is not None:
            self._name(entry.number, entry.data.decode(), node)
        elif entry.kind == "s" and node is not None:
            node.sync()
        elif isinstance(node, Content) and entry.kind in "wt":
            node.since.append(entry)
        elif isinstance(node, Content) and entry.kind == "m":
            node.is_mapped = True

    def _name(self, directory: int, name: str, node: Node | None) -> None:
        names = self._nodes.get(directory)
        if isinstance(names, Names):
            names.since.append((name, node))

    def cut(self, at: Path, chance: random.Random | None = None) -> Path:
        """Lay out under `at`, which must not exist, what is left when the power fails now.

        With a `chance` also some of what is not synced.
        """
        _lay_out(self._root, at, chance)
        return at

    def now(self) -> dict[str, bytes]:
        """Each file's path below the root and contents if the power stays on, but for those that are written through a
        mapping.
        """
        return dict(_contents(self._root, Path()))


def _lay_out(names: Names, at: Path, chance: random.Random | None) -> None:
    at.mkdir(mode=0o700)
    for name, node in names.after_cut(chance).items():
        if isinstance(node, Names):
            _lay_out(node, at / name, chance)
        else:
            (at / name).write_bytes(node.after_cut(chance))


def _contents(names: Names, at: Path) -> Iterator[tuple[str, bytes]]:
    for name, node in names.now().items():
        if isinstance(node, Names):
            yield from _contents(node, at / name)
        elif not node.is_mapped:
            yield str(at / name), node.now()


class Power:
    """The journal of what the processes that are started with `env` do below `root`, an empty directory that it
    makes."""

    def __init__(self, at: Path) -> None:
        self.root, self._journal = Path(os.path.realpath(at)) / "powered", Path(os.path.realpath(at)) / "journal"
        self.root.mkdir()
        self._journal.touch()
        library = at / "power.so"
        source = Path(__file__).with_suffix(".c")
        compiler = next(name for name in ("cc", "gcc", "clang", "g++", "clang++") if shutil.which(name))
        subprocess.run(
            [compiler, "-xc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-lpthread"], check=True
        )
        self.env = {
            "LD_PRELOAD": str(library),
            "THALWEG_POWER_ROOT": str(self.root),
            "THALWEG_POWER_JOURNAL": str(self._journal),
        }

    def mark(self, name: str) -> None:
        """Note in the journal that something was answered: what that promises must survive every cut from here on."""
        mark(self._journal, name)

    def entries(self) -> Iterator[Entry]:
        """All that happened, in order."""
        with self._journal.open("rb") as journal:
            while head := journal.read(_HEAD.size):
                kind, _, directory, inode, number, name_length, data_length = _HEAD.unpack(head)
                name, data = journal.read(name_length).decode(), journal.read(data_length)
                yield Entry(kind.decode(), directory, inode, number, name, data)


def mark(journal: Path, name: str) -> None:
    """Append a mark to a journal that other processes append to at the same time."""
    raw = name.encode()
    handle = os.open(journal, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(handle, _HEAD.pack(b"k", os.getpid(), 0, 0, 0, len(raw), 0) + raw)
    finally:
        os.close(handle)
