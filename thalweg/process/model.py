"""Loads the model of the settings or another one, with the same folders and threads, once a process."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Hashable
from pathlib import Path
from weakref import WeakValueDictionary

from processors.embedding.loader import load_embedder
from processors.embedding.model import Embedder
from thalweg.environment import process_environment
from thalweg.settings import Settings


def load_model(settings: Settings, name: str | None = None, *, folder: Path | None = None) -> Embedder | None:
    """The model of this name, else the setting's; None for `none`. Raises EmbedderUnavailable when it does not load.

    `folder`: where models are kept, by default that of the data directory.
    """
    path = Path(settings.model_path) if settings.model_path else None
    place = folder or settings.home / "models"
    return load_embedder(
        name or settings.embedder,
        cache_dir=place,
        model_path=path,
        threads=settings.embed_threads,
        environ=process_environment(),
    )


class Models:
    """The models of one process by name, each loaded once for the spaces and views that share it.

    A model stays as long as a part of the process has it. Thread-safe.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loaded: WeakValueDictionary[Hashable, Embedder] = WeakValueDictionary()
        self._locks = defaultdict[Hashable, threading.Lock](threading.Lock)

    def load(self, name: str | None = None) -> Embedder | None:
        """As `load_model`; of a model that another thread loads, once that is done."""
        wanted = name or self._settings.embedder
        key = _key(wanted)
        with self._locks[key]:
            if (known := self._loaded.get(key)) is not None:
                return known
            loaded = load_model(self._settings, wanted)
            if loaded is not None:
                self._loaded[key] = loaded
            return loaded


def _key(name: str) -> Hashable:
    """The name; of a folder its files too, since other weights in the same folder are another model."""
    if not (folder := Path(name)).is_dir():
        return name
    files = ((str(path), path.stat()) for path in sorted(folder.resolve().rglob("*")) if path.is_file())
    return tuple((path, facts.st_size, facts.st_mtime_ns) for path, facts in files)
