"""What a text says of causes: sentences that name a cause and its effect, or deny that it was one.

By the markers of English prose. A marker stands between effect and cause ("because"), between cause and effect ("led
to"), or before both. A part that only points back ("This led to …") is the sentence before it. A question states
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

Range = tuple[int, int]
EXPLICIT, CONDITIONAL = 0.9, 0.6
"""Confidence of a cause that is stated, and of one that is supposed, conditional or meant."""
MAX_CHARS = 16_384
"""What of a text is read for causes."""
MAX_SENTENCE = 1_000
"""A longer sentence is no prose: it states nothing."""
MAX_STATEMENTS = 32

_SENTENCE = re.compile(r"(?:[^.!?;\n。！？；]|[.!?;](?!\s|$))+(?:[.!?;]+|[。！？；\n]|$)")
_CODE = re.compile(r"```.*?(?:```|$)", re.S)
_TIME = (
    r"(?:then|when|\d|last|yesterday|this\s|early|late|mid|the\s+(?:start|beginning|end|morning|\d)|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:january|february|march|april|may|june|july|august|september|"
    r"october|november|december|spring|summer|autumn|fall|winter|childhood|forever|version|v\d)\b)"
)
_SUBJECT = (
    r"(?:now\s+|then\s+|that\s+)?(?:i|we|you|he|she|it|they|there|nobody|everyone|everybody|no|all|most|both|each|"
    r"every|the|a|an|this|these|my|our|your|his|her|its|their)|(?-i:[A-Z])\w+|"
    r"\w+\s+(?:is|are|was|were|has|had|can|cannot|could|will|gets?|got|fails?|failed|takes?|took)"
)
_VERB = (
    r"\b(?:is|are|was|were|has|have|had|can|could|will|would|does|did|do|cannot|nobody|only|hardly|\w+n['’]t|\w+ed|"
    r"\w{3,}s|took|made|went|broke|left|got|said|saw|sent|ran|fell|lost|found|gave|came|it['’]s|i['’]m|"
    r"\w+['’]re)\b"
)
_EFFECT_FIRST = re.compile(
    r"(?<!\w)(?P<of>(?:just\s+|only\s+|mainly\s+|partly\s+|simply\s+)?(?:because\s+of|due\s+to|owing\s+to|thanks\s+to|"
    r"caused\s+by|triggered\s+by|as\s+a\s+(?:direct\s+)?(?:result|consequence)\s+of|on\s+account\s+of|"
    r"(?:was\s+|were\s+|is\s+)?traced\s+(?:back\s+)?to|stem(?:s|med)\s+from|result(?:s|ed)\s+from))\b|"
    r"(?<!\w)(?P<that>(?:just\s+|only\s+|mainly\s+|partly\s+|simply\s+)?because|"
    r"['’]?cause(?=\s+(?:i|it|they|we|he|she|the|you|"
    r"there|my|of)\b)|cuz|seeing\s+that|given\s+that|as\s+it\s+turned\s+out\s+that)\b|"
    rf"(?P<since>\bsince)\b(?!\s+{_TIME})(?=[^,;.]*{_VERB})|"
    r"(?P<label>\b(?:root\s+cause|cause|reason|culprit)\s*:)",
    re.IGNORECASE,
)
_CAUSE_FIRST = re.compile(
    r"(?:,?\s*(?:and\s+)?(?:which|that)\s+)?(?<!\w)(?P<verb>(?:leads?|led|leading)\s+to|result(?:s|ed|ing)?\s+in|"
    r"(?:caused|causes|causing)(?!\s+(?:by|like|such|that|which|and|or|i|we)\b)|trigger(?:s|ed|ing)(?!\s+by))\b|"
    r"(?P<adverb>\b(?:therefore|thus|hence|consequently|as\s+a\s+(?:direct\s+)?(?:result|consequence)(?!\s+of)|"
    r"for\s+(?:this|that)\s+reason)\b)|"
    r"(?P<why>,?\s*\b(?:which|that|this)(?:['’]s|\s+is|\s+was)\s+(?:also\s+)?"
    r"(?:why|the\s+reason\s+(?:for|why|that))\b|"
    r"\b(?:is|are|was|were)\s+(?:why|the\s+(?:reason|cause)s?\s+(?:for|of|why|that))\b)|"
    rf"(?P<so>[,;]\s*(?:and\s+)?so\b(?=\s+(?:{_SUBJECT})\b))",
    re.IGNORECASE,
)
_WEAK_CAUSE_FIRST = re.compile(
    r"(?P<meant>\bso\s+that\b)|"
    rf"(?P<degree>\bso\s+\w+(?:\s+(?!that\b)[\w']+){{0,6}}?\s+(?<!like )(?<!thing )that(?=\s+(?:{_SUBJECT})\b))|"
    r"(?P<means>,?\s*(?:\bwhich\s+)?\bmean(?:s|t|ing)?\s+that\b)|"
    r"(?P<acts>(?<!that )(?<!which )\b(?:broke|breaks|forc(?:es|ed)|prevent(?:s|ed)|fill(?:s|ed)|"
    r"crash(?:es|ed)|block(?:s|ed)|free(?:s|d)|"
    r"push(?:es|ed))\b(?=\s+(?:the|our|its|all|every|both|us|it|[A-Z])\b))|"
    r"(?P<made>\bma(?:de|kes)\s+(?=(?:the|our|its|his|their|all|every|it|\w+)\s+"
    r"(?:[\w-]+\s+){0,4}?(?:take|fail|crash|break|hang|stop|impossible|un\w+able|\w+able|\w{2,}er|useless|slow)\b))",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"^\W*(?:(?:and|but|so|also)\s+)?(?P<marker>(?:because\s+of|because|due\s+to|owing\s+to|thanks\s+to|"
    r"as\s+a\s+(?:direct\s+)?(?:result|consequence)\s+of|given\s+that|"
    rf"since(?!\s+{_TIME})(?=[^,;.]*{_VERB})))\s+(?P<cause>[^,]+),\s*(?P<effect>.+)",
    re.IGNORECASE | re.S,
)
_IF = re.compile(
    r"^\W*(?P<marker>if(?!\s+you\b)|whenever)\s+(?P<cause>[^,]+),\s*(?:then\s+)?(?P<effect>.+)", re.IGNORECASE | re.S
)
_REASON_OF = re.compile(
    r"^\W*(?:the\s+)?(?:\w+\s+)?(?P<marker>(?:reason|cause)s?\s+(?:for|of|why|that))\s+(?P<effect>.+?)\s+"
    r"(?:is|was|were)\s+(?:that\s+)?(?P<cause>.+)",
    re.IGNORECASE | re.S,
)
_POINTS_BACK = re.compile(
    r"^\W*(?:(?:and|but|so|then|also)\s+)?(?:(?:all\s+)?(?:of\s+)?(?:this|that|these|those|it|which)"
    r"(?:\s+(?:is|was|has|had|in\s+turn|"
    r"also|then|probably|all|incident|change|problem|issue|error|bug|mistake))*)?\W*$",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    r"^\W*(?:\w+:\s*)?(?:i|we|you)\s+(?:\w+ly\s+)?(?:agree|think|know|see|hope|guess|understand)\W*$", re.IGNORECASE
)
_DENIED_LINK = re.compile(
    r"\b(?:not|n['’]t|never|neither|nor|isn['’]t|wasn['’]t|no\s+longer)\s+(?:\w+\s+){0,2}?$", re.IGNORECASE
)
_DENIED_VERB = re.compile(
    r"\b(?:did|do|does|was|were|is|are|has|have|had)(?:\s+not|n['’]t|\s+never)\b(?!\s+only)(?=[^,;]*$)", re.IGNORECASE
)
_DENIES = re.compile(
    r"\b(?:nothing\s+to\s+do\s+with|unrelated\s+to|ruled\s+out|not\s+to\s+blame|not\s+at\s+fault|"
    r"(?:not|n['’]t|never|neither)\s+(?:\w+\s+){0,2}?(?:(?:the|a)\s+)?(?:root\s+)?(?:reason|cause|culprit|why)\b|"
    r"(?:not|n['’]t|never)\s+(?:\w+\s+)?(?:cause|lead|led|result|trigger|break|caused|triggered)\b|"
    r"rather\s+than\s+(?:because|due)|instead\s+of\s+because|no\s+(?:causal\s+)?(?:link|connection|relation))",
    re.IGNORECASE,
)
_SINCE_THEN = re.compile(
    r"\b(?:have|has|had|been|\w+['’](?:ve|s))\s+(?:\w+\s+){0,3}?\w+(?:ed|en|ne|ad|ome|ut|ld|ught)\b"
    r"(?=[^,]*\bsince\b)|"
    r"\bsince\b[^,]*\b(?:last|first|ever|started|began|moved|met|born|kid|child|ago)\b|"
    r"\b(?:long|far|years?|months?|weeks?|ever|much|lot)\b[^,]*\bsince\b|^\W*since\b[^,]*,.*\b(?:have|has|['’]ve)\b",
    re.IGNORECASE,
)
"""A time is meant: the perfect stands beside it, or a length of time."""
_HEDGED = re.compile(
    r"\b(?:maybe|perhaps|might|probably|possibly|presumably|suspect\w*|seems?|seemed|i\s+think|"
    r"(?:may|could|would|should)\s+(?:have|be|lead|cause|result|explain|trigger|also|well)|"
    r"i\s+guess|not\s+sure|likely|if|unless|as\s+if|hypothes\w+|potential\w*|whether)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"[?？]\s*\W*$|^\W*(?:why|how\s+come|what\s+(?:caused|made))\b", re.IGNORECASE)
_WORD = re.compile(r"\w")


def denies(sentence: str) -> bool:
    """Whether a sentence says that something was not a cause."""
    return bool(_DENIES.search(sentence))


def asks(sentence: str) -> bool:
    """Whether a sentence is a question."""
    return bool(_ASKS.search(sentence))


@dataclass(frozen=True, slots=True)
class CausalStatement:
    """A cause and its effect as ranges of characters of a text.

    `sentence`: the range that states it, with the one before where a part points back. `confidence`: 0 to 1.
    `is_denied`: it says that the one was not the cause of the other. `cause` or `effect` is None where it points back
    to what stands before the text.
    """

    cause: Range | None
    effect: Range | None
    sentence: Range
    marker: str
    confidence: float
    is_denied: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says of causes: its sentences, as ranges, and what they state, in their order."""

    sentences: tuple[Range, ...]
    statements: tuple[CausalStatement, ...]


def read_causes(text: str) -> Reading:
    """The sentences of a text and the causes that they state or deny. Code between fences is not read."""
    prose = _CODE.sub(lambda code: re.sub(r"\S", " ", code[0]), text[:MAX_CHARS])
    sentences: list[Range] = []
    found: list[CausalStatement] = []
    for match in _SENTENCE.finditer(prose):
        here = _trimmed(prose, *match.span())
        if here is None:
            continue
        before = sentences[-1] if sentences else None
        sentences.append(here)
        is_prose = here[1] - here[0] <= MAX_SENTENCE
        if is_prose and len(found) < MAX_STATEMENTS and not asks(prose[slice(*here)]):
            found += _stated(prose, here, before)
    return Reading(tuple(sentences), tuple(found[:MAX_STATEMENTS]))


def _trimmed(text: str, first: int, last: int) -> Range | None:
    """The range without spaces and punctuation at its ends; None without a word."""
    while first < last and not (text[first].isalnum() or text[first] in "'’`\"([_"):
        first += 1
    while first < last and (text[last - 1].isspace() or text[last - 1] in ",;:.!-–—。！；，"):
        last -= 1
    return (first, last) if _WORD.search(text, first, last) else None


def _stated(text: str, sentence: Range, before: Range | None) -> Iterator[CausalStatement]:
    """The statements of one sentence."""
    first, last = sentence
    body = text[first:last]
    for pattern, confidence in ((_FIRST, EXPLICIT), (_IF, CONDITIONAL), (_REASON_OF, EXPLICIT)):
        found = pattern.match(body)
        if found and not (found["marker"].lower() == "since" and _SINCE_THEN.search(body)):
            cause, effect = found.span("cause"), found.span("effect")
            inner = min(_first_marker(body, at) for at in (effect[0],)) if effect[0] > cause[0] else len(body)
            effect = (effect[0], max(effect[0], inner)) if effect[0] > cause[0] else effect
            one = _made(text, sentence, before, cause, effect, found["marker"], confidence)
            if one is not None:
                yield one
            if effect[1] < len(body) and effect[0] > cause[0]:
                yield from _between(text, sentence, before, effect[0])
            return
    yield from _between(text, sentence, before, 0)


def _first_marker(body: str, start: int) -> int:
    places = [found.start() for pattern in (_EFFECT_FIRST, _CAUSE_FIRST) if (found := pattern.search(body, start))]
    return min([place for place in places if place > start], default=len(body))


def _between(text: str, sentence: Range, before: Range | None, start: int) -> Iterator[CausalStatement]:
    """Statements of markers that stand between their parts, each of which reaches to the next marker."""
    body = text[slice(*sentence)]
    markers: list[re.Match[str]] = []
    for pattern in (_EFFECT_FIRST, _CAUSE_FIRST):
        for found in pattern.finditer(body, start):
            if not any(found.start() < other.end() and other.start() < found.end() for other in markers):
                markers.append(found)
    markers = markers or list(_WEAK_CAUSE_FIRST.finditer(body, start))
    markers.sort(key=re.Match.start)
    for number, found in enumerate(markers, 1):
        end = markers[number].start() if number < len(markers) else len(body)
        is_effect_first = found.re is _EFFECT_FIRST
        confidence = CONDITIONAL if found.re is _WEAK_CAUSE_FIRST else EXPLICIT
        groups = found.groupdict()
        if groups.get("since") and _SINCE_THEN.search(body):
            continue
        left, right = (start, found.start()), (found.end(), end)
        if groups.get("acts") or groups.get("made"):
            right = (found.start(), end)  # the verb is part of what came about
        if groups.get("degree"):
            left = (start, found.end())
        if groups.get("adverb") and not _WORD.search(body, *right):  # "…, and mail stalled as a result"
            comma = body.rfind(",", start, found.start())
            left, right = ((start, comma), (comma + 1, found.start())) if comma > start else ((start, start), left)
        cause, effect = (right, left) if is_effect_first else (left, right)
        one = _made(text, sentence, before, cause, effect, found[0], confidence)
        if one is not None:
            is_denied = one.is_denied or _is_denied(body, found, groups)
            yield replace(one, is_denied=is_denied)
        start = found.end()


def _is_denied(body: str, marker: re.Match[str], groups: dict[str, str | None]) -> bool:
    """Whether what stands before the marker takes it back."""
    left = body[: marker.start()]
    return bool(_DENIED_LINK.search(left)) or bool(groups.get("of") and _DENIED_VERB.search(left))


def _made(
    text: str, sentence: Range, before: Range | None, cause: Range, effect: Range, marker: str, confidence: float
) -> CausalStatement | None:
    """A statement of these parts of a sentence; None of one in which nothing is left to be compared."""
    first, last = sentence
    body = text[first:last]
    parts: list[Range | None] = []
    whole = sentence
    for begin, end in (cause, effect):
        if _POINTS_BACK.match(body[begin:end]):
            parts.append(before)
            whole = sentence if before is None else (before[0], last)
        else:
            says_nothing = _SAYS_NOTHING.match(body[begin:end])
            parts.append(None if says_nothing else _trimmed(text, first + begin, first + end))
    if (parts[0] is None and parts[1] is None) or parts[0] == parts[1]:
        return None
    hedged = CONDITIONAL if _HEDGED.search(body) else confidence
    is_denied = denies(body)
    return CausalStatement(parts[0], parts[1], whole, " ".join(marker.split()).strip(" ,;").lower(), hedged, is_denied)
