"""What the tests of the retrieval run on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.inner_voice.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    yield rig
    rig.close()
