"""Gives a failed tool call a short type, so that failures can be counted by kind."""

from __future__ import annotations

import re

_MAX_CHARS = 2000
_NAMED = re.compile(r"\s*(?:<tool_use_error>)?\s*(?:Error:\s*)?([A-Z][A-Za-z]{2,60}(?:Error|Exception))\b")
_KINDS = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"timed out|timeout exceeded|deadline exceeded|etimedout", "timeout"),
        (r"user doesn't want to (?:proceed|take this action)|user rejected|rejected by (?:the )?user", "rejected"),
        (r"request interrupted|was aborted|\binterrupted by\b", "interrupted"),
        (
            r"requested permissions|permission denied|operation not permitted|eacces"
            r"|denied by (?:a )?(?:sandbox|hook|policy)",
            "permission_denied",
        ),
        (r"has not been read yet|modified since read", "file_not_read"),
        (r"string to replace (?:was )?not found|old_string.{0,40}not found|could not find the exact text", "no_match"),
        (r"command not found|no such tool", "command_not_found"),
        (r"no such file|file does not exist|enoent|path does not exist", "not_found"),
        (r"\bexit(?:ed with)? code:? [1-9]|non-zero exit|exited with code [1-9]|exit status [1-9]", "nonzero_exit"),
    )
)


def error_type(text: str | None) -> str:
    """The type of a failure, from its text.

    `InputValidationError` when the text opens with such a name, else a kind like `timeout`, else `error`.
    """
    start = (text or "")[:_MAX_CHARS]
    named = _NAMED.match(start)
    if named:
        return named.group(1)
    for pattern, kind in _KINDS:
        if pattern.search(start):
            return kind
    return "error"
