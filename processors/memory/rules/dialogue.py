"""Lines of a dialogue: who speaks is whom a statement is about."""

from __future__ import annotations

import re

from processors.memory.rules.words import word_set

SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|\u3002")
MAX_VALUE_WORDS = 4
"""Words of a value behind a colon: more are a sentence."""
_SPEAKER = re.compile(r"\s*([A-Za-z][\w'-]*(?: [A-Z][\w'-]*)?): (?=\S)")
_I = re.compile(r"\b(I'm|I am|I've|I have|I|[Mm]y|[Mm]ine|me)\b")
_OF_SPEAKER = {"I'm": "{} is", "I am": "{} is", "I've": "{} has", "I have": "{} has", "I": "{}", "me": "{}"}
PRONOUNS = word_set("it it's its this that that's these those they they're he he's she she's here there there's")
"""A sentence that begins so is about what another one named, which is not the same in another text."""
COURTESIES = word_set(
    "congrats congratulations thanks thank wow way hey hi glad yeah yes yep nope sounds great talk looking"
)
"""What begins so is said to somebody, and says nothing of a thing."""


def told(text: str) -> str:
    """What is said in `Caroline: I live in Oslo. You?`, in words of the third person: `Caroline live in Oslo. You?`.

    A name and a few words behind a colon, as in `Owner: Tom`, say what something is, and stay as they are.
    """
    speaker = _SPEAKER.match(text)
    said = text[speaker.end() :].strip() if speaker else ""
    if speaker is None or _is_value(said):
        return text
    name = speaker[1]
    return _I.sub(lambda word: _OF_SPEAKER.get(word[1], "{}'s").format(name), said)


def _is_value(said: str) -> bool:
    """Whether what follows a name and a colon says what it is, and is not what somebody of that name says."""
    words = said.split()
    is_short = len(words) <= MAX_VALUE_WORDS and not said.endswith(("!", "?")) and len(SENTENCE_END.split(said)) == 1
    return is_short and words[0].casefold() not in PRONOUNS | COURTESIES and _I.search(said) is None
