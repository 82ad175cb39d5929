"""Takes secrets out of text and of JSON bytes before they reach the log, by the patterns of well-known keys.

Each rule has a hint that begins with a fixed letter, which `re` finds by a memory scan; its pattern runs only where the
hint is found, so that a kilobyte without secrets costs a few microseconds.
A redacted JSON text is still the same JSON text around the mark. What is not redacted: a secret without a form of its
own, such as a password in prose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MARK = "[redacted:{}]"

_START = rb"(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=[0-9;]m))"
"""A key's first character: not inside a word, unless that word is a JSON escape or a colour code."""
_KEY_BODY = rb"(?:\\{1,4}[nrt]|[A-Za-z0-9+/=\s:,-])"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A hint without which the pattern cannot match, and the pattern; its group `keep`, if it has one, stays before the mark."""

    hint: re.Pattern[bytes]
    pattern: re.Pattern[bytes]
    replacement: bytes


def _rule(name: str, hint: bytes, pattern: bytes, *, keep: bool = False) -> _Rule:
    mark = MARK.format(name).encode()
    return _Rule(re.compile(hint), re.compile(pattern), (rb"\g<keep>" if keep else b"") + mark)


_RULES = (
    _rule("api-key", rb"sk-", _START + rb"sk-(?=[A-Za-z_-]{0,100}[0-9])[A-Za-z0-9_-]{20,}"),
    _rule(
        "git-token",
        rb"g(?:h[pousr]_|ithub_pat_|lpat-)",
        _START + rb"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,})",
    ),
    _rule("cloud-key", rb"A(?:KIA|SIA|Iza)", _START + rb"(?:A[KS]IA[0-9A-Z]{16}(?![0-9A-Za-z])|AIza[0-9A-Za-z_-]{35})"),
    _rule("slack-token", rb"xox", _START + rb"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    _rule("registry-token", rb"hf_", _START + rb"hf_[A-Za-z0-9]{30,}"),
    _rule("registry-token", rb"p(?:m_|ypi-)", _START + rb"(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,})"),
    _rule("bearer", rb"B(?:earer|EARER) ", rb"(?P<keep>B(?:earer|EARER) {1,4})[A-Za-z0-9._~+/-]{16,}={0,2}", keep=True),
    _rule("bearer", rb"bearer ", rb"(?P<keep>bearer {1,4})[A-Za-z0-9._~+/-]{16,}={0,2}", keep=True),
    _rule("basic", rb"Basic ", rb"(?P<keep>[Aa]uthorization[\\\"': ]{1,8}Basic {1,4})[A-Za-z0-9+/]{8,}={0,2}", keep=True),
    _rule("jwt", rb"eyJ", _START + rb"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    _rule(
        "private-key",
        rb"PRIVATE KEY-----",
        rb"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----" + _KEY_BODY + rb"*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|(?!" + _KEY_BODY + rb"))",
    ),
)


def redact_json(raw: bytes) -> bytes:
    """The same bytes with each known secret replaced by `[redacted:<kind>]`; JSON stays JSON."""
    for rule in _RULES:
        if rule.hint.search(raw) is not None:
            raw = rule.pattern.sub(rule.replacement, raw)
    return raw


def redact(text: str) -> str:
    """The same text with each known secret replaced by `[redacted:<kind>]`."""
    raw = text.encode("utf-8", "surrogatepass")
    cleaned = redact_json(raw)
    return text if cleaned is raw else cleaned.decode("utf-8", "surrogatepass")
