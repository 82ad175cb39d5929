"""E10: what a memory is about, and what it is: its modality, the files it names, its size."""

from __future__ import annotations

import math
import re

import numpy as np

from processors.context_graph.rules.views.sparse import feature_number
from streams.event_types.context_graph import MODALITIES

TEXT_SHARE = 0.9
"""Of the squared length; the rest is what the memory is."""
FEATURES = 96
_SIZES, _EXTENSIONS = 16, FEATURES - len(MODALITIES) - 16
_SIZE_SHARE = 0.5
_EXTENSION = re.compile(r"[\w-]\.([A-Za-z][A-Za-z0-9]{0,5})(?![\w.])")
_CUES = {
    "image": re.compile(r"\b(?:images?|pictures?|photos?|screenshots?|diagrams?|drawings?|png|jpe?g|svg)\b", re.I),
    "audio": re.compile(r"\b(?:audio|recordings?|podcasts?|voice|sound|mp3|wav)\b", re.I),
    "code": re.compile(r"\b(?:code|functions?|class|method|snippet|script|source)\b|=>|\(\)|[{};]\s*$", re.I | re.M),
    "structured": re.compile(r"\b(?:json|csv|yaml|table|columns?|schema)\b|^\s*[{\[]\s*\"", re.I),
}
_PLAIN = "text"
"""A text that names an image is about one: that says more of it than that it is a text."""
_WEAK = 0.5


def kind_features(text: str, modality: str) -> np.ndarray:
    """(96,) float32 of length 1: modality, kinds that the text names, file endings, and size."""
    row = np.zeros(FEATURES, np.float32)
    named = [name for name, cue in _CUES.items() if cue.search(text)]
    for name in named:
        row[MODALITIES.index(name)] = 1 if modality == _PLAIN else _WEAK
    row[MODALITIES.index(modality) if modality in MODALITIES else 0] = _WEAK if named and modality == _PLAIN else 1
    for ending in set(_EXTENSION.findall(text)):
        row[len(MODALITIES) + feature_number(ending.casefold(), _EXTENSIONS)] = _WEAK
    size = min(math.log2(len(text) + 1) / 20, 1.0) * (_SIZES - 1)
    low = int(size)
    start = FEATURES - _SIZES
    row[start + low] += _SIZE_SHARE * (1 - size + low)
    if low + 1 < _SIZES:
        row[start + low + 1] += _SIZE_SHARE * (size - low)
    found: np.ndarray = row / np.linalg.norm(row)
    return found


def multimodal_alignments(cosines: np.ndarray, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """E10: (n,) cosines of the texts and (96,), (n, 96) features -> what both together say."""
    aligned: np.ndarray = TEXT_SHARE * cosines + (1 - TEXT_SHARE) * (rows @ query)
    return aligned
