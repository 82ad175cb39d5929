"""Loads an embedder by its name in the settings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from processors.embedding.api import load_api_embedder
from processors.embedding.hashing import DIM, HashingEmbedder
from processors.embedding.model import MAX_DIM, Embedder, ModelInfo
from processors.embedding.model_files import CHECKSUMS, MODEL_ID, ModelFiles, checksum, find_model, write_atomically
from processors.embedding.providers import PROVIDERS
from streams.errors import EmbedderUnavailable

MINILM = ModelInfo(
    space=f"text/{MODEL_ID}@int8",
    model_id=MODEL_ID,
    revision=CHECKSUMS["model.safetensors"][:12],
    dim=384,
    dtype="int8",
    max_tokens=256,
    pooling="mean",
    provider="onnxruntime",
    trained=True,
)
_NO_KEYS: Mapping[str, str] = MappingProxyType({})
MINILM_FLOAT32 = replace(MINILM, space=f"text/{MODEL_ID}", dtype="float32")


def load_embedder(
    name: str,
    *,
    cache_dir: Path,
    model_path: Path | None = None,
    threads: int = 1,
    environ: Mapping[str, str] = _NO_KEYS,
) -> Embedder | None:
    """The model of this name; None for `none`.

    `minilm` (the default; 8-bit products), `minilm-float32` (the checkpoint's own precision), `hashing` or `hashing-N`
    (N dimensions), `openai:MODEL` (a provider is called, with the key in the environment), or the name or folder of a
    sentence-transformers model (needs `thalweg[models]`). `model_path` is where the files of `minilm` are;
    `environ` has the keys of providers.

    Raises EmbedderUnavailable with a sentence that names the remedies. Takes about 0.3 s for `minilm`, two seconds more
    when its graph is not in `cache_dir` yet.
    """
    if name == "none":
        return None
    if hashing := re.fullmatch(r"hashing(?:-(\d+))?", name):
        return _load_hashing(int(hashing[1] or DIM))
    if name in ("minilm", "minilm-float32"):
        info = MINILM if name == "minilm" else MINILM_FLOAT32
        return _load_minilm(find_model(cache_dir, model_path), info, cache_dir, threads)
    if name.partition(":")[0] in PROVIDERS:
        return load_api_embedder(name, environ)
    from processors.embedding.sentence_transformer import load_named

    return load_named(name, threads=threads)


def _load_hashing(dim: int) -> Embedder:
    if not 8 <= dim <= MAX_DIM:
        raise EmbedderUnavailable(f"The embedder hashing-{dim} must have 8 to {MAX_DIM} dimensions.")
    return HashingEmbedder(dim)


def _load_minilm(files: ModelFiles, info: ModelInfo, cache_dir: Path, threads: int) -> Embedder:
    try:
        from processors.embedding.onnx_encoder import OnnxEncoder

        graph = _int8_graph(files, cache_dir) if info is MINILM else _float32_graph(files, cache_dir)
        return OnnxEncoder(graph, files.tokenizer, info, threads=threads)
    except ImportError as error:
        raise EmbedderUnavailable(
            f"The embedder needs onnxruntime and tokenizers, which do not import: {error}"
        ) from error


def _int8_graph(files: ModelFiles, cache_dir: Path) -> Path:
    from processors.embedding.int8_onnx import GRAPH_VERSION, build_int8_graph, build_probe, products_are_exact

    signed = products_are_exact(_cached(cache_dir / f"int8-probe-{GRAPH_VERSION}.onnx", cache_dir, build_probe))
    name = f"minilm-{MINILM.revision}-int8-{GRAPH_VERSION}{'' if signed else '-unsigned'}"
    return _cached(
        cache_dir / f"{name}.onnx", cache_dir, lambda: build_int8_graph(files.weights, files.tokenizer, signed=signed)
    )


def _float32_graph(files: ModelFiles, cache_dir: Path) -> Path:
    from processors.embedding.bert_onnx import GRAPH_VERSION, build_graph

    return _cached(
        cache_dir / f"minilm-{MINILM.revision}-{GRAPH_VERSION}.onnx", cache_dir, lambda: build_graph(files.weights)
    )


def _cached(graph: Path, cache_dir: Path, build: Callable[[], bytes]) -> Path:
    """The ONNX file, built when it is not in the cache or not what was put there."""
    seal = graph.with_suffix(".sha256")
    if graph.is_file() and seal.is_file() and checksum(graph, cache_dir) == seal.read_text().strip():
        return graph
    body = build()
    write_atomically(graph, body)
    write_atomically(seal, hashlib.sha256(body).hexdigest().encode())
    return graph
