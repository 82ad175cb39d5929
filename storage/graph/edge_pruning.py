"""Pruning of edges: a relation that a query cannot match is left out of its projection.

`INHERITED` joins each session with everything that was live when it opened: sessions times entities in number.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.graph.cypher import Token, tokens_of

INHERITED = "INHERITED"


def may_match(cypher: str, relation: str) -> bool:
    """False only when every relationship of the query names its types, and none is this relation.

    Raises Refused `syntax_error`.
    """
    tokens = tokens_of(cypher)
    return any(_names(token, relation) for token in tokens) or any(
        _is_untyped(tokens, index) for index in range(len(tokens))
    )


def _names(token: Token, relation: str) -> bool:
    return token.text.strip("`").upper() == relation


def _is_untyped(tokens: Sequence[Token], index: int) -> bool:
    """Whether a relationship without a type begins here.

    It is `--`, or `-[` without a colon before `]` or properties.
    """
    if tokens[index].text != "-" or index + 1 == len(tokens):
        return False
    after = tokens[index + 1].text
    if after != "[":
        return after == "-"
    for token in tokens[index + 2 :]:
        if token.text[0] == ":":
            return False
        if token.text in ("]", "{", "*"):
            return True
    return True
