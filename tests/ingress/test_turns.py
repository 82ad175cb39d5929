"""Which calls of one connection run, and when a connection that asks without pause has to rest."""

from __future__ import annotations

import asyncio

from mcp_ingress.turns import BACKLOG, Turns
from tests.ingress.lines import WAIT_S

LONG_S = 1_000.0
"""A rest after a call of this length does not end while a test runs."""


async def begin(turns: Turns, calls: int) -> list[asyncio.Task[None]]:
    """This many calls of the connection, each at its place."""
    tasks = [asyncio.create_task(turns.take()) for _ in range(calls)]
    await moment()
    return tasks


async def moment() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def begun(tasks: list[asyncio.Task[None]]) -> int:
    return sum(task.done() for task in tasks)


async def stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_as_many_calls_run_at_once_as_may_and_the_others_begin_in_their_order() -> None:
    turns = Turns(2)
    tasks = await begin(turns, 4)
    assert [task.done() for task in tasks] == [True, True, False, False]
    turns.give(LONG_S, is_shared=True)
    await moment()
    assert [task.done() for task in tasks] == [True, True, True, False]
    await stop(tasks)


async def test_a_backlog_rests_after_each_call_while_others_call() -> None:
    turns = Turns(1)
    tasks = await begin(turns, 1 + BACKLOG)
    turns.give(LONG_S, is_shared=True)
    await moment()
    assert begun(tasks) == 1
    await stop(tasks)


async def test_a_connection_that_asks_for_a_few_things_at_once_never_rests() -> None:
    turns = Turns(1)
    tasks = await begin(turns, BACKLOG)
    turns.give(LONG_S, is_shared=True)
    await moment()
    assert begun(tasks) == 2
    await stop(tasks)


async def test_a_connection_that_is_alone_never_rests() -> None:
    turns = Turns(1)
    tasks = await begin(turns, 1 + BACKLOG)
    turns.give(LONG_S, is_shared=False)
    await moment()
    assert begun(tasks) == 2
    await stop(tasks)


async def test_a_rest_ends() -> None:
    turns = Turns(1)
    tasks = await begin(turns, 1 + BACKLOG)
    turns.give(0.001, is_shared=True)
    await asyncio.wait_for(tasks[1], WAIT_S)
    await stop(tasks)


async def test_a_call_that_is_cancelled_while_it_waits_is_not_of_the_backlog() -> None:
    turns = Turns(1)
    tasks = await begin(turns, 1 + BACKLOG)
    await stop(tasks[-1:])
    turns.give(LONG_S, is_shared=True)
    await moment()
    assert begun(tasks[:-1]) == 2
    await stop(tasks)
