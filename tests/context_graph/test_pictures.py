"""Which bytes are the picture of an image memory, and which files a node reads for it."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from processors.context_graph.rules.pictures import Picture, picture_of
from thalweg.views.image_folder import MAX_BYTES, ImageFolder

DATA = bytes(range(256))
PLAIN, SAFE = base64.b64encode(DATA).decode(), base64.urlsafe_b64encode(DATA).decode()


@pytest.mark.parametrize(
    ("content", "picture"),
    [
        (f"data:image/png;base64,{PLAIN}", Picture(DATA)),
        (f"data:image/png;name=dusk.png;base64,{PLAIN.rstrip('=')}", Picture(DATA)),
        (f"data:image/png;base64,{quote(PLAIN)}", Picture(DATA)),
        (f"data:image/bmp,{quote(DATA)}", Picture(DATA)),
        ("\n".join(PLAIN[at : at + 76] for at in range(0, len(PLAIN), 76)), Picture(DATA)),
        (SAFE, Picture(DATA)),
        ("data:image/png;base64,!!", Picture(b"")),
        ("photos/dusk.png", Picture(path="photos/dusk.png")),
        (" /home/jo/the dusk.png ", Picture(path="/home/jo/the dusk.png")),
        ("https://example.org/dusk.png", None),
        ("file:///etc/passwd", None),
        ("A harbour at dusk.", None),
    ],
)
def test_a_content_is_a_picture_by_its_form_and_a_url_or_caption_is_none(content: str, picture: Picture | None) -> None:
    assert picture_of(content, "image") == picture
    assert picture_of(content, "text") is None and picture_of(content, "audio") is None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file of its own and one below it, and a secret beside the folder."""
    (tmp_path / "images" / "deep").mkdir(parents=True)
    (tmp_path / "images" / "one.png").write_bytes(b"one")
    (tmp_path / "images" / "deep" / "two.png").write_bytes(b"two")
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path / "images"


def test_files_of_the_folder_are_read_by_their_path_in_it_or_from_the_root(root: Path) -> None:
    folder = ImageFolder(root)
    assert folder.read("one.png") == folder.read("./one.png") == folder.read(str(root / "one.png")) == b"one"
    assert folder.read("deep/two.png") == b"two"
    assert ImageFolder(None).read("one.png") is None


def test_nothing_outside_the_folder_no_link_no_pipe_and_nothing_too_large_is_read(root: Path) -> None:
    (root / "link.png").symlink_to(root.parent / "secret")
    (root / "inside.png").symlink_to(root / "one.png")
    (root / "way").symlink_to(root.parent)
    os.mkfifo(root / "pipe.png")
    with (root / "large.png").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    folder = ImageFolder(root)
    outside = [
        "../secret",
        "deep/../../secret",
        str(root.parent / "secret"),
        f"{root}/../secret",
        "/etc/passwd",
        "way/secret",
    ]
    open_files = len(os.listdir("/proc/self/fd"))
    for name in (*outside, "link.png", "inside.png", "pipe.png", "large.png", "deep", "none.png", "~", "", "/", "a\0b"):
        assert folder.read(name) is None, name
    assert len(os.listdir("/proc/self/fd")) == open_files
