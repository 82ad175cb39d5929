"""Every test here needs sentence-transformers: it fails without, and only `python3 dev.py models` runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.models.making import make


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.models)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small checkpoint of this kind, made once."""
    place = tmp_path_factory.mktemp("checkpoints")
    made: dict[str, Path] = {}

    def of(kind: str) -> Path:
        if kind not in made:
            made[kind] = make(kind, place / f"m{len(made)}")
        return made[kind]

    return of
