"""A model that several parts of a process name is loaded once."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from thalweg.process.model import Models
from thalweg.settings import Settings


def test_parts_that_ask_at_once_share_one_model_as_long_as_somebody_has_it(tmp_path: Path) -> None:
    models = Models(Settings(home=tmp_path, embedder="hashing-64"))
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: models.load(), range(32)))
    assert found[0] is not None and all(one is found[0] for one in found)
    assert models.load("hashing-64") is found[0] and models.load("hashing-128") is not found[0]
    assert models.load("none") is None
    gone = weakref.ref(found[0])
    found.clear()
    gc.collect()
    assert gone() is None, "what nobody has is not kept"
