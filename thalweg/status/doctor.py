"""`thalweg doctor` checks the installation and its surroundings, and names a remedy for each fault.

It changes nothing in the data directory: what a check has to write goes to a temporary directory.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import thalweg
from mcp_ingress.http import LOOPBACK
from storage.database import FILE_NAME, LOCK_NAME, lock_holder
from streams.errors import EmbedderUnavailable, LogUnavailable, NotRunning, SettingsError, ThalwegError
from streams.positions import Partition
from streams.topics import OTLP_TOPICS, TOPICS
from thalweg.control.requests import ask
from thalweg.paths import OTHERS, control_path, socket_path
from thalweg.process.http_door import TOKEN_FILE, http_token
from thalweg.settings import Settings
from thalweg.status.health import misplaced_sentence
from thalweg.terminal.topics import missing_otlp_topics

DISTRIBUTION = "thalweg"
PACKAGES = ("streams", "storage", "processors", "mcp_ingress", "thalweg")
OLDEST_PYTHON = (3, 11)
DUCKDB = ("2.0.", "duckdb>=2.0,<2.1")
MIN_FREE_BYTES = 1_000_000_000
MAX_AHEAD_S = 300.0
EPSILON = 1e-3
SAMPLE = b"The parser loses its place. " * 20


@dataclass(frozen=True)
class Check:
    """One finding: `detail` says what was seen, `remedy` what to do about it when it is not `ok`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


class Unsound(Exception):
    """What a check found wrong; the message is one sentence."""


def examine(settings: Settings) -> list[Check]:
    """All checks, in the order in which they depend on each other. Takes about two seconds with the default model."""
    looks: list[tuple[str, Callable[[], str], str]] = [
        ("python", _python, "Use Python 3.11 or newer."),
        ("packages", _packages, "Install thalweg into an environment of its own: `python3 dev.py setup` makes one."),
        ("pinned versions", _pins, "Install what requirements.lock says: `python3 dev.py setup`."),
        ("hnswlib", _hnswlib, "Install a C++ compiler (Debian: apt-get install g++), then reinstall hnswlib 0.8.0."),
        ("duckdb", _duckdb, f"Uninstall duckdb-extension packages, then install {DUCKDB[1]}."),
        ("keyword index", _tantivy, "Reinstall tantivy 0.27."),
        (
            "codecs",
            _codecs,
            "Install what requirements.lock says: `python3 dev.py setup`. Without them a node does not start on Kafka.",
        ),
        ("transport", _transport, "Reinstall thalweg: its entry points are out of date."),
        ("model", lambda: _model(settings), EmbedderUnavailable.remedy),
        ("data directory", lambda: _directory(settings.home), "Choose a directory of your own with THALWEG_HOME."),
        ("owner", lambda: _owner(settings.home), "End the process that is named, or choose another THALWEG_HOME."),
        ("space", lambda: _space(settings.home), "`thalweg reembed` says which spaces there are."),
        ("sockets", lambda: _sockets(settings.home), "Choose a shorter THALWEG_HOME."),
        ("http", lambda: _http(settings), SettingsError.remedy),
        ("log", lambda: _log(settings), LogUnavailable.remedy),
        (
            "producers",
            lambda: _producers(settings.home),
            "docs/producers.md has the setting for each client's language.",
        ),
        ("otlp topics", lambda: _otlp_topics(settings), "`thalweg topics create --otlp`"),
        ("clock", lambda: _clock(settings.home), "Set the system's clock."),
    ]
    return [_check(name, look, remedy) for name, look, remedy in looks]


def _check(name: str, look: Callable[[], str], remedy: str) -> Check:
    try:
        return Check(name, True, look())
    except Unsound as problem:
        return Check(name, False, str(problem), remedy)
    except ThalwegError as error:
        return Check(name, False, error.message, error.remedy if isinstance(error, SettingsError) else remedy)
    except Exception as error:  # any exception of a broken installation is what this check is for
        return Check(name, False, f"{type(error).__name__}: {error}", remedy)


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise Unsound(sentence)


# --- the installation


def _python() -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    _require(sys.version_info >= OLDEST_PYTHON, f"This is Python {version}.")
    return version


def _packages() -> str:
    """Whether the import packages are this distribution's.

    Their names are everyday words: another distribution may bring the same ones, and either may win.
    """
    owners = metadata.packages_distributions()
    root = Path(thalweg.__file__).parents[1]
    for name in PACKAGES:
        others = sorted({owner for owner in owners.get(name, []) if owner.lower() != DISTRIBUTION})
        _require(not others, f"The import package {name} is also brought by {', '.join(others)}.")
        _require(name in owners, f"No installed distribution says that it brings {name}.")
        spec = find_spec(name)
        found = Path(spec.origin).parents[1] if spec and spec.origin else None
        _require(found == root, f"The import package {name} comes from {found}, not from {root}.")
    return f"{', '.join(PACKAGES)} are {DISTRIBUTION} {metadata.version(DISTRIBUTION)}"


def _pins() -> str:
    """Requirements with an exact version: each has traps that were measured in that version."""
    pins = dict(_pinned(metadata.requires(DISTRIBUTION) or []))
    for name, wanted in pins.items():
        found = metadata.version(name)
        _require(found == wanted, f"{name} is {found}; thalweg works with {wanted} only.")
    return ", ".join(f"{name} {version}" for name, version in pins.items())


def _pinned(requirements: Sequence[str]) -> Iterator[tuple[str, str]]:
    for requirement in requirements:
        name, exact, version = requirement.partition("==")
        if exact and ";" not in requirement:
            yield name.partition("[")[0].strip(), version.strip()


def _hnswlib() -> str:
    import hnswlib

    index = hnswlib.Index("ip", 2)
    index.init_index(2)
    index.add_items(np.eye(2, dtype=np.float32), np.array([7, 8], np.uint64))
    labels, _ = index.knn_query(np.array([0.1, 0.9], np.float32), 1)
    _require(labels.tolist() == [[8]], "hnswlib imports, but does not find the nearest of two vectors.")
    return f"{metadata.version('hnswlib')}, compiled, finds the nearest"


def _duckdb() -> str:
    import duckdb

    extensions = sorted(name for name in _installed() if name.startswith("duckdb-extension"))
    _require(not extensions, f"{', '.join(extensions)} is installed, which brings a DuckDB of another version.")
    _require(duckdb.__version__.startswith(DUCKDB[0]), f"DuckDB is {duckdb.__version__}.")
    with duckdb.connect(":memory:") as connection:
        answer = connection.execute("SELECT '{\"a\": [1, 2]}'::VARIANT IS NOT NULL").fetchall()
    _require(answer == [(True,)], "DuckDB does not know VARIANT.")
    return f"{duckdb.__version__}, no extension packages"


def _installed() -> set[str]:
    return {str(found.metadata["Name"]).lower().replace("_", "-") for found in metadata.distributions()}


def _tantivy() -> str:
    from storage.search.words.keyword_index import KeywordIndex

    with tempfile.TemporaryDirectory() as directory:
        index = KeywordIndex(Path(directory))
        index.add([(1, "n", "a broken parser"), (2, "n", "a calm river")])
        index.commit()
        found = [label for label, _ in index.search("parser", "n", 2)]
        index.close()
    _require(found == [1], "tantivy imports, but does not find a word.")
    return f"tantivy {metadata.version('tantivy')} finds a word"


def _codecs() -> str:
    """A Kafka producer chooses how its records are compressed: a batch of each kind is written and read."""
    from aiokafka.record.default_records import DefaultRecordBatchBuilder
    from aiokafka.record.memory_records import MemoryRecords

    from streams.log.kafka_batches import CODECS

    failed = []
    for number, codec in enumerate(CODECS, 1):
        try:
            builder = DefaultRecordBatchBuilder(2, number, 0, -1, -1, -1, 1 << 16)
            builder.append(0, 0, b"key", SAMPLE, [])
            [record] = MemoryRecords(bytes(builder.build())).next_batch()
            is_same = record.value == SAMPLE
        except Exception:  # whatever a missing or broken library raises
            is_same = False
        failed += [] if is_same else [codec]
    _require(
        not failed,
        f"Records that a Kafka producer compresses with {', '.join(failed)} cannot be read "
        "(cramjam is missing or broken).",
    )
    return f"{', '.join(CODECS)} are read; cramjam {metadata.version('cramjam')}"


def _transport() -> str:
    """Faust reaches the embedded log through an entry point of this distribution."""
    found = [point for point in metadata.entry_points(group="faust.transports") if point.name == "sqlite"]
    values = sorted({point.value for point in found})
    _require(
        values == ["streams.sqlite_transport:Transport"],
        f"The Faust transport sqlite is {', '.join(values) or 'not registered'}.",
    )
    found[0].load()
    return f"sqlite:// is {values[0]}"


def _model(settings: Settings) -> str:
    """Files, checksums, the graph and one text: everything is made anew, so that no cache hides a damage."""
    from processors.embedding.model_files import find_model
    from thalweg.process.model import load_model

    path = Path(settings.model_path) if settings.model_path else None
    with tempfile.TemporaryDirectory() as cache:
        place = (
            f", in {find_model(Path(cache), path).weights.parent}, checksums right"
            if settings.embedder.startswith("minilm")
            else ""
        )
        embedder = load_model(settings, folder=Path(cache))
        if embedder is None:
            return "none is configured: search by keywords and relations only"
        [row] = embedder.encode(["The parser loses its place."])
    info = embedder.info
    sound = row.shape == (info.dim,) and bool(np.isfinite(row).all()) and abs(float(np.linalg.norm(row)) - 1) < EPSILON
    _require(sound, f"{info.model_id} does not give unit vectors of {info.dim} numbers.")
    return (
        f"{info.model_id}, {info.dim} dimensions, {'trained' if info.trained else 'untrained: no meaning in it'}{place}"
    )


# --- what it runs on


def _directory(home: Path) -> str:
    """Whether files can be made there, or where it will be made; and whether there is room."""
    there = next(place for place in (home, *home.parents) if place.exists())
    _require(there.is_dir(), f"{there} is a file.")
    if there == home:
        status = home.stat()
        _require(status.st_uid == os.geteuid(), f"{home} belongs to another user, with the id {status.st_uid}.")
        rights = stat.S_IMODE(status.st_mode)
        _require(
            not rights & OTHERS, f"{home} is open to other users ({rights:03o}); the next start of a node narrows it."
        )
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise Unsound(f"Nothing can be written to {there}: {error.strerror}.") from None
    free = shutil.disk_usage(there).free
    _require(
        free >= MIN_FREE_BYTES,
        f"{there} has {free / 1e9:.2f} GB left; {MIN_FREE_BYTES / 1e9:g} GB are needed at least.",
    )
    return f"{home}{'' if there == home else ' (to be made)'}, writable, {free / 1e9:.0f} GB free"


def _owner(home: Path) -> str:
    """Which process owns the store: none, or a node that answers.

    DuckDB's own files are left alone: opening them could drop its lock.
    """
    owner = lock_holder(home / LOCK_NAME)
    try:
        node = ask(home, "status", timeout_s=10.0)
    except NotRunning:
        _require(owner is None, f"The process {owner} owns the data directory, but no node answers there.")
        return "no node runs; " + ("the store is free" if (home / FILE_NAME).exists() else "there is no store yet")
    return f"a node runs (process {owner or 'unknown'}), {node['status']}"


def _space(home: Path) -> str:
    """Which model's vectors answer, and how far another's are; only a running node knows."""
    try:
        spaces = ask(home, "status", timeout_s=10.0)["spaces"]
    except NotRunning:
        return "no node runs"
    _require(not spaces["problem"], str(spaces["problem"]))
    building = spaces["building"]
    how_far = (
        f"; {building['space']} is being built, {building['done']} of {building['total']} texts" if building else ""
    )
    return f"{spaces['live'] or 'none'} answers{how_far}"


def _sockets(home: Path) -> str:
    paths = [socket_path(home), control_path(home)]
    for path in paths:
        if path.exists():
            mode = path.stat().st_mode & 0o777
            _require(mode & OTHERS == 0, f"{path} is open to other users ({mode:03o}).")
    return f"{paths[0]} for agents, {paths[1].name} for the command line"


def _http(settings: Settings) -> str:
    """Where it listens and where its clients find the token; none is made here."""
    if not settings.http:
        return "off"
    host, port = settings.http_address
    if (settings.home / TOKEN_FILE).exists() or settings.token:
        file = http_token(settings, host).file
        return f"port {port} of {host}, bearer token: {file or 'the setting `token`'}"
    _require(
        host in LOOPBACK, f"HTTP on {host} needs a bearer token: set `token` (THALWEG_TOKEN), or bind to 127.0.0.1."
    )
    return f"port {port} of {host}, bearer token: {settings.home / TOKEN_FILE}, made by the first start"


def _log(settings: Settings) -> str:
    path = Path(settings.broker_url.removeprefix("sqlite://"))
    if settings.broker_url.startswith("sqlite://") and not path.exists():
        return f"{path} will be made by the first start"
    counts = _partitions(settings.broker_url, [topic.name for topic in TOPICS])
    other = {name: count for name, count in counts.items() if count != settings.partitions}
    if other:
        name, count = min(other.items())
        raise Unsound(
            f"The topic {name} has {count} partitions, the setting says {settings.partitions}: "
            "it cannot be changed later."
        )
    topics = f"{len(counts)} topics of {settings.partitions} partitions" if counts else "no topics yet"
    return f"{settings.broker_url} answers; {topics}"


def _producers(home: Path) -> str:
    """Whether every producer puts its records on the partitions of their keys; only a running node knows."""
    try:
        found = ask(home, "status", timeout_s=10.0).get("misplaced", [])
    except NotRunning:
        return "no node runs"
    recent = [misplaced_sentence(producer) for producer in found if producer["is_recent"]]
    _require(not recent, "; ".join(recent) + ".")
    former = ", ".join(f"{producer['records']} records of {producer['source']}" for producer in found)
    return (
        f"{former} lie on other partitions than their keys', none of them new"
        if former
        else "every record lies where its key belongs"
    )


def _otlp_topics(settings: Settings) -> str:
    if not settings.otlp_topics:
        return "not read (THALWEG_OTLP_TOPICS is not set)"
    absent = missing_otlp_topics(_partitions(settings.broker_url, OTLP_TOPICS))
    _require(absent is None, f"{absent}.")
    return f"{', '.join(OTLP_TOPICS)} are there"


def _partitions(broker: str, topics: Sequence[str]) -> Mapping[str, int]:
    """How many partitions each of these topics has; those that do not exist are left out."""
    if broker.startswith("kafka://"):
        return Counter(at.topic for at in asyncio.run(_kafka_ends(broker, topics)))
    connection = sqlite3.connect(
        f"{Path(broker.removeprefix('sqlite://')).absolute().as_uri()}?mode=ro", uri=True, timeout=5.0
    )
    try:  # read without writing: a log of another process is not touched
        found = dict(connection.execute("SELECT topic, count(*) FROM partitions GROUP BY topic").fetchall())
    finally:
        connection.close()
    return {topic: found[topic] for topic in topics if topic in found}


async def _kafka_ends(broker: str, topics: Sequence[str]) -> Iterable[Partition]:
    from streams.log import open_log

    log = open_log(broker)
    await log.start()
    try:
        return await log.end_offsets(topics)
    finally:
        await log.stop()


def _clock(home: Path) -> str:
    """Whether the clock is later than this program's files and the stored ones.

    Ids and times come from it.
    """
    now = time.time()
    known = [path for path in (Path(__file__), home / "log.db", home / "log.db-wal", home / FILE_NAME) if path.exists()]
    ahead, newest = max((path.stat().st_mtime - now, path.name) for path in known)
    _require(
        ahead <= MAX_AHEAD_S,
        f"It says {time.strftime('%Y-%m-%d %H:%M', time.gmtime(now))} UTC, "
        f"but {newest} was written {ahead:.0f} s later.",
    )
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
