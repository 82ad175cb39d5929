"""What the views compare of a stored text beside its vectors, and the bytes in which it is kept."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from processors.context_graph.rules.views.fingerprint import TextFeatures
from processors.context_graph.rules.views.lexical import Terms
from processors.context_graph.rules.views.multimodal import FEATURES
from processors.context_graph.rules.views.pools import SIDES
from processors.context_graph.rules.views.spans import NO_SPANS, MarkedSpans
from processors.context_graph.rules.views.sparse import Sparse
from processors.context_graph.rules.views.times import Moment

FORMAT = "1"
"""Of the bytes, and of what the features are: another one makes all rows anew."""
_HEAD = struct.Struct("<dqiIHHHHBbB")
_NO_PLACE = -1
_BITS_BYTES = 128


@dataclass(frozen=True, slots=True)
class StoredText:
    """What of a stored memory never changes under one model, but for its vectors.

    `token_count`: how many token vectors it was made with. `flags`: (4, n) bool, in which spans they are; None where no
    span is marked.
    """

    moment: Moment
    features: TextFeatures
    token_count: int = 0
    flags: np.ndarray | None = None


def pack_text(one: StoredText) -> bytes:
    """The bytes of a stored text: 0.7 KB for 24 words."""
    moment, features = one.moment, one.features
    counts, kinds = features.terms.counts, np.flatnonzero(features.kind)
    session = b"" if moment.session is None else moment.session.encode(errors="surrogatepass")
    asked = features.spans.asked
    head = _HEAD.pack(
        *(moment.at, _number(moment.position), _number(moment.place), features.terms.length),
        *(len(counts.numbers), len(features.code.numbers), one.token_count, len(session), len(kinds)),
        *(_NO_PLACE if asked is None else asked, (one.flags is not None) + 2 * (moment.session is not None)),
    )
    parts = (
        counts.numbers.astype("<u4"),
        counts.weights.astype("<u2"),
        features.code.numbers.astype("<u2"),
        features.code.weights.astype("<f4"),
        kinds.astype(np.uint8),
        features.kind[kinds].astype("<f4"),
        features.bits,
        np.empty(0, np.uint8) if one.flags is None else np.packbits(one.flags),
    )
    return b"".join([head, session, *(part.tobytes() for part in parts)])


def unpack_text(body: bytes) -> StoredText:
    """What `pack_text` made bytes of. Its features have no spans: `flags` says where they were."""
    at, position, place, length, terms, codes, tokens, session, kinds, asked, has = _HEAD.unpack_from(body)
    reached = _HEAD.size + session

    def taken(kind: str, count: int) -> np.ndarray:
        nonlocal reached
        found = np.frombuffer(body, kind, count, reached)
        reached += found.nbytes
        return found

    counts = Sparse(taken("<u4", terms).astype(np.int64), taken("<u2", terms).astype(np.float32))
    code = Sparse(taken("<u2", codes).astype(np.int64), taken("<f4", codes).astype(np.float32))
    kind = np.zeros(FEATURES, np.float32)
    places = taken("u1", kinds)
    kind[places] = taken("<f4", kinds)
    bits = taken("u1", _BITS_BYTES).copy()
    flags = None
    if has & 1:
        packed = taken("u1", -(-SIDES * tokens // 8))
        flags = np.unpackbits(packed, count=SIDES * tokens).astype(bool).reshape(SIDES, tokens)
    name = body[_HEAD.size : _HEAD.size + session].decode(errors="surrogatepass") if has & 2 else None
    spans = NO_SPANS if asked == _NO_PLACE else MarkedSpans(asked=asked)
    moment = Moment(at, name, _known(place), _known(position))
    return StoredText(moment, TextFeatures(Terms(counts, length), code, bits, kind, spans), tokens, flags)


def _number(value: int | None) -> int:
    return _NO_PLACE if value is None else value


def _known(value: int) -> int | None:
    return None if value == _NO_PLACE else value
