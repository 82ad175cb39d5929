"""On which brokers the tests run that GUARANTEES.md names.

What pytest collects, by hand and with the commands of `.ci/run`.
"""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

import pytest

from dev import QUICK
from streams.log import open_log
from streams.log.sqlite import SqliteLog
from tests.docs.pages import ROOT
from tests.e2e.program import Program
from tests.node_process import NodeProcess
from thalweg.client.launch import Launcher
from thalweg.process.node import Node

KAFKA, SQLITE = "Kafka", "SQLite"
EMBEDDED = frozenset({SqliteLog, open_log, Node, NodeProcess, Program, Launcher})
"""What writes to the embedded log, unless it is told of another broker."""


class _Collected:
    """A plugin that keeps what was collected and selected."""

    items: Sequence[pytest.Item] = ()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.items = list(items)


def collect(files: Iterable[str], *selection: str) -> Sequence[pytest.Item]:
    """The tests of these files that such a command runs."""
    collected = _Collected()
    command = ["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={ROOT}", *selection]
    code = pytest.main([*command, *(str(ROOT / file) for file in files)], plugins=[collected])
    assert code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), code
    return collected.items


def ci_selections() -> list[list[str]]:
    """What each `dev.py test` of `.ci/run` selects: `-m` and `-k` with their expressions."""
    script = (ROOT / ".ci" / "run").read_text()
    commands = re.findall(r"^.*\bpython3 dev\.py test\b(.*)$", script, re.MULTILINE)
    return [_selection(shlex.split(rest) or QUICK) for rest in commands]


def _selection(words: Sequence[str]) -> list[str]:
    return [word for option, value in pairwise(words) if option in ("-m", "-k") for word in (option, value)]


def name_of(item: pytest.Item) -> str:
    """File and function, as the pages name a test."""
    return f"{item.path.relative_to(ROOT)}::{item.name.partition('[')[0]}"


@dataclass(frozen=True)
class Runs:
    """The cases of some tests by the broker on which each runs, None for one that uses no log.

    And which of them `.ci/run` runs.
    """

    cases: Mapping[str, Mapping[str, str | None]]
    """By test, as `name_of` says, and by the case's own name."""
    in_ci: frozenset[str]
    """Names of cases."""

    @classmethod
    def of(cls, files: Sequence[str]) -> Runs:
        """Of all tests of these files."""
        cases: dict[str, dict[str, str | None]] = {}
        for item in collect(files):
            cases.setdefault(name_of(item), {})[item.nodeid] = broker_of(item)
        return cls(
            cases, frozenset(item.nodeid for selection in ci_selections() for item in collect(files, *selection))
        )

    def column(self, tests: Iterable[str]) -> str:
        """What a row that names these tests (a file stands for all of its tests) says of where they run."""
        cases = {case: broker for test in tests for case, broker in self._cases_of(test).items()}
        brokers = {broker for broker in cases.values() if broker}
        left_out = {broker for case, broker in cases.items() if case not in self.in_ci}
        if brokers == {SQLITE, KAFKA} and left_out <= {KAFKA}:
            return "both, in CI SQLite" if left_out else "both"
        return "not all in CI" if left_out else next(iter(brokers), "no broker")

    def _cases_of(self, test: str) -> Mapping[str, str | None]:
        found = {
            case: broker
            for name, cases in self.cases.items()
            if name == test or name.startswith(f"{test}::")
            for case, broker in cases.items()
        }
        assert found, f"there is no test {test}"
        return found


def broker_of(item: pytest.Item) -> str | None:
    """By its mark, or by what it and its fixtures open."""
    if item.get_closest_marker("kafka"):
        return KAFKA
    assert isinstance(item, pytest.Function)
    fixtures = [definition.func for known in item._fixtureinfo.name2fixturedefs.values() for definition in known]
    return SQLITE if _reach_embedded([item.function, *fixtures]) else None


def _reach_embedded(functions: Iterable[Any]) -> bool:
    """Whether any of them, or what they call in the tests, names something that writes to the embedded log."""
    seen: set[Any] = set()
    left = list(functions)
    while left:
        function = left.pop()
        if not inspect.isfunction(function) or (function := inspect.unwrap(function)) in seen:
            continue
        seen.add(function)
        for value in _named(function):
            family = inspect.getmro(value) if inspect.isclass(value) else (value,)
            if not EMBEDDED.isdisjoint(family):
                return True
            for own in family:
                if own.__module__.startswith("tests"):
                    left += vars(own).values() if inspect.isclass(own) else [own]
    return False


def _named(function: FunctionType) -> Iterator[Any]:
    """Functions and classes whose global names its code, and the functions within it, use.

    And those of a module that it runs as a program.
    """
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        values = [function.__globals__.get(name) for name in code.co_names]
        for program in (
            text for text in code.co_consts if isinstance(text, str) and re.fullmatch(r"tests(\.\w+)+", text)
        ):
            values += vars(import_module(program)).values()
        yield from (value for value in values if inspect.isfunction(value) or inspect.isclass(value))
