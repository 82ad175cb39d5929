"""The domains: packages of `processors` whose parts have the same names. By these names the frame finds them."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import processors


def modules_of(part: str) -> Iterator[ModuleType]:
    """Each domain's module `part`, or the modules of its package of that name, in alphabetical order."""
    for domain in pkgutil.iter_modules(processors.__path__, processors.__name__ + "."):
        if not domain.ispkg or importlib.util.find_spec(name := f"{domain.name}.{part}") is None:
            continue
        found = importlib.import_module(name)
        if hasattr(found, "__path__"):
            yield from (
                importlib.import_module(module.name)
                for module in pkgutil.iter_modules(found.__path__, found.__name__ + ".")
            )
        else:
            yield found
