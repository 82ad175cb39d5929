"""The words under which a memory is searched, by the modality of its content.

Image and audio bytes are not looked at: where the content is a data: URI, a path or a URL, its words are what its
caller said of it and the file's name; else it is a caption. Structured content is searched by its leaves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson

TEXT, CODE, IMAGE, AUDIO, STRUCTURED, MIXED = "text", "code", "image", "audio", "structured", "mixed"
MAX_LEAVES = 10_000
WORDLESS = (
    "The content is {modality} data without any words, so that no search could find it; say in `rationale` or `tags` "
    "what it shows, or send a caption as `content`."
)
_URI = re.compile(r"(?:data:|[a-z][a-z0-9+.-]*://)\S", re.IGNORECASE)
_PATH = re.compile(r"(?:~|\.{0,2}/|[a-z]:[\\/]).*|[^\s]*[\\/][^\s]*|[^\s]+\.[a-z0-9]{2,5}", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{64,}={0,2}")
_DATA_NAME = re.compile(r"(?:file)?name=([^;,]+)", re.IGNORECASE)


def searched_text(content: str, modality: str, rationale: str | None, tags: Sequence[str]) -> str | None:
    """What becomes a vector, and with the tags the words of the memory. None when there are no words at all."""
    if modality in (IMAGE, AUDIO) and (name := file_name(content)) is not None:
        said = [part.strip() for part in (rationale or "", ", ".join(tags), name)]
        return "\n".join(part for part in said if part) or None
    if modality == STRUCTURED:
        return _leaves_of(content) or content
    return content


def file_name(content: str) -> str | None:
    """The name in a data: URI, a path or a URL, empty where it has none.

    None for anything else, such as a caption.
    """
    text = content.strip()
    if _BASE64.fullmatch("".join(text.split())) and len(text.split()) <= len(text) // 32:
        return ""
    if "\n" in text:
        return "" if text[:5].lower() == "data:" else None
    if text[:5].lower() == "data:":
        named = _DATA_NAME.search(text.partition(",")[0])
        return unquote(named[1]) if named else ""
    if _URI.match(text):
        return unquote(urlsplit(text).path.rstrip("/").rsplit("/", 1)[-1]) if _is_url(text) else None
    return re.split(r"[\\/]", text.rstrip("\\/"))[-1] if _PATH.fullmatch(text) else None


def _is_url(text: str) -> bool:
    try:
        return not any(map(str.isspace, text)) and bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _leaves_of(content: str) -> str:
    """JSON as lines `path: value`; empty for what is not JSON or has no leaf."""
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return ""
    return "\n".join(islice(_leaves(value, ""), MAX_LEAVES))


def _leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, path)
    else:
        shown = value if isinstance(value, str) else orjson.dumps(value).decode()
        yield f"{path}: {shown}" if path else shown
