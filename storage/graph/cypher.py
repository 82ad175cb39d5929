"""The check of a Cypher query: one statement that only reads. It works on tokens, so a name never counts as a clause.

Two allow-lists. A word behind the end of an expression, or at the start of a statement or subquery, is a clause or an
operator, and only reading ones are allowed there. A word before `(` is a function, and only known ones are allowed.
Words that change something are refused wherever they are not a name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streams.errors import Refused

MAX_CYPHER = 20_000
_TOKEN = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/)"
    r"|(?P<text>'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")"
    r"|(?P<quoted>`(?:``|[^`])*`)"
    r"|(?P<parameter>\$[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>(?:\d+\.(?!\.)\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<sign><=|>=|<>|=~|\.\.|[^\s\w])",
    re.S,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLAUSES = _words("MATCH OPTIONAL WHERE WITH UNWIND RETURN ORDER SKIP LIMIT UNION")
_OPENING = _words("MATCH OPTIONAL WITH UNWIND RETURN")
_OPERATORS = _words(
    """
    AND OR XOR NOT IN IS NULL AS ASC ASCENDING DESC DESCENDING BY DISTINCT CONTAINS STARTS ENDS ALL ANY NONE SINGLE
    CASE WHEN THEN ELSE END EXISTS COUNT ON SHORTEST TRAIL ACYCLIC WSHORTEST HINT JOIN TRUE FALSE
    """
)
_CHANGES = _words(
    """
    CREATE DELETE DETACH SET MERGE REMOVE DROP ALTER COPY LOAD CALL EXPORT IMPORT INSTALL UNINSTALL ATTACH USE BEGIN
    COMMIT ROLLBACK CHECKPOINT FOREACH PROFILE EXPLAIN COMMENT ANALYZE UPDATE EXTENSION MACRO
    """
)
_FUNCTIONS = _words(
    """
    count sum avg min max collect labels label id size length abs ceil ceiling floor round sqrt pow sign log log10 exp
    coalesce ifnull nodes rels relationships properties keys startnode endnode is_trail is_acyclic list_contains
    list_len list_sort list_distinct list_extract list_element list_position list_concat list_slice list_reverse
    list_unique list_sum list_product list_any_value list_append list_transform list_filter list_reduce range head
    last array_length contains starts_with ends_with prefix suffix lower upper tolower toupper trim ltrim rtrim left
    right substring substr replace split string_split reverse concat regexp_matches lpad rpad initcap date timestamp
    datetime duration interval current_date current_timestamp date_part datepart date_trunc datetrunc date_add
    date_sub date_diff datediff year month day hour minute second to_days to_hours to_minutes to_seconds to_months
    to_years dayname monthname last_day make_date epoch_ms to_timestamp to_epoch_ms greatest least cast string int64
    double bool boolean tostring tointeger tofloat toboolean typeof exists all any none single case nullif map_extract
    element_at struct_extract cost hash
    """
)
_LADYBUG_NAMES = {"datetime": "timestamp", "duration": "interval"}
_BEFORE_PAREN = _CLAUSES | _OPERATORS


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    offset: int

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


def position_of(cypher: str, offset: int) -> dict[str, int]:
    """Line and column from 1, offset from 0, in characters."""
    before = cypher[:offset]
    return {"line": before.count("\n") + 1, "column": offset - (before.rfind("\n") + 1) + 1, "offset": offset}


def tokens_of(cypher: str) -> list[Token]:
    """The tokens without spaces and comments. Raises Refused `syntax_error` where none begins."""
    found: list[Token] = []
    at = 0
    while at < len(cypher):
        match = _TOKEN.match(cypher, at)
        if match is None or (match.lastgroup == "sign" and match[0] in "'\"`\\"):
            raise syntax_error(cypher, at, "A text, name or comment is not closed, or a character cannot stand here.")
        if cypher.startswith("/*", at) and match.lastgroup != "space":
            raise syntax_error(cypher, at, "A comment is not closed.")
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup or "", match[0], at))
        at = match.end()
    return found


def syntax_error(cypher: str, offset: int, message: str) -> Refused:
    """The refusal of a query that cannot be read, with the place of the error."""
    place = position_of(cypher, offset)
    return Refused(f"{message} (line {place['line']}, column {place['column']})", code="syntax_error", position=place)


def check_cypher(cypher: str) -> list[str]:
    """The names of the parameters that the statement uses, each once.

    Raises Refused `read_only_violation` (with `clause` and `position`) or `syntax_error` (with `position`).
    """
    if len(cypher) > MAX_CYPHER:
        raise Refused(f"The query has {len(cypher)} characters; at most {MAX_CYPHER} are accepted.")
    tokens = tokens_of(cypher)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens:
        raise syntax_error(cypher, 0, "The query is empty.")
    for index, token in enumerate(tokens):
        if token.text == ";":
            raise syntax_error(cypher, token.offset, "One statement at a time: nothing may follow the semicolon.")
        if token.kind == "word":
            _check_word(cypher, tokens, index)
    return list(dict.fromkeys(token.text[1:] for token in tokens if token.kind == "parameter"))


def _check_word(cypher: str, tokens: Sequence[Token], index: int) -> None:
    token, before = tokens[index], tokens[index - 1] if index else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    if _opens(tokens, index):
        if token.upper not in _OPENING:
            raise _violation(cypher, token)
        return
    if _is_name(tokens, index):
        return
    starts = before is not None and _ends_expression(tokens, index - 1)
    if starts and token.upper not in _CLAUSES | _OPERATORS:
        raise _violation(cypher, token)
    if (
        after is not None
        and after.text == "("
        and not (starts or token.upper in _BEFORE_PAREN)
        and token.text.lower() not in _FUNCTIONS
    ):
        if token.upper in _CHANGES:
            raise _violation(cypher, token)
        raise syntax_error(
            cypher,
            token.offset,
            f"There is no function {token.text[:60]} here; docs/cypher.md lists those that may be used.",
        )


def _opens(tokens: Sequence[Token], index: int) -> bool:
    """Whether the word opens a statement, a part of a UNION or a subquery in braces."""
    if index == 0:
        return True
    before = tokens[index - 1]
    if before.upper == "UNION" or (before.upper == "ALL" and index > 1 and tokens[index - 2].upper == "UNION"):
        return tokens[index].upper != "ALL"
    is_key = index + 1 < len(tokens) and tokens[index + 1].text == ":"
    return before.text == "{" and not is_key


def _is_name(tokens: Sequence[Token], index: int) -> bool:
    """A property, label, relationship type, map key or alias: never a clause."""
    before = tokens[index - 1]
    if before.text in (".", ":", "|") or before.upper == "AS":
        return True
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    return after == ":" and before.text in ("{", ",", "(", "[")


def _ends_expression(tokens: Sequence[Token], index: int) -> bool:
    """Whether an expression may end with this token, so that a word behind it starts something else."""
    token = tokens[index]
    if token.text == "*":  # RETURN *, WITH *; between two operands it multiplies
        return tokens[index - 1].upper in ("RETURN", "WITH", "DISTINCT") or tokens[index - 1].text == ","
    if token.kind == "word":
        return (
            _is_name(tokens, index)
            or token.upper in ("NULL", "TRUE", "FALSE", "END")
            or token.upper not in _CLAUSES | _OPERATORS
        )
    return token.kind in ("text", "quoted", "parameter", "number") or token.text in (")", "]", "}")


def _violation(cypher: str, token: Token) -> Refused:
    if token.upper not in _CHANGES:
        return syntax_error(cypher, token.offset, f"{token.text[:60]!r} is not a clause of a reading query.")
    place = position_of(cypher, token.offset)
    message = f"The graph is read-only here: {token.upper} (line {place['line']}, column {place['column']}) is refused."
    return Refused(message, code="read_only_violation", clause=token.upper, position=place)


def to_ladybug(cypher: str) -> tuple[str, list[tuple[int, int]]]:
    """Give the query's functions the names that ladybug has for them.

    Returns the query and its changes as (offset in the result, added characters).
    """
    tokens = tokens_of(cypher)
    parts: list[str] = []
    changes: list[tuple[int, int]] = []
    at = more = 0
    for index, token in enumerate(tokens[:-1]):
        name = _LADYBUG_NAMES.get(token.text.lower()) if token.kind == "word" else None
        if name is None or tokens[index + 1].text != "(" or (index and tokens[index - 1].text == "."):
            continue
        if name == "timestamp" and index + 2 < len(tokens) and tokens[index + 2].text == ")":
            name = "current_timestamp"
        more += len(name) - len(token.text)
        parts += [cypher[at : token.offset], name]
        at = token.offset + len(token.text)
        changes.append((at + more, len(name) - len(token.text)))
    return "".join([*parts, cypher[at:]]), changes


def original_offset(offset: int, changes: Sequence[tuple[int, int]]) -> int:
    """The place in the caller's query of a place in the changed one."""
    return offset - sum(more for end, more in changes if offset >= end)


def check_parameters(names: Sequence[str], given: dict[str, Any]) -> None:
    """Raise Refused `missing_parameter` for the parameters that the query names and the call lacks."""
    missing = [name for name in names if name not in given]
    if missing:
        listed = ", ".join(f"${name}" for name in missing)
        raise Refused(
            f"The query names {listed}, which `parameters` does not have.", code="missing_parameter", parameters=missing
        )
