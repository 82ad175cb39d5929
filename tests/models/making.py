"""Small checkpoints with random weights, saved by transformers and sentence-transformers as a hub's are.

The libraries are imported where they are used: they are not in the environment of the other tests, which collect this.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

WIDTH, LONGEST = 32, 48
LETTERS = "abcdefghijklmnopqrstuvwxyz:."
PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    "river",
    "build",
    "query",
]
LAYERS = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
COLOURS = "clip, of colours"
SHADES = {"red": (220, 30, 30), "green": (30, 200, 40), "blue": (30, 40, 220), "white": (245, 245, 245)}
PROMPTS = {"query": "query: ", "passage": "passage: "}


def make(kind: str, folder: Path) -> Path:
    """A checkpoint of this kind in `folder`: a key of MAKERS, or COLOURS."""
    import torch

    torch.manual_seed(7)
    (MAKERS | {COLOURS: _clip_of_colours})[kind](folder.parent / f"{folder.name}-parts").save(str(folder))
    return folder


def _dense(parts: Path, pooling: str = "mean", prompts: dict[str, str] | None = None) -> Any:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    return SentenceTransformer(
        modules=[_bert(parts), Pooling(WIDTH, pooling_mode=pooling)], prompts=prompts, device="cpu"
    )


def _projected(parts: Path) -> Any:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense, Normalize
    from sentence_transformers.sentence_transformer.modules import Pooling

    return SentenceTransformer(
        modules=[_bert(parts), Pooling(WIDTH, pooling_mode="mean"), Dense(WIDTH, 12), Normalize()], device="cpu"
    )


def _sparse(parts: Path) -> Any:
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    return SparseEncoder(modules=[_bert(parts, "fill-mask"), SpladePooling("max")], device="cpu")


def _multi_vector(parts: Path) -> Any:
    from sentence_transformers import MultiVectorEncoder

    _bert(parts)
    return MultiVectorEncoder(str(parts), device="cpu")


def _clip(parts: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(_images_and_texts(parts)), device="cpu")


def _older_clip(parts: Path) -> Any:
    """As sentence-transformers saved them before its version 5.4, the official ones among them."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import CLIPModel

    return SentenceTransformer(modules=[CLIPModel(str(_images_and_texts(parts)))], device="cpu")


def _clip_of_colours(parts: Path) -> Any:
    """Trained on the names of SHADES beside images of them: half a minute of a core at most."""
    import torch
    from PIL import Image
    from sentence_transformers import SentenceTransformer
    from transformers import CLIPModel, CLIPProcessor

    place = _images_and_texts(parts)
    model, processor = CLIPModel.from_pretrained(place), CLIPProcessor.from_pretrained(place)
    images = [Image.new("RGB", (16, 16), shade) for shade in SHADES.values()]
    given = processor(text=list(SHADES), images=images, return_tensors="pt", padding=True)
    steps = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss = 1.0
    for _ in range(300):
        noise = 0.05 * torch.randn_like(given["pixel_values"])
        found = model(**{**given, "pixel_values": given["pixel_values"] + noise}, return_loss=True)
        steps.zero_grad()
        found.loss.backward()
        steps.step()
        loss = 0.9 * loss + 0.1 * float(found.loss)
        if loss < 0.02:
            break
    assert loss < 0.1, f"the colours were not learnt: {loss}"
    model.save_pretrained(place)
    return SentenceTransformer(str(place), device="cpu")


MAKERS = {
    "dense": _dense,
    "dense, first token": lambda parts: _dense(parts, "cls"),
    "dense, with prompts": lambda parts: _dense(parts, prompts=PROMPTS),
    "dense, projected": _projected,
    "sparse": _sparse,
    "multi-vector": _multi_vector,
    "clip": _clip,
    "clip, older": _older_clip,
}


def _bert(parts: Path, task: str = "feature-extraction") -> Any:
    """The transformer module over a BERT in `parts`, which has a language-model head for `fill-mask`."""
    from sentence_transformers.base.modules import Transformer
    from transformers import BertConfig, BertForMaskedLM, BertModel, BertTokenizer

    config = BertConfig(vocab_size=len(PIECES), max_position_embeddings=64, **LAYERS)
    (BertForMaskedLM if task == "fill-mask" else BertModel)(config).save_pretrained(parts)
    BertTokenizer(
        vocab={piece: number for number, piece in enumerate(PIECES)}, model_max_length=LONGEST
    ).save_pretrained(parts)
    return Transformer(str(parts), transformer_task=task)


def _images_and_texts(parts: Path) -> Path:
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor, CLIPTokenizer

    pieces = [*LETTERS, *(f"{letter}</w>" for letter in LETTERS), "<|startoftext|>", "<|endoftext|>"]
    start, end = len(pieces) - 2, len(pieces) - 1
    marks = {"bos_token_id": start, "eos_token_id": end, "pad_token_id": end}
    texts = {"vocab_size": len(pieces), "max_position_embeddings": LONGEST, **LAYERS, **marks}
    images = {"image_size": 16, "patch_size": 8, **LAYERS}
    CLIPModel(CLIPConfig(text_config=texts, vision_config=images, projection_dim=20)).save_pretrained(parts)
    tokenizer = CLIPTokenizer(
        vocab={piece: number for number, piece in enumerate(pieces)}, merges=[], model_max_length=LONGEST
    )
    pictures = CLIPImageProcessor(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    CLIPProcessor(image_processor=pictures, tokenizer=tokenizer).save_pretrained(parts)
    return parts
