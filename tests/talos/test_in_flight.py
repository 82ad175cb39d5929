"""Memories on the log that the store has not applied: bounded, and none is taken for compared that is not there."""

from __future__ import annotations

from datetime import datetime

from mcp_ingress.in_flight import MAX_MEMORIES, InFlight
from processors.memory.read.earlier import Memory
from storage.applied import AppliedPositions
from streams.positions import Freshness, Partition

AT, OTHER = Partition("memory", 0), Partition("memory", 1)


def memory(number: int) -> Memory:
    return Memory(number, f"m{number}", "Insight", f"text {number}", datetime(2026, 1, 1))


def test_a_memory_is_in_flight_until_it_is_applied_and_in_its_namespace_alone() -> None:
    flight, applied = InFlight(), AppliedPositions()
    flight.add("a", Freshness({AT: 1}), memory(0), applied)
    flight.add("b", Freshness({AT: 2}), memory(1), applied)
    assert flight.of("a", applied) == [memory(0)] and flight.of("c", applied) == []
    applied.advance({AT: 1}, {})
    assert flight.of("a", applied) == [] and flight.of("b", applied) == [memory(1)]


def test_what_has_to_be_applied_is_what_is_not_in_flight() -> None:
    flight, applied = InFlight(), AppliedPositions()
    flight.add("a", Freshness({AT: 4}), memory(0), applied)
    assert flight.missing(Freshness({AT: 4, OTHER: 2})) == Freshness({OTHER: 2})
    assert flight.missing(Freshness({AT: 5})) == Freshness({AT: 5}), "another process wrote it"


def test_a_spooled_memory_has_no_place_and_is_not_in_flight() -> None:
    flight, applied = InFlight(), AppliedPositions()
    flight.add("a", Freshness(), memory(0), applied)
    assert flight.of("a", applied) == []


def test_of_too_many_the_oldest_are_waited_for_instead() -> None:
    flight, applied = InFlight(), AppliedPositions()
    for number in range(MAX_MEMORIES + 3):
        flight.add("a", Freshness({AT: number + 1}), memory(number), applied)
    assert flight.of("a", applied)[0] == memory(3) and len(flight.of("a", applied)) == MAX_MEMORIES
    assert flight.missing(Freshness({AT: MAX_MEMORIES + 3})) == Freshness({AT: 3})
    applied.advance({AT: 3}, {})
    assert applied.covers(flight.missing(Freshness({AT: MAX_MEMORIES + 3})))
