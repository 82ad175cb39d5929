"""Whether two memories say the same in words that hardly differ, so that one can stand for both.

What is near in meaning may still say the opposite: the vectors of `the port is 8080` and `the port is 8081` are nearly
one. So two texts must agree in their telling words, in order: numbers, dates, names, negations, and whose it is. And
where other words differ, these may not be contraries, nor name another thing that something is said of.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from processors.context_graph.rules.modalities import CODE, STRUCTURED, file_name
from processors.context_graph.rules.sentiment import feeling
from processors.memory.rules.change import changes
from processors.memory.rules.statement import Statement, measure, stem
from processors.memory.rules.vocabulary import OPPOSITES
from processors.memory.rules.words import word_set

MAX_ALIGNED = 400
"""Words between the first and the last difference of two texts; where there are more, they are two texts."""
LEAST_WORDS = 4
"""A shorter sentence is called out to somebody, and changes nothing: `Hey Mel!`."""
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n+")
"""What follows a colon begins anew, as after the name of a speaker."""
_SYMBOL = re.compile(r"(\w+)\(|`([^`\n]+)`")
"""A call, or what is quoted as code: its words are names."""
_NEGATIONS = word_set(
    "not no never n't cannot neither nor none nobody nothing nowhere without unable hardly barely scarcely rarely "
    "seldom "
    "fail refuse reject deny forbid lack doubt avoid except"
)
_PERSONS = word_set(
    "i you he she we they me him her us them my your his our their mine yours hers ours theirs myself yourself himself "
    "herself ourselves themselves somebody someone everybody everyone anybody anyone both all some "
    "mother father mom mum dad parent brother sister sibling son daughter wife husband partner aunt uncle cousin "
    "niece nephew grandmother grandfather grandma grandpa grandson granddaughter neighbour neighbor boss landlord "
    "tenant colleague roommate fiance girlfriend boyfriend"
)
_MOMENTS = word_set(
    "today tomorrow yesterday tonight midnight noon midday lunchtime dawn dusk sunrise sunset spring summer autumn "
    "fall "
    "winter season early late last next previous ago before after until since while during always sometimes "
    "half quarter third hundred thousand million billion dozen thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty thirty forty fifty sixty seventy eighty ninety twenties thirties forties fifties sixties "
    "seventies "
    "eighties nineties first second final only more less fewer most least"
)
_CONTRARIES = tuple(
    tuple(pair.split("/"))
    for pair in [
        "in/out",
        "up/down",
        "on/off",
        "over/under",
        "above/below",
        "inside/outside",
        "with/without",
        "left/right",
        "front/back",
        "top/bottom",
        "true/false",
        "yes/no",
        "good/bad",
        "well/badly",
        "better/worse",
        "best/worst",
        "high/low",
        "higher/lower",
        "big/small",
        "large/small",
        "long/short",
        "tall/short",
        "old/new",
        "old/young",
        "fast/slow",
        "quick/slow",
        "hot/cold",
        "warm/cool",
        "hard/easy",
        "hard/soft",
        "heavy/light",
        "dark/light",
        "rich/poor",
        "strong/weak",
        "safe/dangerous",
        "cheap/expensive",
        "clean/dirty",
        "happy/sad",
        "happy/unhappy",
        "right/wrong",
        "same/different",
        "increase/decrease",
        "raise/lower",
        "rise/fall",
        "grow/shrink",
        "gain/lose",
        "win/lose",
        "find/lose",
        "buy/sell",
        "borrow/lend",
        "give/take",
        "send/receive",
        "push/pull",
        "accept/reject",
        "accept/refuse",
        "agree/refuse",
        "allow/forbid",
        "permit/forbid",
        "approve/reject",
        "pass/fail",
        "succeed/fail",
        "include/exclude",
        "remember/forget",
        "remember/forgot",
        "remembered/forgot",
        "bought/sold",
        "won/lost",
        "gave/took",
        "sent/received",
        "left/stayed",
        "came/went",
        "rose/fell",
        "began/ended",
        "kept/lost",
        "found/lost",
        "built/destroyed",
        "led/followed",
        "taught/learned",
        "shown/hidden",
        "love/hate",
        "like/hate",
        "like/dislike",
        "begin/end",
        "start/end",
        "start/stop",
        "start/finish",
        "stop/continue",
        "open/close",
        "arrive/leave",
        "enter/leave",
        "come/go",
        "stay/go",
        "add/remove",
        "create/delete",
        "insert/delete",
        "hire/fire",
        "marry/divorce",
        "live/die",
        "build/destroy",
        "enable/disable",
        "connect/disconnect",
        "attach/detach",
        "lock/unlock",
        "encrypt/decrypt",
        "import/export",
        "upload/download",
        "show/hide",
        "public/private",
        "internal/external",
        "local/remote",
        "read/write",
        "input/output",
        "client/server",
        "full/empty",
        "present/absent",
        "optional/required",
        "minimum/maximum",
        "min/max",
        "ascending/descending",
        "horizontal/vertical",
        "manual/automatic",
        "believe/doubt",
        "keep/drop",
        "keep/delete",
        "save/delete",
        "merge/split",
        "lead/follow",
        "teach/learn",
        "ask/answer",
        "early/late",
    ]
)
_DETERMINERS = word_set("the my your his her its our their")
_OWNING = word_set("by to for")
"""What stands before who does something, or whose it is."""
_UNITS = word_set("team department group squad unit crew office company staff division branch class club")
_PLAIN = word_set(
    # what a sentence begins with and is no name
    "a an the this that these those it its there here whoa adore love what which who whose when where why how if so "
    "and but or as at by "
    "for from in of on to with then now just well yes yeah yep no ok okay oh wow hey hi hello thanks thank congrats "
    "congratulations great good nice cool awesome amazing wonderful fantastic lovely sounds sure absolutely definitely "
    "exactly totally really very actually also maybe perhaps hope glad is are was were be do does did has have had can "
    "quite simply certainly probably surely apparently could will would should may might must let please use keep "
    "get take make give ask tell try see look got going"
)
_OBJECTS = word_set("a an the my your his her its our their me you him it us them this that these those")
"""What follows a verb rather than a name."""
_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "de", "mis")
_WORDS = re.compile(r"\S+")
_DOUBLETS = {
    other: first
    for line in [
        "child/kid",
        "children/kids",
        "picture/photo/pic/photograph",
        "pictures/photos/pics/photographs",
        "film/movie",
        "films/movies",
        "people/persons/folks",
        "shop/store",
        "shops/stores",
        "bicycle/bike",
        "bicycles/bikes",
        "car/automobile",
        "cars/automobiles",
        "sofa/couch",
        "phone/telephone",
        "fridge/refrigerator",
        "television/tv/telly",
        "exam/examination",
        "aeroplane/airplane",
        "supper/dinner",
        "rubbish/garbage",
        "repository/repo",
        "repositories/repos",
        "configuration/config",
        "wow/whoa",
        "hi/hey/hello",
        "yes/yeah/yep/yup",
        "ok/okay",
    ]
    for first, *others in [line.split("/")]
    for other in others
}
"""Words for the same thing, or calls of the same kind -> the one that stands for it here."""
_OTHER_WORDS = re.compile(rf"\b(?:{'|'.join(_DOUBLETS)})\b", re.IGNORECASE)
_WRITTEN_OUT = {"m": "am", "re": "are", "ve": "have", "ll": "will"}
_CONTRACTED = re.compile(
    r"\b(?:(let)|(it|that|this|there|here|what|where|who|how|he|she))['’]s\b"
    rf"|(?<=\w)['’]({'|'.join(_WRITTEN_OUT)})\b",
    re.IGNORECASE,
)
MOST_MORE, MOST_MORE_SHARE = 2, 1 / 3
"""Each of two texts may have this many words more, or this many for each word that they share."""


@lru_cache(maxsize=8192)
def said(text: str, modality: str, ordinary: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The telling words of a text in order: two memories that say the same have the same.

    Of code and structured content every word tells. `ordinary`: words that are no names where a sentence begins with
    them.
    """
    if modality in (CODE, STRUCTURED) or file_name(text) is not None:
        return tuple(_WORDS.findall(text))
    return tuple(word for sentence in _sentences(_written_out(_plainly(text))) for word in _telling(sentence, ordinary))


def ordinary_words(texts: Sequence[str]) -> frozenset[str]:
    """The words that are written small somewhere in these texts."""
    parts = {part for text in texts for part in text.split()}  # most words come again and again
    words = {word for part in parts for word in re.findall(r"(?<![\w'])[a-z][a-z']+", part)}
    return frozenset(words | {_DOUBLETS[word] for word in words if word in _DOUBLETS})


@lru_cache(maxsize=8192)
def restate(one: str, other: str) -> bool:
    """Whether two texts with the same telling words say the same."""
    one, other = _plainly(one), _plainly(other)
    if one == other:
        return True
    first, second = _words(one), _words(other)
    start = next((place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
    if start is None and len(first) == len(second):
        return True
    blocks = _differing(first, second)
    if blocks is None or _say_more(first, second) or any(_conflict(*block) for block in blocks):
        return False
    return not any(map(_changes, _sentences(one), _sentences(other)))


def _plainly(text: str) -> str:
    """The text with one word for one thing."""

    def other(found: re.Match[str]) -> str:
        plain = _DOUBLETS[found[0].casefold()]
        return plain.capitalize() if found[0][0].isupper() else plain

    return _OTHER_WORDS.sub(other, text)


def _written_out(text: str) -> str:
    """The text with nothing drawn together: `it is` for `it's`."""

    def parts(found: re.Match[str]) -> str:
        let, other, ending = found.groups()
        return f"{let} us" if let else f"{other} is" if other else f" {_WRITTEN_OUT[ending.casefold()]}"

    return _CONTRACTED.sub(parts, text)


def _say_more(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether each of two texts says more beside what they share, or one of both more than they share."""
    first, second = ({_base(word) for word in words if word} for words in (one, other))
    less, more = sorted((len(first - second), len(second - first)))
    shared = len(first & second)
    return (less > MOST_MORE and less > MOST_MORE_SHARE * shared) or (less > 0 and more > shared)


def _changes(one: Statement, other: Statement) -> bool:
    """Whether one of two sentences that stand in the same place changes what the other says."""
    if one.words == other.words or min(len(one.raw), len(other.raw)) < LEAST_WORDS:
        return False
    return changes(one.text, other.text) or changes(other.text, one.text)


@lru_cache(maxsize=2048)
def _sentences(text: str) -> tuple[Statement, ...]:
    return tuple(Statement(part) for part in _SENTENCE.split(text) if part.strip())


def _telling(sentence: Statement, ordinary: Collection[str]) -> Iterator[str]:
    names = {name.partition("'")[0] for name in sentence.names}
    names |= {word for call in _SYMBOL.findall(sentence.text) for word in "".join(call).casefold().split()}
    if _begins_with_name(sentence, ordinary):
        names.add(_base(sentence.raw[0]))
    yield from (base for base in map(_base, sentence.raw) if base in names or _tells(base))


def _base(word: str) -> str:
    """`i` of `i'm`, `family` of `family-`."""
    return word.strip("-").partition("'")[0]


def _begins_with_name(sentence: Statement, ordinary: Collection[str]) -> bool:
    """Whether the capital at its beginning may be that of a name."""
    first, second = (*sentence.raw, "", "")[:2]
    known = _base(first) in _PLAIN or _base(first) in ordinary or second in _OBJECTS
    return sentence.text.lstrip()[:1].isupper() and not known


@lru_cache(maxsize=8192)
def _tells(word: str) -> bool:
    if not word:
        return False
    return (
        measure(word) is not None
        or measure(stem(word)) is not None
        or any(map(str.isdigit, word))
        or not word.isalpha()
        or word in _TELLING
        or (len(word) > 3 and stem(word) in _TELLING_STEMS)
    )


_TELLING = _NEGATIONS | _PERSONS | _MOMENTS
_TELLING_STEMS = frozenset(stem(word) for word in _NEGATIONS | _PERSONS if len(word) > 3) - {"the"}


@lru_cache(maxsize=2048)
def _words(text: str) -> tuple[str, ...]:
    """Its words, case-folded and written out; an empty one ends each sentence."""
    return tuple(word for sentence in _sentences(_written_out(text)) for word in (*sentence.raw, ""))


Block = tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]


def _differing(one: Sequence[str], other: Sequence[str]) -> list[Block] | None:
    """Where both differ: the words before, the differing ones of each, the words after. None where they differ too
    much to be compared."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if max(len(one), len(other)) > MAX_ALIGNED:
        return None
    return [(one[:a], one[a:b], other[c:d], one[b:]) for kind, a, b, c, d in matcher.get_opcodes() if kind != "equal"]


def _conflict(before: Sequence[str], one: Sequence[str], other: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the differing words contradict each other, or name two things of which the same is said."""
    if any(_contrary(a, b) for a in one for b in other if a and b):
        return True
    if not any(one) or not any(other):
        return False
    start = max((place for place, word in enumerate(before) if not word), default=-1) + 1
    led = before[start:]
    is_subject = len(led) == 1 and led[0] in _DETERMINERS
    is_owner = len(led) > 1 and led[-1] in _DETERMINERS and led[-2] in _OWNING and not (after and after[0])
    return is_subject or is_owner or bool(after and after[0] in _UNITS)


def _contrary(one: str, other: str) -> bool:
    if one == other:
        return False
    if feeling(one) * feeling(other) < 0:  # praise and blame
        return True
    pair = (stem(one), stem(other))
    return {pair, pair[::-1]} & _OPPOSED != set() or any(
        a == prefix + b for prefix in _PREFIXES for a, b in ((one, other), (other, one))
    )


_OPPOSED = frozenset(OPPOSITES) | {(stem(a), stem(b)) for a, b in _CONTRARIES}
