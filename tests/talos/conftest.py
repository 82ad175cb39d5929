"""What the tests of the Talos tools run on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.talos.node import SmallNode


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SmallNode]:
    node = SmallNode(tmp_path)
    yield node
    node.close()
