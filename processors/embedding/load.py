"""Loads an embedder by its name in the settings."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from processors.embedding.api import load_api_embedder
from processors.embedding.find import CHECKSUMS, MODEL_ID, ModelFiles, checksum, find_model, write_atomically
from processors.embedding.hashing import DIM, HashingEmbedder
from processors.embedding.model import MAX_DIM, Embedder, ModelInfo
from processors.providers import PROVIDERS
from streams.errors import EmbedderUnavailable

MINILM = ModelInfo(
    space=f"text/{MODEL_ID}",
    model_id=MODEL_ID,
    revision=CHECKSUMS["model.safetensors"][:12],
    dim=384,
    dtype="float32",
    max_tokens=256,
    pooling="mean",
    provider="onnxruntime",
    trained=True,
)


def load_embedder(name: str, *, cache_dir: Path, model_path: Path | None = None, threads: int = 1) -> Embedder | None:
    """`minilm` (the default), `hashing` or `hashing-N` (N dimensions), `none` (gives None), `openai:MODEL` (a provider is called, with the
    key in the environment), or a sentence-transformers name (needs `thalweg[models]`).

    Raises EmbedderUnavailable with a sentence that names the remedies. Takes about 0.3 s for `minilm`, a second more
    when its graph is not in `cache_dir` yet.
    """
    if name == "none":
        return None
    if hashing := re.fullmatch(r"hashing(?:-(\d+))?", name):
        return _load_hashing(int(hashing[1] or DIM))
    if name == "minilm":
        return _load_minilm(find_model(cache_dir, model_path), cache_dir, threads)
    if name.partition(":")[0] in PROVIDERS:
        return load_api_embedder(name, os.environ)
    from processors.embedding.named import load_named

    return load_named(name, threads=threads)


def _load_hashing(dim: int) -> Embedder:
    if not 8 <= dim <= MAX_DIM:
        raise EmbedderUnavailable(f"hashing-{dim}: 8 to {MAX_DIM} dimensions.")
    return HashingEmbedder(dim)


def _load_minilm(files: ModelFiles, cache_dir: Path, threads: int) -> Embedder:
    try:
        from processors.embedding.onnx_encoder import OnnxEncoder

        return OnnxEncoder(_graph(files, cache_dir), files.tokenizer, MINILM, threads=threads)
    except ImportError as error:
        raise EmbedderUnavailable(f"The embedder needs onnxruntime and tokenizers, which do not import: {error}") from error


def _graph(files: ModelFiles, cache_dir: Path) -> Path:
    """The ONNX file for these weights, built when it is not in the cache or not what was put there."""
    from processors.embedding.bert_onnx import GRAPH_VERSION, build_graph

    graph = cache_dir / f"minilm-{MINILM.revision}-{GRAPH_VERSION}.onnx"
    seal = graph.with_suffix(".sha256")
    if graph.is_file() and seal.is_file() and checksum(graph, cache_dir) == seal.read_text().strip():
        return graph
    body = build_graph(files.weights)
    write_atomically(graph, body)
    write_atomically(seal, hashlib.sha256(body).hexdigest().encode())
    return graph
