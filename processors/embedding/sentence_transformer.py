"""Any other model by its name or folder, through sentence-transformers (the extra `thalweg[models]`).

Every kind ends in one unit vector a text, and the registry says how: a dense encoder's own; a CLIP model's text side;
a sparse encoder's terms, feature-hashed (Weinberger et al. 2009); the mean of a multi-vector encoder's token vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from processors.embedding.checkpoint import Checkpoint, Kind, read_checkpoint
from processors.embedding.model import MAX_DIM, ModelInfo
from processors.embedding.pixels import read_pixels
from storage.search.vectors.model_vector import ModelVector, rows_vector, terms_vector
from streams.errors import EmbedderUnavailable

SPARSE_DIM = 1024
ANY_LENGTH = 1_000_000
"""What a tokenizer without a limit of its own says is more than a column holds."""
_CLASSES: dict[Kind, str] = {
    "dense": "SentenceTransformer",
    "clip": "SentenceTransformer",
    "sparse": "SparseEncoder",
    "multi-vector": "MultiVectorEncoder",
}
_FILES = ("*.json", "*.txt", "*.model")


def load_named(name: str, *, threads: int = 1) -> NamedEncoder:
    """The encoder of a checkpoint, refused unless whole. Raises EmbedderUnavailable."""
    try:
        library = import_module("sentence_transformers")
    except ImportError as error:
        raise EmbedderUnavailable(
            f"The embedder {name!r} needs sentence-transformers: install thalweg[models], "
            f"or use `--embedder minilm`, `hashing` or `none`. ({error})"
        ) from error
    checkpoint = read_checkpoint(name, _folder(name))
    loader = getattr(library, _CLASSES[checkpoint.kind], None)
    if loader is None:
        raise EmbedderUnavailable(
            f"The embedder {name!r} needs a newer sentence-transformers, with {_CLASSES[checkpoint.kind]}."
        )
    import_module("torch").set_num_threads(
        threads
    )  # torch comes with the extra; without it a type checker finds no types
    try:
        return NamedEncoder(name, checkpoint, loader(str(checkpoint.folder), device="cpu"))
    except Exception as error:  # whatever the tokenizer or torch find wrong
        raise EmbedderUnavailable(f"The embedder {name!r} does not load: {error}") from error


def _folder(name: str) -> Path:
    """The checkpoint's files: a folder of that name, else all of one revision from the hub."""
    if (folder := Path(name)).is_dir():
        return folder
    from huggingface_hub import HfApi, snapshot_download

    try:
        files = HfApi().list_repo_files(name)
        weights = "*.safetensors" if any(file.endswith(".safetensors") for file in files) else "*.bin"
        return Path(
            snapshot_download(name, allow_patterns=[*_FILES, weights], ignore_patterns=["onnx/*", "openvino/*"])
        )
    except Exception as error:  # no network, no such model, no such name
        raise EmbedderUnavailable(f"The embedder {name!r} cannot be looked up: {error}") from error


class NamedEncoder:
    """An Embedder over a checkpoint. The prefixes are given by the caller (`encode_query`, `encode_documents`)."""

    def __init__(self, name: str, checkpoint: Checkpoint, model: Any) -> None:
        self._model, self.kind = model, checkpoint.kind
        model.default_prompt_name = None  # it is among the prefixes
        dim = self._rows(["a"]).shape[1]  # also: it encodes at all
        if dim > MAX_DIM:
            raise ValueError(f"its vectors have {dim} numbers; at most {MAX_DIM} are accepted")
        self.info = ModelInfo(
            space=f"text/{Path(name).name if Path(name).is_dir() else name}@{checkpoint.revision}",
            model_id=name,
            revision=checkpoint.revision,
            dim=dim,
            dtype="float32",
            max_tokens=min(int(model.max_seq_length or 0), ANY_LENGTH),
            pooling=checkpoint.pooling,
            provider=f"sentence-transformers {_CLASSES[checkpoint.kind]}",
            trained=True,
            query_prefix=checkpoint.query_prefix,
            document_prefix=checkpoint.document_prefix,
        )

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(len(texts), dim) float32 unit rows in the order given. Raises EmbedderUnavailable."""
        if not texts:
            return np.empty((0, self.info.dim), np.float32)
        try:
            return self._rows(list(texts))
        except Exception as error:  # torch's own family of bare exceptions
            raise EmbedderUnavailable(f"The model {self.info.model_id} failed: {error}") from error

    @property
    def form_dim(self) -> int:
        """How many numbers a row has, of a sparse model how many terms there are."""
        if self.kind != "sparse":
            return self.info.dim
        return int(self._model.encode(["a"], convert_to_sparse_tensor=True, show_progress_bar=False).shape[1])

    def encode_forms(self, texts: Sequence[str], *, are_queries: bool) -> list[ModelVector]:
        """Of each text what the model makes of it: one row, a row a token, or terms. Raises EmbedderUnavailable."""
        if not texts:
            return []
        encode = self._model.encode_query if are_queries else self._model.encode_document
        prefix = self.info.query_prefix if are_queries else self.info.document_prefix
        try:
            if self.kind == "sparse":
                rows, terms, values = _terms_of(encode, list(texts), prefix)
                return [terms_vector(terms[rows == row], values[rows == row]) for row in range(len(texts))]
            made = encode(list(texts), prompt=prefix, show_progress_bar=False, convert_to_numpy=True)
            return [rows_vector(one) for one in made]
        except Exception as error:  # torch's own family of bare exceptions
            raise EmbedderUnavailable(f"The model {self.info.model_id} failed: {error}") from error

    def encode_picture(self, data: bytes) -> ModelVector:
        """Of an image file the vector of its pixels, which lies among those of texts.

        Raises ValueError when the file is unreadable, and EmbedderUnavailable.
        """
        pixels = read_pixels(data)
        try:
            made = self._model.encode([pixels], prompt="", show_progress_bar=False, convert_to_numpy=True)
            return rows_vector(made[0])
        except Exception as error:  # torch's own family of bare exceptions
            raise EmbedderUnavailable(f"The model {self.info.model_id} failed: {error}") from error

    def _rows(self, texts: list[str]) -> np.ndarray:
        if self.kind == "sparse":
            made = hash_terms(*_terms_of(self._model.encode, texts), len(texts))
        elif self.kind == "multi-vector":
            tokens = self._model.encode(texts, show_progress_bar=False, convert_to_numpy=True)
            made = np.stack([np.asarray(one, np.float32).mean(axis=0) for one in tokens])
        else:
            made = np.asarray(self._model.encode(texts, show_progress_bar=False, convert_to_numpy=True), np.float32)
        return _unit(made)


def _terms_of(
    encode: Callable[..., Any], texts: list[str], prefix: str | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(m,) the row, the term and the weight of each that a sparse model gives."""
    sparse = encode(
        texts, prompt=prefix, show_progress_bar=False, convert_to_tensor=True, convert_to_sparse_tensor=True
    ).coalesce()
    rows, terms = sparse.indices().numpy()
    return rows, terms, sparse.values().float().numpy()


def hash_terms(rows: np.ndarray, terms: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """(count, SPARSE_DIM) sums of ±value, which keep the products of rows in expectation.

    The error is about 1/√SPARSE_DIM. A term's place and sign come from a fixed multiplicative hash of its number.
    """
    mixed = terms.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    places = (mixed >> np.uint64(33)) % np.uint64(SPARSE_DIM)
    signs = np.where((mixed >> np.uint64(32)) & np.uint64(1), 1.0, -1.0).astype(np.float32)
    made = np.zeros((count, SPARSE_DIM), np.float32)
    np.add.at(made, (rows, places.astype(np.int64)), signs * values)
    return made


def _unit(rows: np.ndarray) -> np.ndarray:
    """Rows of length 1; a row of nothing (a text without known terms) points along the first axis."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    empty = lengths[:, 0] < 1e-12
    if empty.any():
        rows = rows.copy()
        rows[empty, 0], lengths[empty] = 1.0, 1.0
    unit: np.ndarray = (rows / lengths).astype(np.float32)
    return unit
