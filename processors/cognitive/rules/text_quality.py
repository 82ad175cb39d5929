"""What a stored text is worth: its information density, and whether a reflection has the form of one."""

from __future__ import annotations

THRESHOLD = 0.5
_ENGLISH = "the is at which on and or but with from to of in for a an this that"
_GERMAN = (
    "der die das und oder aber mit von zu für ein eine dies dass dem den des sich sind wird wurde auch nicht kann hat "
    "war bei aus nach vor auf über unter durch um bis"
)
STOP_WORDS = frozenset(f"{_ENGLISH} {_GERMAN}".split())
_STRIPPED = '.,!?;:"'
_SHORT = 3


def fidelity(text: str) -> float:
    """0 to 1: tokens of more than three characters that are not stop words, by all tokens. 0 for an empty text."""
    tokens = text.split()
    counted = sum(1 for token in tokens if _counts(token.lower().strip(_STRIPPED)))
    return counted / len(tokens) if tokens else 0.0


def _counts(token: str) -> bool:
    return len(token) > _SHORT and token not in STOP_WORDS


def reflection_warnings(reflection: str) -> list[str]:
    """A line when the text is not of the form `Problem: … Lesson: …`."""
    missing = [part for part in ("Problem:", "Lesson:") if part not in reflection]
    return (
        [f"The reflection has no {' and no '.join(missing)}; the form is 'Problem: ... Lesson: ...'."]
        if missing
        else []
    )


def warning(score: float, threshold: float = THRESHOLD) -> str | None:
    """What to say of a text whose density is below the threshold; None when it is not."""
    if score >= threshold:
        return None
    return f"Low information density ({score:.2f} < {threshold:.2f}): the text says little for its length."
