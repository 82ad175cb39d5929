"""Reads what a sentence-transformers checkpoint is, without the library: kind, prompts, head.

The library puts an untrained head on a checkpoint that lacks one and says so in a log line at most; such vectors look
like any others. What is refused here is refused in one sentence, before anything is loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from streams.errors import EmbedderUnavailable

Kind = Literal["dense", "sparse", "multi-vector", "clip"]
_WEIGHTS = ("*.safetensors", "*.bin")
_PLAIN = {
    "Transformer",
    "MLMTransformer",
    "Normalize",
    "Dropout",
    "Pooling",
    "SpladePooling",
    "MultiVectorMask",
    "CLIPModel",
}
_WITH_WEIGHTS = {
    "Dense",
    "LayerNorm",
    "WeightedLayerPooling",
    "StaticEmbedding",
    "SparseStaticEmbedding",
    "SparseAutoEncoder",
    "CSRSparsity",
}
_SPARSE = {"SpladePooling", "SparseAutoEncoder", "CSRSparsity", "SparseStaticEmbedding"}
_POOLS = {"Pooling", "StaticEmbedding"}
_LANGUAGE_HEADS = ("cls.", "lm_head.", "vocab_", "predictions.", "head.", "decoder.", "generator_")
"""How the tensors of a masked-language-model head begin, in the families that sparse encoders are made of."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is in the folder. `revision`: the start of its weights' sha256; the prefixes are its own prompts."""

    folder: Path
    kind: Kind
    pooling: str
    revision: str
    query_prefix: str = ""
    document_prefix: str = ""


def read_checkpoint(name: str, folder: Path) -> Checkpoint:
    """Raises EmbedderUnavailable when a head is missing, or when the kind gives no vector of a text."""
    modules = _modules(name, folder)
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    unknown = [kind for kind in kinds if kind not in _PLAIN | _WITH_WEIGHTS]
    if unknown:
        raise EmbedderUnavailable(
            f"{name!r} has a module of an unknown kind ({unknown[0] or 'nameless'}); choose another model."
        )
    for module, kind in zip(modules, kinds, strict=True):
        if kind in _WITH_WEIGHTS and not _weights(folder / module["path"]):
            raise EmbedderUnavailable(
                f"{name!r} lacks the weights of its {kind} head; it would be random. Choose a complete checkpoint."
            )
    kind = _kind(kinds, folder, folder / modules[0]["path"])
    if kind == "sparse" and "SpladePooling" in kinds:
        _require_tensor(name, folder, _LANGUAGE_HEADS, "its language-model head")
    if kind == "clip":
        for side in ("text", "visual"):
            head = f"its projection of {'texts' if side == 'text' else 'images'}"
            _require_tensor(name, folder / modules[0]["path"], (f"{side}_projection",), head)
    if kind == "multi-vector" and "Dense" not in kinds:
        raise EmbedderUnavailable(
            f"{name!r} lacks the projection of its token vectors; it would be random. Choose a complete checkpoint."
        )
    if kind == "dense" and not _POOLS.intersection(kinds):
        raise EmbedderUnavailable(
            f"{name!r} has no pooling, so it does not make one vector of a text; choose another model."
        )
    pooling = _pooling(name, kind, folder, modules, kinds)
    query, document = _prompts(folder)
    return Checkpoint(folder, kind, pooling, _revision(folder), query, document)


def _modules(name: str, folder: Path) -> list[dict[str, Any]]:
    modules = _json(folder / "modules.json")
    if (
        isinstance(modules, list)
        and modules
        and all(isinstance(module, dict) and "path" in module for module in modules)
    ):
        return modules
    raise EmbedderUnavailable(
        f"{name!r} is not a sentence encoder: it has no modules.json, so its vectors would be untrained."
    )


def _kind(kinds: Sequence[str], folder: Path, first: Path) -> Kind:
    """The kind that the modules make.

    CLIP has a module of its own until version 5.4 of the library; from then on the settings of `first` say it.
    """
    settings = _json(first / "config.json")
    if "CLIPModel" in kinds or (isinstance(settings, dict) and settings.get("model_type") == "clip"):
        return "clip"
    if _SPARSE.intersection(kinds):
        return "sparse"
    settings = _json(folder / "config_sentence_transformers.json")
    is_multi = isinstance(settings, dict) and settings.get("model_type") in ("MultiVectorEncoder", "ColBERT")
    return "multi-vector" if is_multi or "MultiVectorMask" in kinds else "dense"


def _pooling(name: str, kind: Kind, folder: Path, modules: Sequence[dict[str, Any]], kinds: Sequence[str]) -> str:
    """How one vector a text comes about, in words."""
    if kind == "clip":
        return "clip text projection"
    if kind == "sparse":
        return "sparse terms, hashed"
    if kind == "multi-vector":
        return "mean of token vectors"
    if "Pooling" not in kinds:
        return "mean of word vectors"
    settings = _json(folder / modules[kinds.index("Pooling")]["path"] / "config.json")
    settings = settings if isinstance(settings, dict) else {}
    if settings.get("include_prompt") is False:
        raise EmbedderUnavailable(
            f"{name!r} leaves its prompt out of its pooling, which cannot be done with a prefix of the text."
        )
    if "pooling_mode" in settings:
        return str(settings["pooling_mode"])
    chosen = [
        key.removeprefix("pooling_mode_").removesuffix("_tokens") for key, value in settings.items() if value is True
    ]
    return "+".join(mode for mode in chosen if mode not in ("include_prompt",)) or "mean"


def _prompts(folder: Path) -> tuple[str, str]:
    """The prefixes of queries and of stored texts: by their names, else the default one for both."""
    settings = _json(folder / "config_sentence_transformers.json")
    prompts = settings.get("prompts") if isinstance(settings, dict) else None
    if not isinstance(prompts, dict):
        return "", ""
    default = prompts.get(settings.get("default_prompt_name") or "") or ""
    document = prompts.get("document") or prompts.get("passage") or prompts.get("corpus") or default
    return str(prompts.get("query") or default), str(document)


def _require_tensor(name: str, folder: Path, beginnings: tuple[str, ...], head: str) -> None:
    names = [tensor for path in _weights(folder) for tensor in tensor_names(path)]
    if not any(tensor.startswith(beginnings) for tensor in names):
        raise EmbedderUnavailable(f"{name!r} lacks {head}; it would be random. Choose a complete checkpoint.")


def tensor_names(path: Path) -> Iterable[str]:
    """The names in a weights file; of the older format only with torch.

    Raises EmbedderUnavailable when it cannot be read.
    """
    try:
        if path.suffix == ".safetensors":
            from safetensors import safe_open

            with safe_open(path, "numpy") as file:
                return list(file.keys())
        from importlib import import_module

        return list(import_module("torch").load(path, mmap=True, weights_only=True, map_location="cpu"))
    except Exception as error:  # each format has exceptions of its own
        raise EmbedderUnavailable(f"{path.name} cannot be read: {error}") from error


def _weights(folder: Path) -> list[Path]:
    """The weights of one module: safetensors when there are any."""
    for pattern in _WEIGHTS:
        if found := sorted(path for path in folder.glob(pattern) if path.is_file()):
            return found
    return []


def _revision(folder: Path) -> str:
    """The start of the sha256 over all weights and settings that shape a vector."""
    digest = hashlib.sha256()
    shaping = [
        *folder.rglob("*.safetensors"),
        *folder.rglob("*.bin"),
        *folder.rglob("*.json"),
        *folder.rglob("vocab.txt"),
    ]
    for path in sorted(shaping, key=lambda path: path.relative_to(folder).as_posix()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:12]


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
