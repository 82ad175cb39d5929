"""When two statements are the same statement: the canonical form of a text, and whether it is negated."""

from __future__ import annotations

import unicodedata

# fmt: off
_NEGATIONS = frozenset((
    "no", "not", "never", "none", "nothing", "nobody", "nowhere", "neither", "nor", "without", "cannot",
    "aint", "arent", "cant", "couldnt", "didnt", "doesnt", "dont", "hadnt", "hasnt", "havent", "isnt", "mustnt",
    "neednt", "shant", "shouldnt", "wasnt", "werent", "wont", "wouldnt",
))
# fmt: on


class _WithoutPunctuation(dict[int, int | None]):
    """A table for `str.translate`; it has ASCII, of which most texts are, and computes the rest."""

    def __missing__(self, place: int) -> int | None:
        return None if unicodedata.category(chr(place)).startswith("P") else place


_NO_PUNCTUATION = _WithoutPunctuation({place: _WithoutPunctuation()[place] for place in range(128)})


def canonical_form(text: str) -> str:
    """NFKC, casefold, punctuation removed, whitespace collapsed. May be empty.

    Only Unicode punctuation goes: symbols such as `<` and `+` stay, as "a < b" and "a > b" are two statements.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.translate(_NO_PUNCTUATION).split())


def is_negated(text: str) -> bool:
    """Whether the text has a negation, such as "is not stale" or "without a lock"."""
    return not _NEGATIONS.isdisjoint(canonical_form(text).split())
