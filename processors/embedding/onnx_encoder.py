"""Runs a sentence encoder's ONNX graph: texts to unit vectors, in batches sorted by length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from processors.embedding.model import Encoded, ModelInfo, Pieces
from storage.search.vectors.token_vectors import Tokens, reduce_tokens, unit
from storage.search.words.analyzer import STOP_WORDS
from streams.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKEN_BUDGET = 512
"""Padded tokens a batch. Six times the throughput of unsorted batches of 32, and memory stays flat."""


class OnnxEncoder:
    """An Embedder over a graph of `bert_onnx` or `int8_onnx`.

    Its vectors do not depend on the batch: the texts of a small one are shared out to `threads`.
    """

    def __init__(self, graph: Path, tokenizer: Path, info: ModelInfo, *, threads: int = 1) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = False  # it keeps the room of the largest batch, 15 MB, and saves 2 % of the time
        options.log_severity_level = 3
        self.info = info
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="encode") if threads > 1 else None
        try:
            self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # both libraries raise bare exceptions of their own
            raise EmbedderUnavailable(f"The model {info.model_id} does not load: {error}") from error
        # the tokenizer's file truncates at 128 tokens and pads every text to 128
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._without_content = _without_content(self._tokenizer)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(len(texts), dim) float32 unit rows in the order given. A text past `max_tokens` is read whole, in
        windows."""
        return self._encode(texts, with_tokens=False).vectors

    def encode_tokens(self, texts: Sequence[str]) -> Encoded:
        """The same vectors, and each text's token vectors out of the same forward pass."""
        return self._encode(texts, with_tokens=True)

    def piece_starts(self, texts: Sequence[str]) -> list[Pieces]:
        """The word pieces of each text that carry content, as `pack` keeps them, and where each begins."""
        found = []
        for one in self._tokenizer.encode_batch(list(texts)):
            ids = np.array(one.ids[1:-1], np.int64)
            starts = np.array([start for start, _ in one.offsets[1:-1]], np.int64)
            content = ~self._without_content[ids]
            kept = content if content.any() else np.ones(len(ids), bool)
            found.append(Pieces((ids[kept] % 65_536).astype(np.uint16), starts[kept]))
        return found

    def _encode(self, texts: Sequence[str], *, with_tokens: bool) -> Encoded:
        if not texts:
            return Encoded(np.empty((0, self.info.dim), np.float32), [])
        owners: list[int] = []
        windows: list[list[int]] = []
        for owner, one in enumerate(self._tokenizer.encode_batch(list(texts))):
            for window in _windows(one.ids, self.info.max_tokens):
                owners.append(owner)
                windows.append(window)
        rows, tokens = self._run(windows, with_tokens=with_tokens)
        if len(windows) == len(texts):
            return Encoded(
                rows,
                [self._tokens(ids, found) for ids, found in zip(windows, tokens, strict=True)] if with_tokens else [],
            )
        return self._joined(len(texts), np.array(owners), windows, rows, tokens, with_tokens=with_tokens)

    def _joined(
        self,
        count: int,
        owners: np.ndarray,
        windows: Sequence[list[int]],
        rows: np.ndarray,
        tokens: Sequence[np.ndarray],
        *,
        with_tokens: bool,
    ) -> Encoded:
        """Several windows of a text become one: the mean of their vectors by length, all of their tokens."""
        totals = np.zeros((count, self.info.dim), np.float32)
        lengths = np.array([len(window) - 2 for window in windows], np.float32)
        np.add.at(totals, owners, rows * lengths[:, None])
        single = np.bincount(owners, minlength=count) == 1
        vectors = unit(totals)
        vectors[single] = rows[single[owners]]  # exactly what the model gave
        if not with_tokens:
            return Encoded(vectors, [])
        found = []
        for owner in range(count):
            mine = np.flatnonzero(owners == owner).tolist()
            ids = [windows[mine[0]][0], *(one for at in mine for one in windows[at][1:-1]), windows[mine[0]][-1]]
            inner = np.concatenate([tokens[at] for at in mine])
            found.append(self._tokens(ids, inner))
        return Encoded(vectors, found)

    def _run(self, encoded: Sequence[list[int]], *, with_tokens: bool) -> tuple[np.ndarray, list[np.ndarray]]:
        """Unit rows, and for each input the vectors of the tokens between its two marks."""
        rows = np.empty((len(encoded), self.info.dim), np.float32)
        tokens: list[np.ndarray] = [np.empty((0, self.info.dim), np.float32)] * len(encoded)
        lengths = np.array([len(ids) for ids in encoded], np.int64)

        def run(chosen: np.ndarray) -> None:
            found = self._passed([encoded[row] for row in chosen], lengths[chosen], with_tokens=with_tokens)
            rows[chosen] = found[0]
            for place, row in enumerate(chosen) if with_tokens else ():
                tokens[row] = found[1][place, 1 : lengths[row] - 1]

        batches = list(_batches(lengths, TOKEN_BUDGET))
        if len(batches) == 1 and len(encoded) > 1 and self._pool is not None:
            list(self._pool.map(run, np.array_split(batches[0], min(self._threads, len(encoded)))))
        else:  # bulk: the other cores are left to waiting callers
            for chosen in batches:
                run(chosen)
        return rows, tokens

    def _passed(self, encoded: Sequence[list[int]], lengths: np.ndarray, *, with_tokens: bool) -> list[np.ndarray]:
        """The graph's outputs for these, padded to the longest."""
        mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
        ids = np.zeros_like(mask)
        ids[mask == 1] = np.concatenate(encoded)
        outputs = ["sentence_embedding", "token_embeddings"] if with_tokens else ["sentence_embedding"]
        try:
            found: list[np.ndarray] = self._session.run(outputs, {"input_ids": ids, "attention_mask": mask})
        except Exception as error:  # onnxruntime raises its own family of bare exceptions
            raise EmbedderUnavailable(f"The model {self.info.model_id} failed: {error}") from error
        return found

    def _tokens(self, ids: Sequence[int], vectors: np.ndarray) -> Tokens:
        inner = np.array(ids[1:-1], np.int64)
        return Tokens((inner % 65_536).astype(np.uint16), reduce_tokens(vectors), ~self._without_content[inner])


def _windows(ids: list[int], size: int) -> list[list[int]]:
    """Cut ids into windows of at most `size`.

    Each window stands between the first and the last mark of the whole. Ids that fit stay as they are.
    """
    if len(ids) <= size:
        return [ids]
    inner, step = ids[1:-1], size - 2
    return [[ids[0], *inner[start : start + step], ids[-1]] for start in range(0, len(inner), step)]


def _without_content(tokenizer: Tokenizer) -> np.ndarray:
    """Whether each id of the vocabulary means nothing alone: English function words, and signs."""
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    empty = np.zeros(max(vocabulary.values()) + 1, bool)
    for piece, number in vocabulary.items():
        empty[number] = piece in STOP_WORDS or not any(character.isalnum() for character in piece)
    return empty


def _batches(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Row numbers, longest first, at most `budget` tokens a batch once padded (one row at least)."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // int(lengths[order[start]]))
        yield order[start : start + size]
        start += size
