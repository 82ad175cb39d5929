"""Under which words a memory is searched, by what its content is."""

from __future__ import annotations

import base64

import pytest

from processors.context_graph.rules.modalities import file_name, searched_text

BYTES = base64.b64encode(bytes(range(256)) * 8).decode()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("data:image/png;base64," + BYTES, ""),
        ("data:image/png;name=dusk%20light.png;base64," + BYTES, "dusk light.png"),
        (BYTES, ""),
        ("\n".join(BYTES[at : at + 76] for at in range(0, len(BYTES), 76)), ""),
        ("https://example.org/a/harbour.png?size=2", "harbour.png"),
        ("file:///tmp/harbour%20wall.png", "harbour wall.png"),
        ("/home/jo/Pictures/the harbour.jpg", "the harbour.jpg"),
        ("C:\\photos\\harbour.jpg", "harbour.jpg"),
        ("harbour.jpg", "harbour.jpg"),
        ("A harbour at dusk, with three boats.", None),
        ("Jo said: see harbour.jpg", None),
        ("灯塔在黄昏", None),
        ("sunset", None),
        ("http://[half a bracket", None),
    ],
)
def test_a_reference_is_known_by_its_form_and_gives_its_file_name(content: str, name: str | None) -> None:
    assert file_name(content) == name


def test_of_a_reference_rationale_tags_and_file_name_are_searched() -> None:
    for modality in ("image", "audio"):
        assert searched_text("/a/gulls.wav", modality, "Heard at noon", ["sea"]) == "Heard at noon\nsea\ngulls.wav"
    assert searched_text("data:image/png;base64,AAAA", "image", None, []) is None
    assert searched_text("data:image/png;base64,AAAA", "image", None, ["sea"]) == "sea"


def test_a_caption_and_every_other_text_are_searched_as_they_are() -> None:
    assert searched_text("Gulls at noon.", "image", "why", ["sea"]) == "Gulls at noon."
    for modality in ("text", "code", "mixed"):
        assert searched_text("/a/gulls.wav", modality, "why", ["sea"]) == "/a/gulls.wav"


def test_structured_content_is_searched_by_its_leaves() -> None:
    content = '{"boat": {"name": "Ada", "crew": ["Jo", "Bo"]}, "length_m": 7.5, "sold": false}'
    lines = ["boat.name: Ada", "boat.crew: Jo", "boat.crew: Bo", "length_m: 7.5", "sold: false"]
    assert searched_text(content, "structured", None, []) == "\n".join(lines)
    for content in ("name: Ada", "{}", "[" * 2000, '{"a": 1} rest'):
        assert searched_text(content, "structured", None, []) == content
