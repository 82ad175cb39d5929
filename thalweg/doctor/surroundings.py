"""Checks of what thalweg runs on: data directory, node, sockets, log, producers and clock."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mcp_ingress.catalogue import Catalogues
from mcp_ingress.http import LOOPBACK
from mcp_ingress.inventory import find_tools
from mcp_ingress.resource import find_resources
from storage.database import FILE_NAME
from storage.directory_lock import LOCK_NAME, lock_holder
from streams.clock import SystemClock, format_time
from streams.errors import LogUnavailable, NotRunning, SettingsError
from streams.positions import Partition
from streams.topics import OTLP_TOPICS, TOPICS
from thalweg.control.requests import ask
from thalweg.doctor.checks import Check, Unsound, require
from thalweg.paths import OTHERS, control_path, socket_path
from thalweg.process.http_door import CREDENTIALS_FILE, TOKEN_FILE, http_credentials, http_token
from thalweg.settings import Settings
from thalweg.status.health import misplaced_sentence
from thalweg.terminal.topics import missing_otlp_topics

MIN_FREE_BYTES = 1_000_000_000
MAX_AHEAD_S = 300.0


def checks_of_surroundings(settings: Settings) -> list[Check]:
    """The checks, in the order in which they depend on each other."""
    home = settings.home
    return [
        Check("data directory", lambda: _directory(home), "Choose a directory of your own with THALWEG_HOME."),
        Check("owner", lambda: _owner(home), "End the process that is named, or choose another THALWEG_HOME."),
        Check("space", lambda: _space(home), "`thalweg reembed` says which spaces there are."),
        Check("sockets", lambda: _sockets(home), "Choose a shorter THALWEG_HOME."),
        Check("http", lambda: _http(settings), SettingsError.remedy),
        Check("log", lambda: _log(settings), LogUnavailable.remedy),
        Check("producers", lambda: _producers(home), "docs/producers.md has the setting for each client's language."),
        Check("otlp topics", lambda: _otlp_topics(settings), "Run `thalweg topics create --otlp`."),
        Check("clock", lambda: _clock(home), "Set the system's clock."),
    ]


def _directory(home: Path) -> str:
    """Whether files can be made there, or where it will be made; and whether there is room."""
    there = next(place for place in (home, *home.parents) if place.exists())
    require(there.is_dir(), f"{there} is a file.")
    note = "" if there == home else " (to be made)"
    if there == home:
        status = home.stat()
        require(status.st_uid == os.geteuid(), f"{home} belongs to another user, with the id {status.st_uid}.")
        rights = stat.S_IMODE(status.st_mode)
        if rights & OTHERS:
            note = f" (open to other users: {rights:03o}; the next start of a node narrows it)"
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise Unsound(f"Nothing can be written to {there}: {error.strerror}.") from None
    free = shutil.disk_usage(there).free
    require(
        free >= MIN_FREE_BYTES,
        f"{there} has {free / 1e9:.2f} GB left; {MIN_FREE_BYTES / 1e9:g} GB are needed at least.",
    )
    return f"{home}{note}, writable, {free / 1e9:.0f} GB free"


def _owner(home: Path) -> str:
    """Which process owns the store: none, or a node that answers.

    DuckDB's own files are left alone: opening them could drop its lock.
    """
    owner = lock_holder(home / LOCK_NAME)
    try:
        node = ask(home, "status", timeout_s=10.0)
    except NotRunning:
        require(owner is None, f"The process {owner} owns the data directory, but no node answers there.")
        return "no node runs; " + ("the store is free" if (home / FILE_NAME).exists() else "there is no store yet")
    return f"a node runs (process {owner or 'unknown'}), {node['status']}"


def _space(home: Path) -> str:
    """Which model's vectors answer, and how far another's are; only a running node knows."""
    try:
        spaces = ask(home, "status", timeout_s=10.0)["spaces"]
    except NotRunning:
        return "no node runs"
    require(not spaces["problem"], str(spaces["problem"]))
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
            require(mode & OTHERS == 0, f"{path} is open to other users ({mode:03o}).")
    return f"{paths[0]} for agents, {paths[1].name} for the command line"


def _http(settings: Settings) -> str:
    """Where it listens and where its clients find the token; none is made here."""
    if not settings.http:
        return "off"
    host, port = settings.http_address
    file = settings.home / CREDENTIALS_FILE
    if file.exists():
        http_credentials(settings, host, Catalogues(find_tools(), find_resources()).check)
        return f"port {port} of {host}, bearer tokens: {file}"
    if (settings.home / TOKEN_FILE).exists() or settings.token:
        place = http_token(settings, host).file or "the setting `token`"
        return f"port {port} of {host}, bearer token: {place}"
    require(
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
        producers = ask(home, "status", timeout_s=10.0).get("misplaced", [])
    except NotRunning:
        return "no node runs"
    recent = [misplaced_sentence(producer) for producer in producers if producer["is_recent"]]
    require(not recent, "; ".join(recent) + ".")
    former = ", ".join(f"{producer['records']} records of {producer['source']}" for producer in producers)
    return (
        f"{former} lie on other partitions than their keys', none of them new"
        if former
        else "every record lies where its key belongs"
    )


def _otlp_topics(settings: Settings) -> str:
    if not settings.otlp_topics:
        return "not read (THALWEG_OTLP_TOPICS is not set)"
    absent = missing_otlp_topics(_partitions(settings.broker_url, OTLP_TOPICS))
    require(absent is None, f"{absent}.")
    return f"{', '.join(OTLP_TOPICS)} are there"


def _partitions(broker: str, topics: Sequence[str]) -> Mapping[str, int]:
    """How many partitions each of these topics has; those that do not exist are left out."""
    if broker.startswith("kafka://"):
        return Counter(at.topic for at in asyncio.run(_kafka_ends(broker, topics)))
    connection = sqlite3.connect(
        f"{Path(broker.removeprefix('sqlite://')).absolute().as_uri()}?mode=ro", uri=True, timeout=5.0
    )
    try:  # read without writing: a log of another process is not touched
        counts = dict(connection.execute("SELECT topic, count(*) FROM partitions GROUP BY topic").fetchall())
    finally:
        connection.close()
    return {topic: counts[topic] for topic in topics if topic in counts}


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
    now = SystemClock().now().replace(microsecond=0)
    files = (Path(__file__), home / "log.db", home / "log.db-wal", home / FILE_NAME)
    ahead, newest = max((path.stat().st_mtime - now.timestamp(), path.name) for path in files if path.exists())
    require(
        ahead <= MAX_AHEAD_S,
        f"It says {now:%Y-%m-%d %H:%M} UTC, but {newest} was written {ahead:.0f} s later.",
    )
    return format_time(now)
