"""Writes the ONNX graph of a BERT sentence encoder from its safetensors file.

The graph has the encoder, mean pooling and scaling to unit length. It is written op by op from the weights, in standard
operators (opset 20), so that neither torch nor an exporter is needed; ONNX Runtime fuses what is worth fusing. Its
cosine to sentence-transformers is at least 0.9999995 (`tests/models`). `int8_onnx` writes a smaller graph, less exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

OPSET = 20
IR_VERSION = 9
GRAPH_VERSION = 2
"""Raised when the graph changes, so that cached files of an older shape are not used."""


@dataclass(frozen=True, slots=True)
class BertConfig:
    """The numbers of a checkpoint's config.json that shape the graph; the defaults are all-MiniLM-L6-v2's."""

    heads: int = 12
    hidden: int = 384
    layers: int = 6
    epsilon: float = 1e-12


def build_graph(weights_file: Path, config: BertConfig = BertConfig()) -> bytes:
    """The serialised model of a checkpoint's weights.

    Inputs: `input_ids`, `attention_mask` int64 (batch, tokens). Outputs: `sentence_embedding` float32 (batch, hidden)
    of unit rows, `token_embeddings` float32 (batch, tokens, hidden).
    """
    return BertGraph(read_weights(weights_file), config).serialised()


def read_weights(file: Path) -> dict[str, np.ndarray]:
    """The checkpoint's tensors by name, as float32."""
    from safetensors.numpy import load_file

    return {name: value.astype(np.float32) for name, value in load_file(file).items() if value.dtype.kind == "f"}


class BertGraph:
    """A graph under construction: each method appends nodes and returns the name of its output."""

    def __init__(self, weights: Mapping[str, np.ndarray], config: BertConfig = BertConfig()) -> None:
        self.weights, self.config = weights, config
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, onnx.TensorProto] = {}

    def serialised(self, extra_outputs: Sequence[str] = ()) -> bytes:
        """The whole encoder; `extra_outputs` name float vectors given besides the two."""
        import onnx
        from onnx import TensorProto, helper

        self.encode_and_pool()
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
            for name in ("input_ids", "attention_mask")
        ]
        outputs = [
            helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", self.config.hidden]),
            helper.make_tensor_value_info(
                "token_embeddings", TensorProto.FLOAT, ["batch", "tokens", self.config.hidden]
            ),
            *(helper.make_tensor_value_info(name, TensorProto.FLOAT, [None]) for name in extra_outputs),
        ]
        body = helper.make_graph(self.nodes, "bert_sentence_encoder", inputs, outputs, list(self.initializers.values()))
        model = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString())

    def encode_and_pool(self) -> None:
        mask = self.op("Cast", "attention_mask", to=_float_type())
        dropped = self.op("Sub", self.const("one", np.float32(1)), self.op("Unsqueeze", mask, self.ints(1, 2)))
        bias = self.op("Mul", dropped, self.const("least", np.float32(np.finfo(np.float32).min)))
        tokens = self.embeddings()
        for number in range(self.config.layers):
            tokens = self.layer(tokens, bias, f"encoder.layer.{number}")
        self.op("Identity", tokens, out="token_embeddings")
        # the mean's divisor cancels when the row is scaled to length 1: the sum's direction is enough
        kept = self.op("Mul", tokens, self.op("Unsqueeze", mask, self.ints(-1)))
        total = self.op("ReduceSum", kept, self.ints(1), keepdims=0)
        self.op("LpNormalization", total, axis=-1, p=2, out="sentence_embedding")

    def embeddings(self) -> str:
        """Word + position (+ the constant token type 0) embeddings, normalised."""
        prefix = "embeddings"
        types = self.weights[f"{prefix}.token_type_embeddings.weight"]
        positions = self.weights[f"{prefix}.position_embeddings.weight"] + types[0]
        words = self.words(f"{prefix}.word_embeddings.weight")
        length = self.op("Shape", "input_ids", start=1, end=2)
        places = self.op("Slice", self.const(f"{prefix}.positions", positions), self.ints(0), length, self.ints(0))
        return self.norm(self.op("Add", words, places), f"{prefix}.LayerNorm")

    def layer(self, tokens: str, bias: str, prefix: str) -> str:
        """One encoder layer; `bias` is 0 for tokens and very negative for padding."""
        config, size = self.config, self.config.hidden // self.config.heads
        joined = self.linear(tokens, *self.query_key_value(f"{prefix}.attention.self"), f"{prefix}.query_key_value")
        # (batch, tokens, 3 x hidden) -> 3 x (batch, heads, tokens, size)
        parts = self.op(
            "Transpose", self.op("Reshape", joined, self.ints(0, 0, 3, config.heads, size)), perm=[2, 0, 3, 1, 4]
        )
        query, key, value = (
            self.op("Gather", parts, self.const(f"part_{number}", np.int64(number)), axis=0) for number in range(3)
        )
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        shares = self.op("Softmax", self.op("Add", scores, bias), axis=-1)
        context = self.op("Transpose", self.op("MatMul", shares, value), perm=[0, 2, 1, 3])
        context = self.op("Reshape", context, self.ints(0, 0, config.hidden))
        attended = self.op("Add", self.dense(context, f"{prefix}.attention.output.dense"), tokens)
        attended = self.norm(attended, f"{prefix}.attention.output.LayerNorm")
        inner = self.op("Gelu", self.dense(attended, f"{prefix}.intermediate.dense"))
        return self.norm(
            self.op("Add", self.dense(inner, f"{prefix}.output.dense"), attended), f"{prefix}.output.LayerNorm"
        )

    def query_key_value(self, prefix: str) -> tuple[np.ndarray, np.ndarray]:
        """One weight (hidden, 3 x hidden) and bias for the three; attention's scale is in the query's already."""
        weights = [self.weights[f"{prefix}.{part}.weight"].T for part in ("query", "key", "value")]
        biases = [self.weights[f"{prefix}.{part}.bias"] for part in ("query", "key", "value")]
        scale = np.float32((self.config.hidden // self.config.heads) ** -0.5)
        return np.concatenate([weights[0] * scale, *weights[1:]], axis=1), np.concatenate(
            [biases[0] * scale, *biases[1:]]
        )

    def dense(self, tokens: str, prefix: str) -> str:
        return self.linear(tokens, self.weights[f"{prefix}.weight"].T, self.weights[f"{prefix}.bias"], prefix)

    def linear(self, tokens: str, weight: np.ndarray, bias: np.ndarray, name: str) -> str:
        """(…, inputs) x `weight` (inputs, outputs) + `bias`."""
        product = self.op("MatMul", tokens, self.const(f"{name}.weight", weight))
        return self.op("Add", product, self.const(f"{name}.bias", bias))

    def words(self, name: str) -> str:
        """(batch, tokens, hidden): the row of each id."""
        return self.op("Gather", self.weight(name), "input_ids")

    def norm(self, tokens: str, prefix: str) -> str:
        scale, bias = self.weight(f"{prefix}.weight"), self.weight(f"{prefix}.bias")
        return self.op("LayerNormalization", tokens, scale, bias, axis=-1, epsilon=self.config.epsilon)

    def op(self, kind: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        from onnx import helper

        out = out or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [out], name=f"{out}_node", **attributes))
        return out

    def const(self, name: str, value: Any) -> str:
        from onnx import numpy_helper

        if name not in self.initializers:
            array = np.asarray(value)
            # ascontiguousarray makes a vector of a scalar, and a scalar here must stay one
            self.initializers[name] = numpy_helper.from_array(
                np.ascontiguousarray(array) if array.ndim else array, name
            )
        return name

    def ints(self, *values: int) -> str:
        return self.const("ints_" + "_".join(map(str, values)), np.array(values, np.int64))

    def weight(self, name: str) -> str:
        return self.const(name, self.weights[name])


def _float_type() -> int:
    from onnx import TensorProto

    return int(TensorProto.FLOAT)
