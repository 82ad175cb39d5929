"""Loads the embedding model of the settings, or another one with the same folders and threads."""

from __future__ import annotations

from pathlib import Path

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
