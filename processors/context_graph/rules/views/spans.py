"""Where a text names cause and effect, and head and tail of a relation, as ranges of characters.

By markers, sentence by sentence: patterns of English, and the commonest of German, French, Spanish and Chinese. A text
without a marker has no spans, and its pools are those of the whole text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

Range = tuple[int, int]
CAUSE, EFFECT, HEAD, TAIL = range(4)
_SENTENCE = re.compile(r"[^.!?;。！？；\n]+[.!?;。！？；\n]*")
_WHY = re.compile(
    r"^\W*(?:why|how\s+come|what\s+(?:is|was|were|are)\s+the\s+(?:cause|reason)s?\s+(?:of|for|why)|"
    r"what\s+(?:caus(?:es|ed)|led\s+to|leads\s+to|made|makes)|warum|weshalb|pourquoi|por\s+qu[eé]|为什么|為什麼)",
    re.IGNORECASE,
)
_WHAT_FOLLOWS = re.compile(
    r"^\W*(?:what\s+(?:happens|happened|follows|followed)\s+(?:if|when|after|from)|"
    r"what\s+(?:is|was|are|were)\s+the\s+(?:effect|result|consequence|impact)s?\s+of|"
    r"what\s+(?:does|do|did|will|would)\s+(?=.*\b(?:cause|lead\s+to|result\s+in)\b))",
    re.IGNORECASE,
)
_EFFECT_FIRST = re.compile(
    r"\b(?:because(?:\s+of)?|due\s+to|owing\s+to|thanks\s+to|caused\s+by|as\s+a\s+(?:result|consequence)\s+of|"
    r"on\s+account\s+of|weil|wegen|parce\s+que|porque|debido\s+a)\b|因为|因為|由于|由於",
    re.IGNORECASE,
)
_CAUSE_FIRST = re.compile(
    r"\b(?:causes?|caused|leads?\s+to|led\s+to|leading\s+to|results?\s+in|resulted\s+in|resulting\s+in|"
    r"triggers?|triggered|therefore|thus|hence|consequently|as\s+a\s+result|so\s+that|which\s+is\s+why|deshalb|"
    r"daher|führt\s+zu|donc|por\s+eso)\b|,\s*so\b|所以|因此|导致|導致",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"^\W*(?:if|because|since|when|whenever|wenn|weil|因为|因為)\b([^,，]*)[,，](.*)", re.IGNORECASE | re.S
)
_RELATION = re.compile(
    r"\b(?:is|are|was|were|has|have|had|uses?|used|depends?\s+on|calls?|contains?|owns?|belongs?\s+to|"
    r"works?\s+(?:at|for|on|with)|lives?\s+in|wrote|writes?|created?|creates|replaces?|replaced|extends?|implements?|"
    r"imports?|returns?|manages?|managed|leads|reports?\s+to|reviews?|reviewed|built|builds|maintains?|married|likes?|"
    r"loves?|bought|sold|gave|sent|describes?|requires?|needs?|runs?\s+on|fixes|fixed|breaks|broke|ist|sind|hat|est|"
    r"es|son|tiene)\b|是|有|使用|属于",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"^\W*(?:wh(?:o|at|en|ere|ich|ose|y)|how|is|are|do|does|did|can|could)\b|[?？]\s*$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class MarkedSpans:
    """Ranges of characters by CAUSE, EFFECT, HEAD and TAIL.

    `asked`: CAUSE or EFFECT, when a question wants it."""

    ranges: tuple[tuple[Range, ...], ...] = ((), (), (), ())
    asked: int | None = None

    def __bool__(self) -> bool:
        return any(self.ranges)


NO_SPANS = MarkedSpans()


def spans_of(text: str) -> MarkedSpans:
    """The spans of a text. A question that asks for a cause has only the effect, and the reverse."""
    ranges: list[list[Range]] = [[], [], [], []]
    asked = None
    for sentence in _SENTENCE.finditer(text):
        body, start = sentence[0], sentence.start()
        wanted = _asked(body)
        if wanted is not None:
            found, asked = {EFFECT if wanted == CAUSE else CAUSE: _matter(body)}, wanted
        else:
            found = _causal(body) | _relation(body)
        for kind, (first, last) in found.items():
            ranges[kind].append((start + first, start + last))
    return MarkedSpans(tuple(tuple(some) for some in ranges), asked) if any(ranges) else NO_SPANS


def _asked(sentence: str) -> int | None:
    if _WHY.match(sentence):
        return CAUSE
    return EFFECT if _WHAT_FOLLOWS.match(sentence) else None


def _matter(sentence: str) -> Range:
    """The sentence behind the words with which it asks."""
    marker = _WHY.match(sentence) or _WHAT_FOLLOWS.match(sentence)
    return (marker.end() if marker else 0), len(sentence)


def _causal(sentence: str) -> dict[int, Range]:
    if condition := _CONDITION.match(sentence):
        return {CAUSE: condition.span(1), EFFECT: condition.span(2)}
    for pattern, first, last in ((_EFFECT_FIRST, EFFECT, CAUSE), (_CAUSE_FIRST, CAUSE, EFFECT)):
        marker = pattern.search(sentence)
        if marker and sentence[: marker.start()].strip() and sentence[marker.end() :].strip(" .!?\n"):
            return {first: (0, marker.start()), last: (marker.end(), len(sentence))}
    return {}


def _relation(sentence: str) -> dict[int, Range]:
    marker = None if _QUESTION.search(sentence) else _RELATION.search(sentence)
    if marker is None or not sentence[: marker.start()].strip() or not sentence[marker.end() :].strip(" .!?\n"):
        return {}
    return {HEAD: (0, marker.start()), TAIL: (marker.end(), len(sentence))}


def flags_of(spans: MarkedSpans, starts: np.ndarray) -> np.ndarray:
    """(4, n) bool: in which spans the tokens are that start at (n,) characters."""
    flags = np.zeros((4, len(starts)), bool)
    for kind, ranges in enumerate(spans.ranges):
        for first, last in ranges:
            flags[kind] |= (starts >= first) & (starts < last)
    return flags
