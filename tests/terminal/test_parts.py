"""A process of parts ends: a part that fails or hangs at its end keeps neither the others nor the process."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from thalweg.process import parts
from thalweg.process.parts import Parts, close_within


class Process(Parts):
    """Three parts: the first opened holds what must be closed last."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: list[str] = []
        self._closers += [self.close_store, self.close_hung, self.close_broken, self.close_door]

    async def close_store(self) -> None:
        self.closed.append("store")

    async def close_hung(self) -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):  # as Faust does when its consumer's thread has died
                await asyncio.sleep(60)
            if self.closed[-1] == "store":
                return

    async def close_broken(self) -> None:
        raise RuntimeError("the socket is gone")

    async def close_door(self) -> None:
        self.closed.append("door")


async def test_a_part_that_hangs_or_fails_is_named_and_the_others_are_closed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(parts, "PART_TIMEOUT_S", 0.1)
    process = Process()
    await process.stop()
    assert process.closed == ["door", "store"]
    assert "Process.close_hung did not end within" in caplog.text
    assert "Process.close_broken failed" in caplog.text and "the socket is gone" in caplog.text


async def test_parts_that_are_closed_together_take_the_time_of_the_slowest() -> None:
    met = asyncio.Barrier(2)  # passed only by two at once

    async def close() -> None:
        await met.wait()

    await asyncio.wait_for(close_within(60, close, close), 60)
    assert met.n_waiting == 0
