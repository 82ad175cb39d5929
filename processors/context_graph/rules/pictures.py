"""Where the pixels of an image memory are: in its content, or in a file that the content names."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from processors.context_graph.rules.modalities import IMAGE, file_name


@dataclass(frozen=True, slots=True)
class Picture:
    """The bytes of an image file, empty where the content spoils them, or the `path` of one."""

    data: bytes | None = None
    path: str | None = None


def picture_of(content: str, modality: str) -> Picture | None:
    """The picture that a content is. None of a caption, of another modality, and of a URL, which nothing fetches."""
    if modality != IMAGE or (name := file_name(content)) is None:
        return None
    text = content.strip()
    if text[:5].lower() == "data:":
        return Picture(_of_uri(text))
    if "://" in text:
        return None
    return Picture(path=text) if name else Picture(_decoded(text))


def _of_uri(uri: str) -> bytes:
    kind, _, body = uri.partition(",")
    raw = unquote_to_bytes("".join(body.split()))
    return _decoded(raw.decode("ascii", "replace")) if kind.strip().lower().endswith(";base64") else raw


def _decoded(text: str) -> bytes:
    """The bytes of base64 in either alphabet, broken into lines or not."""
    plain = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
