"""E7: code by the words inside its identifiers, what it declares, and the order of kinds of symbols.

A generic lexer: no grammar of one language. Prose has words as well, so that a symbol is found by its words.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from processors.context_graph.rules.views.sparse import EMPTY, Sparse, feature_number, joined, sparse_of, sums
from storage.search.words.analyzer import STOP_WORDS

WORDS, KINDS = 1024, 512
"""Numbers for words, and for pairs of kinds: 1,536 in all."""
DECLARED = 3.0
"""What the words of a declared name count; others count 1."""
PAIR = 1.5
"""What two words count that stand side by side in a name, or in prose."""
_KIND_SHARE = 0.1
"""Of the squared length."""
_DECLARING = frozenset(
    [
        "def",
        "func",
        "function",
        "fn",
        "class",
        "struct",
        "interface",
        "type",
        "enum",
        "trait",
        "impl",
        "module",
        "const",
        "var",
        "let",
    ]
)
_KEYWORDS = _DECLARING | frozenset(
    [
        "if",
        "else",
        "elif",
        "for",
        "while",
        "switch",
        "case",
        "default",
        "break",
        "continue",
        "return",
        "yield",
        "try",
        "catch",
        "except",
        "finally",
        "throw",
        "raise",
        "import",
        "from",
        "package",
        "public",
        "private",
        "protected",
        "static",
        "final",
        "void",
        "int",
        "bool",
        "string",
        "float",
        "double",
        "nil",
        "null",
        "none",
        "true",
        "false",
        "self",
        "this",
        "new",
        "async",
        "await",
        "in",
        "not",
        "and",
        "or",
        "is",
        "lambda",
        "defer",
        "go",
        "chan",
        "map",
        "range",
        "select",
    ]
)
_SYMBOL = re.compile(r"""(?P<name>[^\W\d]\w*)|(?P<number>\d[\w.]*)|(?P<sign>[^\w\s])""")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_LOWER = re.compile(r"[a-z]+")
_AFTER_RECEIVER = re.compile(r"\bfunc\s*\([^()]{0,200}\)\s*([^\W\d]\w*)")


def split_name(name: str) -> list[str]:
    """The words of an identifier in lower case: `parseHTTPHeader_v2` -> parse, http, header, v, 2."""
    return [name] if _LOWER.fullmatch(name) else [part.casefold() for part in _PART.findall(name)]


def code_features(text: str) -> Sparse:
    """The unit vector of a text as code, at most 1,536 features; empty for one without symbols."""
    words: dict[str, float] = defaultdict(float)
    kinds: dict[str, float] = defaultdict(float)
    declared = set(_AFTER_RECEIVER.findall(text))
    former = before = ""
    previous: list[str] = []
    for kind, symbol in _symbols(text):
        kinds[f"{former} {kind}"] += 1
        if kind == "name":
            parts = split_name(symbol)
            weight = DECLARED if before in _DECLARING or symbol in declared else 1.0
            for part in parts:
                words[part] += weight
            for first, second in pairwise([*previous[-1:], *parts]):
                words[f"{first} {second}"] += weight * PAIR
            previous = parts or previous
        elif kind == "sign":
            previous = []
        former, before = kind, symbol
    return _vector(words, kinds)


def _symbols(text: str) -> Iterator[tuple[str, str]]:
    """(kind, symbol) in order: `name`, `number`, a keyword or sign by itself. English function words are left out."""
    for match in _SYMBOL.finditer(text):
        symbol, group = match[0], match.lastgroup
        if group == "number":
            yield "number", symbol
        elif group == "sign":
            yield symbol, "sign"
        elif symbol in _KEYWORDS:
            yield symbol, symbol
        elif symbol.casefold() not in STOP_WORDS:
            yield "name", symbol


def _vector(words: Mapping[str, float], kinds: Mapping[str, float]) -> Sparse:
    of_words = _hashed(words, "w", WORDS, 1 - _KIND_SHARE, 0)
    of_kinds = _hashed(kinds, "k", KINDS, _KIND_SHARE, WORDS)
    both = of_words | of_kinds
    if not both:
        return EMPTY
    length = math.sqrt(sum(weight * weight for weight in both.values()))
    return sparse_of({number: weight / length for number, weight in both.items()})


def _hashed(counts: Mapping[str, float], mark: str, size: int, share: float, start: int) -> dict[int, float]:
    """Features with signed weights log(1 + count), together of this squared length."""
    rows: dict[int, float] = {}
    for name, count in counts.items():
        number = feature_number(f"{mark} {name}", 2 * size)
        sign = 1 if number % 2 else -1
        rows[start + number // 2] = rows.get(start + number // 2, 0.0) + sign * math.log1p(count)
    length, root = math.sqrt(sum([weight * weight for weight in rows.values()])), math.sqrt(share)
    return {number: weight * root / length for number, weight in rows.items()} if length else {}


def code_alignments(query: Sparse, rows: Sequence[Sparse]) -> np.ndarray:
    """E7: cosines; NaN where a side has no symbols."""
    numbers, weights, owners = joined(rows)
    asked = np.zeros(WORDS + KINDS)
    asked[query.numbers] = query.weights
    found = sums(asked[numbers] * weights, owners, len(rows))
    known = np.array([len(row.numbers) > 0 for row in rows], bool) & (len(query.numbers) > 0)
    return np.where(known, found, np.nan)
