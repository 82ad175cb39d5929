"""The text of a snippet, cut at the end of a sentence, and the hash that recognises a text."""

from __future__ import annotations

import re
import unicodedata

from blake3 import blake3

MAX_CHARS = 800
MIN_KEPT_CHARS = 320
"""A sentence end before this place would throw away too much: 40 % of `MAX_CHARS`."""
_SENTENCE_END = re.compile("[.!?][\"”')]?(?=\\s)")
_WHITESPACE = re.compile(r"\s+")


def cap(text: str) -> str:
    """At most 800 characters: up to the last sentence end within them, else cut hard.

    It is cut hard too where the last sentence end leaves fewer than 320. A text that is short enough is unchanged.
    """
    if len(text) <= MAX_CHARS:
        return text
    # one character more, so that the whitespace behind an end at 800 is seen
    ends = [match.end() for match in _SENTENCE_END.finditer(text[: MAX_CHARS + 1]) if match.end() <= MAX_CHARS]
    last = ends[-1] if ends else 0
    return text[: last if last >= MIN_KEPT_CHARS else MAX_CHARS].rstrip()


def normalise(text: str) -> str:
    """The form in which texts are compared.

    NFKC, lower case, white space collapsed and trimmed, then invisible characters removed.
    """
    folded = unicodedata.normalize("NFKC", text).lower()
    spaced = _WHITESPACE.sub(" ", folded).strip()
    if spaced.isprintable():  # nothing to remove, which takes longer to find out one by one
        return spaced
    return "".join(character for character in spaced if unicodedata.category(character) not in ("Cf", "Cc"))


def content_hash(text: str) -> str:
    """Lower-case hex blake3 of the normalised full text, never of the cut one."""
    return str(blake3(normalise(text).encode(errors="surrogatepass")).hexdigest())
