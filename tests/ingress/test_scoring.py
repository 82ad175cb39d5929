"""Searches are scored one at a time: at once they would only hand the interpreter to and fro."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
import pytest_asyncio

from mcp_ingress.call import Call, ClientConnection
from mcp_ingress.services import Services
from storage.database import Database
from storage.reader import Reader
from streams.positions import Freshness
from tests.ingress.lines import WAIT_S
from tests.ingress.parts import opened_log, services


@pytest_asyncio.fixture
async def node(tmp_path: Path) -> AsyncIterator[Services]:
    database = Database(None)
    reader = Reader(database)
    async with opened_log(tmp_path / "log.db") as log:
        yield replace(services(log, tmp_path), reader=reader)
    reader.close()
    database.close()


def call(node: Services, number: int = 0) -> Call:
    return Call(node, ClientConnection(), "default", f"r-{number}", Freshness())


async def test_one_is_scored_at_a_time_in_the_order_of_the_calls(node: Services) -> None:
    running, most, order = 0, 0, []

    def scored(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.01)  # long enough for another thread to begin, if it may
        order.append(number)
        running -= 1
        return number

    numbers = list(range(8))
    found = await asyncio.gather(*(call(node, n).score(lambda _, n=n: scored(n)) for n in numbers))
    assert (found, order, most) == (numbers, numbers, 1)


async def test_a_read_does_not_wait_for_a_search_that_is_scored(node: Services) -> None:
    has_read = threading.Event()
    scored = asyncio.create_task(call(node).score(lambda _: has_read.wait(WAIT_S)))
    await asyncio.sleep(0)
    await call(node, 1).read(lambda _: has_read.set())
    assert await scored


async def test_the_next_is_scored_after_one_that_failed_or_was_given_up(node: Services) -> None:
    goes_on = threading.Event()

    def fail(_: duckdb.DuckDBPyConnection) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await call(node).score(fail)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await call(node, 1).score(lambda _: goes_on.wait(WAIT_S))
    async with asyncio.timeout(WAIT_S):
        assert await call(node, 2).score(lambda _: 7) == 7
    goes_on.set()
