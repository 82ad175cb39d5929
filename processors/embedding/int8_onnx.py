"""Writes the BERT graph with 8-bit products, at a cosine of .999 to the original.

It takes less than half of the time and a third of the memory. Weights have a scale per output, activations one per
token: a text's vector does not depend on its batch, as it would with the runtime's own dynamic quantisation (one scale
per tensor). What makes 8 bits enough is to level the inputs first (SmoothQuant, Xiao et al. 2023): a few of BERT's
channels are ten times the others', and a token's scale would be theirs alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from processors.embedding.bert_onnx import IR_VERSION, OPSET, BertConfig, BertGraph, read_weights

GRAPH_VERSION = 1
"""Raised when the graph changes, so that cached files of an older shape are not used."""

_LARGEST = 127
_PROBE = 64
_SHARE = 0.6
"""How much of a channel's range moves into the weights: .4 to .75 were tried, see docs/adr/0010."""
_STEPS = 4
"""Levels are rounded to quarters of an octave, so that every machine makes the same graph of the same weights."""
_SAMPLES = (
    "The deployment failed because the database migration had not been applied before the new version started.",
    "Can you find out why the test suite takes four minutes, and which tests are the slowest?",
    "def read_lines(path: Path) -> list[str]: return path.read_text(encoding='utf-8').splitlines()",
    "ConnectionRefusedError: [Errno 111] connect to 127.0.0.1:5432 refused after 3 attempts (retry in 2.5 s)",
    "I prefer tea to coffee, but on Sundays my grandmother makes the best espresso in the whole town.",
    "We decided to keep the old format until March 2025; then Alice and Bob will write the converter.",
    "no",
    "SELECT name, count(*) FROM tool_calls WHERE is_error GROUP BY name ORDER BY 2 DESC LIMIT 10;",
    "Das Wasser des Flusses war im Frühling so hoch, dass die Brücke gesperrt werden musste.",
    "東京タワーへ行く前に、駅で友達を待ちます。",
    "Q: What is the capital of Australia? A: Canberra, not Sydney - a common mistake!",
    "After the merger the company's revenue grew by 12.7 % to $3.4 billion, while margins shrank.",
    "She whispered, almost inaudibly, that nobody would ever believe what she had seen in the attic.",
    "Refactor the parser; keep the public interface; add a regression test for empty input; update the changelog.",
    "Los niños juegan en la plaza mientras sus padres hablan de fútbol y de política.",
    '{"status": "error", "code": 429, "message": "rate limit exceeded", "retry_after_ms": 1500}',
)


def build_int8_graph(
    weights_file: Path, tokenizer: Path, config: BertConfig = BertConfig(), *, signed: bool = True
) -> bytes:
    """The serialised model, with `bert_onnx.build_graph`'s inputs and outputs.

    With `signed` False the weights are unsigned too, for a processor on which `products_are_exact` says no: equal
    results, more slowly.
    """
    weights = read_weights(weights_file)
    return _Int8Graph(weights, config, _ranges(weights, config, tokenizer), signed=signed).serialised()


def build_probe() -> bytes:
    """One 8-bit product, for `products_are_exact`."""
    from onnx import TensorProto, helper

    given = [
        helper.make_tensor_value_info("a", TensorProto.UINT8, [1, _PROBE]),
        helper.make_tensor_value_info("b", TensorProto.INT8, [_PROBE, 16]),
    ]
    made = [helper.make_tensor_value_info("c", TensorProto.INT32, [1, 16])]
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["c"])], "probe", given, made)
    return bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        ).SerializeToString()
    )


def products_are_exact(probe: Path) -> bool:
    """Whether this processor's products of unsigned with signed 8-bit numbers are right for every input.

    Before AVX512-VNNI, x86 adds pairs of them in 16 bits, which overflow. Those of two unsigned numbers are right: the
    runtime widens both to 16 bits and adds pairs in 32.
    """
    import onnxruntime

    session = onnxruntime.InferenceSession(str(probe), providers=["CPUExecutionProvider"])
    [found] = session.run(
        None, {"a": np.full((1, _PROBE), 255, np.uint8), "b": np.full((_PROBE, 16), _LARGEST, np.int8)}
    )
    return bool((found == 255 * _LARGEST * _PROBE).all())


class _Ranges(BertGraph):
    """The original graph, which also tells the largest magnitude of each input channel of each product."""

    def __init__(self, weights: Mapping[str, np.ndarray], config: BertConfig) -> None:
        super().__init__(weights, config)
        self.found: list[str] = []

    def linear(self, tokens: str, weight: np.ndarray, bias: np.ndarray, name: str) -> str:
        self.found.append(self.op("ReduceMax", self.op("Abs", tokens), self.ints(0, 1), keepdims=0, out=name))
        return super().linear(tokens, weight, bias, name)


def _ranges(weights: Mapping[str, np.ndarray], config: BertConfig, tokenizer: Path) -> dict[str, np.ndarray]:
    """For each product the largest magnitude of each of its inputs over the samples."""
    import onnxruntime
    from tokenizers import Tokenizer

    graph = _Ranges(weights, config)
    body = graph.serialised(graph.found)  # which is filled meanwhile
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(body, options, providers=["CPUExecutionProvider"])
    reader = Tokenizer.from_file(str(tokenizer))
    reader.no_padding()
    largest: dict[str, np.ndarray] = {}
    for one in reader.encode_batch(list(_SAMPLES)):
        ids = np.array([one.ids], np.int64)
        seen = session.run(graph.found, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        for name, found in zip(graph.found, seen, strict=True):
            largest[name] = np.maximum(largest.get(name, found), found)
    return largest


class _Int8Graph(BertGraph):
    def __init__(
        self, weights: Mapping[str, np.ndarray], config: BertConfig, ranges: Mapping[str, np.ndarray], *, signed: bool
    ) -> None:
        super().__init__(weights, config)
        self.ranges, self.signed = ranges, signed

    def words(self, name: str) -> str:
        """Half precision is plenty for a table that is only looked up, and it is half of the file."""
        from onnx import TensorProto

        found = self.op("Gather", self.const(name, self.weights[name].astype(np.float16)), "input_ids")
        return self.op("Cast", found, to=TensorProto.FLOAT)

    def linear(self, tokens: str, weight: np.ndarray, bias: np.ndarray, name: str) -> str:
        from onnx import TensorProto

        levels = _levels(self.ranges[name], weight)
        levelled = weight * levels[:, None]
        scales = np.maximum(np.abs(levelled).max(axis=0), np.finfo(np.float32).tiny) / _LARGEST
        whole = np.clip(np.round(levelled / scales), -_LARGEST, _LARGEST)

        level = self.op("Mul", tokens, self.const(f"{name}.levels", 1 / levels))
        largest = self.op("ReduceMax", self.op("Abs", level), self.ints(-1), keepdims=1)
        largest = self.op("Max", largest, self.const("tiny", np.float32(1e-9)))
        rounded = self.op(
            "Round", self.op("Mul", level, self.op("Div", self.const("largest", np.float32(_LARGEST)), largest))
        )
        shifted = self.op("Add", rounded, self.const("shift", np.float32(_LARGEST + 1)))
        unsigned = self.op("Cast", shifted, to=TensorProto.UINT8)
        zero = self.const("zero_point", np.uint8(_LARGEST + 1))
        columns = whole.astype(np.int8) if self.signed else (whole + _LARGEST + 1).astype(np.uint8)
        zeros = (zero,) if self.signed else (zero, zero)  # of rows, and of columns
        product = self.op("MatMulInteger", unsigned, self.const(f"{name}.weight", columns), *zeros)
        product = self.op("Cast", product, to=TensorProto.FLOAT)
        scaled = self.op("Mul", product, self.const(f"{name}.scales", (scales / _LARGEST).astype(np.float32)))
        return self.op("Add", self.op("Mul", scaled, largest), self.const(f"{name}.bias", bias))


def _levels(ranges: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The factor by which each input channel is divided and its weights are multiplied.

    It brings the ranges and the weights of all channels nearer to each other.
    """
    reach = np.maximum(ranges, 1e-3) ** _SHARE / np.maximum(np.abs(weight).max(axis=1), 1e-6) ** (1 - _SHARE)
    octaves = np.log2(reach)
    levels: np.ndarray = np.exp2(np.round((octaves - octaves.mean()) * _STEPS) / _STEPS).astype(np.float32)
    return levels
