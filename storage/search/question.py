"""What a question says beside its matter: whose words it asks for, and the form of the answer.

English only: of other questions all is matter, and they ask for nobody's words.
"""

from __future__ import annotations

import re

_OF_SPEAKER = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b|\bthe user(?:'s|’s)?\b", re.IGNORECASE)
_OF_LISTENER = re.compile(
    r"\b(?:did|had|have) you\b|\byou (?:recommended|suggested|advised|explained|proposed|mentioned|said|told|gave|"
    r"provided|described|outlined)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"^\W*(?:please\s+)?(?:(?:can|could|would|will)\s+you\s+(?:please\s+)?)?"
    r"(?:list|walk\s+me\s+through|give\s+me|show\s+me|tell\s+me|provide(?:\s+me\s+with)?|summari[sz]e|outline|describe|"
    r"recount)\s+",
    re.IGNORECASE,
)
_FORM = re.compile(
    r"""
    \bthe\s+(?:\w+\s+)?order\s+(?:in\s+which|that)\s+(?:I|we|you)(?:'ve|\s+have|\s+had)?\s+
        (?:brought\s+up|mentioned|discussed|talked\s+about|raised|covered|asked\s+about)
    | \b(?:different|various|several|all)\s+(?:aspects|topics|parts|points)\s+(?:of|about|related\s+to)\b
    | \b(?:throughout|across|over|during|in|from)\s+(?:all\s+)?(?:of\s+)?(?:our|my|these|the)\s+(?:\w+\s+)?
        (?:conversations?|discussions?|chats?|sessions?|messages|exchanges)\b
    | ,?\s+in\s+(?:chronological\s+)?order\s*(?=[?.!,]|$)
    | \bmention\s+only\b[^.?!]*
    | \b(?:an?\s+)?(?:(?:comprehensive|complete|clear|detailed|brief|short|full|thorough|concise),?\s+(?:and\s+)?)*
        (?:summary|overview|timeline|list)\s+(?:of|on)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def asks_about_user(text: str) -> bool:
    """Whether a question is about what the user said or did.

    Then it says `I`, `we` or `the user`, and not `did you` or `you recommended`. A person tells an
    agent what is so; the agent's answers repeat it, at greater length.
    """
    return _OF_SPEAKER.search(text) is not None and _OF_LISTENER.search(text) is None


def matter_of(text: str) -> str:
    """What a question is about: of one that begins with a wish, without the words on the answer's form.

    `Can you list the order in which I brought up different aspects of the parser, in order?` is about `the parser?`.
    Other questions are given back as they are, and so is one that has nothing else.
    """
    wish = _WISH.match(text)
    if wish is None:
        return text
    matter = " ".join(_FORM.sub(" ", text[wish.end() :]).split())
    return matter if re.search(r"\w", matter) else text
