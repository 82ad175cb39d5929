"""A check of `thalweg doctor`: what it looks at, and the remedy for what it finds wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streams.errors import SettingsError, ThalwegError


@dataclass(frozen=True)
class Diagnosis:
    """The outcome of a check: `detail` says what it saw, `remedy` what to do when it is not `ok`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


class Unsound(Exception):
    """What a check found wrong; the message is one sentence."""


@dataclass(frozen=True)
class Check:
    """`look` returns what it saw, and raises Unsound for what is wrong."""

    name: str
    look: Callable[[], str]
    remedy: str

    def run(self) -> Diagnosis:
        """The diagnosis; an exception of any kind is one too."""
        try:
            return Diagnosis(self.name, True, self.look())
        except Unsound as problem:
            return Diagnosis(self.name, False, str(problem), self.remedy)
        except ThalwegError as error:
            remedy = error.remedy if isinstance(error, SettingsError) else self.remedy
            return Diagnosis(self.name, False, error.message, remedy)
        except Exception as error:  # any exception of a broken installation is what this check is for
            return Diagnosis(self.name, False, f"{type(error).__name__}: {error}", self.remedy)


def require(condition: bool, sentence: str) -> None:
    """Raises Unsound with the sentence unless the condition holds."""
    if not condition:
        raise Unsound(sentence)
