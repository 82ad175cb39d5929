"""The sentences of a text that say what holds, and their clauses, put plainly: each is a statement.

`There are four shards in the index` is `the index has four shards`, `use X as linter` is `the linter is X`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from processors.memory.rules.dialogue import MAX_VALUE_WORDS, SENTENCE_END, told
from processors.memory.rules.numbered import names_before_colon
from processors.memory.rules.statement import AUXILIARIES, BE, CLAUSE, STATEMENTS, Statement

MAX_SENTENCES, MAX_CHARACTERS = 24, 4000
"""Of a longer text its beginning is compared."""
_FROM_THEN = re.compile(
    r"After the \w+,? (?=the |we |our )|(?:[Ss]ince|[Ff]rom|[Aa]s of) "
    r"(?:[A-Z]\w+|today|tomorrow|now|next \w+|version [\d.]+)(?: \d+)?(?: on)?,? "
)
"""`From Monday on the kiosk opens at 7`, at the start of a sentence."""
_LABEL = re.compile(r"([^:,;]+): ([^:,;]+)")
"""`Product owner of checkout: Tom`."""
MAX_LABEL_WORDS = 6
_THERE = re.compile(
    r"[Tt]here (?:is|are) (?:now |only )?([^,;:]+?) (?:in|on|for|at) ((?:the|our|my|each|every|this) [^,;:.]+)(.*)"
)
_NONE = re.compile(r"[Tt]here (?:is|are) (?:no|not any) (.+?),? (?:any ?more|any longer)\b")
_AS = re.compile(
    r"(?:We |I |The user |User )?(?:now )?[Uu]ses? ([^,;:]+?) as (?:the |our |a |an |my |his |her )?([^,;:.]+)"
)


@lru_cache(maxsize=STATEMENTS)
def statements_of(text: str) -> tuple[Statement, ...]:
    """The sentences of a text that say what holds, and their clauses between commas."""
    found: list[Statement] = []
    for sentence in SENTENCE_END.split(told(text[:MAX_CHARACTERS]))[:MAX_SENTENCES]:
        whole = Statement(_plainly(_from_now((sentence or "").strip())))
        found += [whole] if whole.is_comparable else []
        if not whole.text.endswith("?"):
            is_of_one = names_before_colon(whole.text)
            parts = [] if is_of_one else [part.removeprefix("and ").strip() for part in CLAUSE.split(whole.text)]
            parts = _with_subjects(parts)
            clauses = [Statement(part) for part in (*_labelled(whole.text), *(parts if len(parts) > 1 else ()))]
            found += [clause for clause in clauses if clause.is_clause]
            found += [clause for one in clauses or [whole] for clause in _predicates(one) if clause.is_clause]
    return tuple(found)


def _from_now(sentence: str) -> str:
    """`now the kiosk opens at 7` for `from Monday on the kiosk opens at 7`."""
    opening = _FROM_THEN.match(sentence)
    return f"now {sentence[opening.end() :]}" if opening else sentence


def _with_subjects(clauses: Sequence[str]) -> list[str]:
    """`it is gone` behind `the endpoint answers 410` says it of the endpoint."""
    if not any(clause.startswith(("it ", "they ")) for clause in clauses[1:]):
        return list(clauses)
    words = clauses[0].split()
    verb = next((place for place, word in enumerate(words) if place and (_is_verb(word) or word in AUXILIARIES)), 0)
    subject = " ".join(words[:verb])
    return [
        f"{subject} {clause.split(' ', 1)[1]}" if number and subject and clause.startswith(("it ", "they ")) else clause
        for number, clause in enumerate(clauses)
    ]


def _plainly(sentence: str) -> str:
    """The sentence in the plainest order of words.

    `The index has four shards` for `there are four shards in the index`, `the linter is X` for `use X as linter`,
    `we do not have A anymore` for `there is no A anymore`.
    """
    now = "now " if "now" in sentence.split() else ""
    if none := _NONE.match(sentence):
        return f"we do not have {none[1]} anymore{sentence[none.end() :]}"
    if there := _THERE.match(sentence):
        return f"{there[2]} {now}has {there[1]}{there[3]}"
    if used := _AS.match(sentence):
        return f"the {used[2]} is {now}{used[1]}{sentence[used.end() :]}"
    return sentence


def _labelled(text: str) -> list[str]:
    """`Product owner of checkout: Tom` as a sentence."""
    label = _LABEL.match(text)
    if label is None:
        return []
    name, value = label[1].split(), label[2].split()
    if len(name) > MAX_LABEL_WORDS or len(value) > MAX_VALUE_WORDS or BE & set(map(str.casefold, name)):
        return []
    return [f"{label[1]} is {label[2]}"]


def _predicates(statement: Statement) -> list[Statement]:
    """`The robot is called Gustav and charges in the hall` as two statements about the robot."""
    words = statement.text.split()
    joint = next((place for place, word in enumerate(words) if word == "and" and place < len(words) - 2), None)
    if joint is None or not _is_verb(words[joint + 1]):
        return []
    verb = next((place for place, word in enumerate(words[:joint]) if place and _is_verb(word)), None)
    if verb is None:
        return []
    return [Statement(" ".join(words[:joint])), Statement(" ".join((*words[:verb], *words[joint + 1 :])))]


def _is_verb(word: str) -> bool:
    """Whether it may be a verb that says what holds of one thing."""
    return (
        word in BE or word in ("has", "have") or (word[-1] == "s" and word.islower() and word[-2:] not in ("ss", "us"))
    )
