"""Aliases of the embedder's settings: `SURR_EMBED_PROVIDER`, `SURR_EMBED_MODEL`, `SURR_EMBED_DIM`."""

from __future__ import annotations

from collections.abc import Mapping

from processors.embedding.model_files import MODEL_ID
from streams.errors import SettingsError

_MODELS = {MODEL_ID: "minilm", f"sentence-transformers/{MODEL_ID}": "minilm", "hashing-384": "hashing"}
_PROVIDERS = {
    "minilm": ("onnx", "onnxruntime"),
    "minilm-float32": ("onnx", "onnxruntime"),
    "hashing": ("hashing", "numpy"),
    "none": ("none",),
}
_OTHERS = ("sentence-transformers",)


def embedder_of(environ: Mapping[str, str], chosen: str | None, default: str) -> str:
    """The embedder's name: from the product's own setting, else from the aliases, else the default.

    Raises SettingsError when both are set and differ.
    """
    model, provider = environ.get("SURR_EMBED_MODEL"), environ.get("SURR_EMBED_PROVIDER")
    named = None if not model else _MODELS.get(model, model)
    if chosen is not None and named is not None and chosen != named:
        raise SettingsError(
            f"SURR_EMBED_MODEL is {model!r} and the setting embedder is {chosen!r}; "
            "leave one out, or let both say the same."
        )
    used = chosen or named or default
    accepted = _PROVIDERS.get(used, _OTHERS)
    if provider and provider not in accepted:
        raise SettingsError(
            f"SURR_EMBED_PROVIDER is {provider!r} and the embedder {used!r} runs on {accepted[0]!r}; leave one out."
        )
    return used


def check_dimension(environ: Mapping[str, str], dim: int | None) -> None:
    """Raises SettingsError if `SURR_EMBED_DIM` differs from the loaded model's dimension.

    `dim` is None when there is no model.
    """
    given = environ.get("SURR_EMBED_DIM")
    if given and given != str(dim):
        raise SettingsError(
            f"SURR_EMBED_DIM is {given!r}; the model's vectors have {dim} numbers."
            if dim
            else f"SURR_EMBED_DIM is {given!r}, but there is no embedder; leave it out."
        )
