"""Any other model by its name, through sentence-transformers (the extra `thalweg[models]`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from processors.embedding.model import ModelInfo
from streams.errors import EmbedderUnavailable

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_KNOWN = ("Transformer", "Pooling", "Normalize", "Dense")


class NamedEncoder:
    """An Embedder over a dense sentence-transformers checkpoint."""

    def __init__(self, name: str, *, threads: int = 1) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EmbedderUnavailable(
                f"The embedder {name!r} needs sentence-transformers: install thalweg[models], or use `--embedder minilm`, "
                "`hashing` or `none`."
            ) from error
        _check_checkpoint(name)
        import_module("torch").set_num_threads(threads)  # of the extra, and without types for who checks without it
        try:
            self._model = SentenceTransformer(name, device="cpu")
        except Exception as error:  # whatever the hub, the tokenizer or torch find wrong
            raise EmbedderUnavailable(f"The embedder {name!r} does not load: {error}") from error
        self.info = ModelInfo(
            space=f"text/{name}",
            model_id=name,
            revision="",
            dim=int(self._model.get_sentence_embedding_dimension()),
            dtype="float32",
            max_tokens=int(self._model.max_seq_length or 0),
            pooling="checkpoint",
            provider="sentence-transformers",
            trained=True,
        )

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(len(texts), dim) float32 unit rows in the order given."""
        if not texts:
            return np.empty((0, self.info.dim), np.float32)
        rows = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(rows, np.float32)


def _check_checkpoint(name: str) -> None:
    """Refuse a checkpoint for which the library would invent what is missing."""
    folder = Path(name)
    if folder.is_dir():
        listing = folder / "modules.json"
        modules = json.loads(listing.read_text()) if listing.is_file() else None
        check_modules(name, modules, lambda path: (folder / path).is_file())
        return
    from huggingface_hub import HfApi, hf_hub_download

    try:
        files = set(HfApi().list_repo_files(name))
        modules = json.loads(Path(hf_hub_download(name, "modules.json")).read_text()) if "modules.json" in files else None
    except Exception as error:  # no network, no such model
        raise EmbedderUnavailable(f"The embedder {name!r} cannot be looked up: {error}") from error
    check_modules(name, modules, files.__contains__)


def check_modules(name: str, modules: list[dict[str, Any]] | None, has_file: Callable[[str], bool]) -> None:
    """`modules` is the checkpoint's modules.json. Raises EmbedderUnavailable when a head is missing or not a dense one.

    A plain language model has no modules.json: the library would put an untrained pooling or random head on it.
    """
    if not modules:
        raise EmbedderUnavailable(f"{name!r} is not a sentence encoder: it has no modules.json, so its vectors would be untrained.")
    for module in modules:
        kind = str(module.get("type", "")).rsplit(".", 1)[-1]
        if kind not in _KNOWN:
            raise EmbedderUnavailable(f"{name!r} has a {kind or 'nameless'} module; only dense sentence encoders are supported.")
        if kind == "Dense" and not any(has_file(f"{module['path']}/{weights}") for weights in _WEIGHTS):
            raise EmbedderUnavailable(f"{name!r} lacks the weights of its Dense head; it would be random.")
    if not any(str(module.get("type", "")).endswith("Pooling") for module in modules):
        raise EmbedderUnavailable(f"{name!r} has no pooling: it does not make one vector a text.")
