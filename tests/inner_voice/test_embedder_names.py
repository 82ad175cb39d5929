"""The reference's names of the embedder choose it as the product's own setting does, and may not contradict it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.errors import SettingsError
from thalweg.process.embedder_names import check_dimension
from thalweg.settings import load


def test_the_other_names_choose_the_embedder(tmp_path: Path) -> None:
    home = {"home": tmp_path}
    assert load(home, {"SURR_EMBED_MODEL": "hashing-384"}).embedder == "hashing"
    assert load(home, {"SURR_EMBED_PROVIDER": "onnx", "SURR_EMBED_MODEL": "all-MiniLM-L6-v2"}).embedder == "minilm"
    assert load(home, {"SURR_EMBED_MODEL": "hashing-384", "THALWEG_EMBEDDER": "hashing"}).embedder == "hashing"


@pytest.mark.parametrize(
    "environ",
    [
        {"SURR_EMBED_MODEL": "all-MiniLM-L6-v2", "THALWEG_EMBEDDER": "hashing"},
        {"SURR_EMBED_PROVIDER": "openai"},
        {"SURR_EMBED_PROVIDER": "onnx", "THALWEG_EMBEDDER": "none"},
    ],
)
def test_names_that_contradict_each_other_are_refused(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="SURR_EMBED"):
        load({"home": tmp_path}, environ)


def test_the_dimension_is_that_of_the_model() -> None:
    check_dimension({}, 384)
    check_dimension({"SURR_EMBED_DIM": "384"}, 384)
    for dim in (8, None):
        with pytest.raises(SettingsError, match="SURR_EMBED_DIM"):
            check_dimension({"SURR_EMBED_DIM": "384"}, dim)
