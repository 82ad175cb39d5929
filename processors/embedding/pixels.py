"""Makes the pixels of an image file what a model reads. Pillow comes with `thalweg[models]`."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
"""What is read; other decoders of Pillow (some start programs) never see a byte."""
MAX_PIXELS = 40_000_000
"""A larger image is not decoded: it would take 120 MB and more."""
SIDE = 1024
"""Longer sides are scaled down to it at once; models read 224 to 448."""


def read_pixels(data: bytes) -> Any:
    """A Pillow image in RGB, upright, with white behind what is transparent. Raises ValueError for what is unreadable.

    Of several frames it is the first.
    """
    images, operations = import_module("PIL.Image"), import_module("PIL.ImageOps")  # no types without the extra
    try:
        with images.open(io.BytesIO(data), formats=FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"it has {image.width} x {image.height} pixels; at most {MAX_PIXELS} are read")
            image.draft("RGB", (SIDE, SIDE))
            upright = operations.exif_transpose(image).convert("RGBA")
    except Exception as error:  # each decoder has exceptions of its own
        raise ValueError(f"The image cannot be read: {error}") from error
    upright.thumbnail((SIDE, SIDE))
    white = images.new("RGBA", upright.size, "white")
    return images.alpha_composite(white, upright).convert("RGB")
