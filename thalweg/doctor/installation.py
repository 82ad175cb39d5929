"""Checks of the installation: Python, the packages, what they bring, and the model."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import thalweg
from streams.errors import EmbedderUnavailable
from thalweg.doctor.checks import Check, require
from thalweg.settings import Settings

DISTRIBUTION = "thalweg"
PACKAGES = ("streams", "storage", "processors", "mcp_ingress", "thalweg")
OLDEST_PYTHON = (3, 11)
DUCKDB = ("2.0.", "duckdb>=2.0,<2.1")
EPSILON = 1e-3
SAMPLE = b"The parser loses its place. " * 20
_REINSTALL = "Install what requirements.lock says: `python3 dev.py setup`."


def checks_of_installation(settings: Settings) -> list[Check]:
    """The checks, in the order in which they depend on each other."""
    return [
        Check("python", _python, "Use Python 3.11 or newer."),
        Check("packages", _packages, "Install thalweg into its own environment: `python3 dev.py setup` makes one."),
        Check("pinned versions", _pins, _REINSTALL),
        Check(
            "hnswlib", _hnswlib, "Install a C++ compiler (Debian: apt-get install g++), then reinstall hnswlib 0.8.0."
        ),
        Check("duckdb", _duckdb, f"Uninstall duckdb-extension packages, then install {DUCKDB[1]}."),
        Check("keyword index", _tantivy, "Reinstall tantivy 0.27."),
        Check("codecs", _codecs, f"{_REINSTALL} Without them a node does not start on Kafka."),
        Check("transport", _transport, "Reinstall thalweg: its entry points are out of date."),
        Check("model", lambda: _model(settings), EmbedderUnavailable.remedy),
    ]


def _python() -> str:
    version = ".".join(map(str, sys.version_info[:3]))
    require(sys.version_info >= OLDEST_PYTHON, f"This is Python {version}.")
    return version


def _packages() -> str:
    """Whether the import packages are this distribution's.

    Their names are everyday words: another distribution may bring the same ones, and either may win.
    """
    owners = metadata.packages_distributions()
    root = Path(thalweg.__file__).parents[1]
    for name in PACKAGES:
        others = sorted({owner for owner in owners.get(name, []) if owner.lower() != DISTRIBUTION})
        require(not others, f"The import package {name} is also brought by {', '.join(others)}.")
        require(name in owners, f"No installed distribution says that it brings {name}.")
        spec = find_spec(name)
        origin = Path(spec.origin).parents[1] if spec and spec.origin else None
        require(origin == root, f"The import package {name} comes from {origin}, not from {root}.")
    return f"{', '.join(PACKAGES)} are {DISTRIBUTION} {metadata.version(DISTRIBUTION)}"


def _pins() -> str:
    """Requirements with an exact version: each has traps that were measured in that version."""
    pins = dict(_pinned(metadata.requires(DISTRIBUTION) or []))
    for name, pinned in pins.items():
        installed = metadata.version(name)
        require(installed == pinned, f"{name} is {installed}; thalweg works with {pinned} only.")
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
    require(labels.tolist() == [[8]], "hnswlib imports, but does not find the nearest of two vectors.")
    return f"{metadata.version('hnswlib')}, compiled, finds the nearest"


def _duckdb() -> str:
    import duckdb

    extensions = sorted(name for name in _installed() if name.startswith("duckdb-extension"))
    require(not extensions, f"{', '.join(extensions)} is installed, which brings a DuckDB of another version.")
    require(duckdb.__version__.startswith(DUCKDB[0]), f"DuckDB is {duckdb.__version__}.")
    with duckdb.connect(":memory:") as connection:
        answer = connection.execute("SELECT '{\"a\": [1, 2]}'::VARIANT IS NOT NULL").fetchall()
    require(answer == [(True,)], "DuckDB does not know VARIANT.")
    return f"{duckdb.__version__}, no extension packages"


def _installed() -> set[str]:
    return {str(each.metadata["Name"]).lower().replace("_", "-") for each in metadata.distributions()}


def _tantivy() -> str:
    from storage.search.words.keyword_index import KeywordIndex

    with tempfile.TemporaryDirectory() as directory:
        index = KeywordIndex(Path(directory))
        index.add([(1, "n", "a broken parser"), (2, "n", "a calm river")])
        index.commit()
        labels = [label for label, _ in index.search("parser", "n", 2)]
        index.close()
    require(labels == [1], "tantivy imports, but does not find a word.")
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
    require(
        not failed,
        f"Records that a Kafka producer compresses with {', '.join(failed)} cannot be read "
        "(cramjam is missing or broken).",
    )
    return f"{', '.join(CODECS)} are read; cramjam {metadata.version('cramjam')}"


def _transport() -> str:
    """Faust reaches the embedded log through an entry point of this distribution."""
    points = [point for point in metadata.entry_points(group="faust.transports") if point.name == "sqlite"]
    values = sorted({point.value for point in points})
    require(
        values == ["streams.sqlite_transport:Transport"],
        f"The Faust transport sqlite is {', '.join(values) or 'not registered'}.",
    )
    points[0].load()
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
    require(sound, f"{info.model_id} does not give unit vectors of {info.dim} numbers.")
    return (
        f"{info.model_id}, {info.dim} dimensions, {'trained' if info.trained else 'untrained: no meaning in it'}{place}"
    )
