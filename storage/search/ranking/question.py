"""What a question tells beside its matter: whose words it asks for. English only; other questions tell nothing."""

from __future__ import annotations

import re

_OF_SPEAKER = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b|\bthe user(?:'s|’s)?\b", re.IGNORECASE)
_OF_LISTENER = re.compile(
    r"\b(?:did|had|have) you\b|\byou (?:recommended|suggested|advised|explained|proposed|mentioned|said|told|gave|"
    r"provided|described|outlined)\b",
    re.IGNORECASE,
)


def asks_of_user(text: str) -> bool:
    """Whether a question is about what the user said or did: it says `I`, `we` or `the user`, and not `did you`.

    A person tells an agent what is so; the agent's answers repeat it, at greater length.
    """
    return _OF_SPEAKER.search(text) is not None and _OF_LISTENER.search(text) is None
