"""The commands of the program: one module each, found by being there.

A module defines `COMMAND`, a click command or group. What a command works with is imported inside it, so that the
others do not wait for it.
"""

from __future__ import annotations

import importlib
import pkgutil

import click


def find_commands() -> list[click.Command]:
    """Every `COMMAND` of this package, in the order of their names."""
    modules = (importlib.import_module(f"{__name__}.{entry.name}") for entry in pkgutil.iter_modules(__path__))
    found = [module.COMMAND for module in modules if hasattr(module, "COMMAND")]
    return sorted(found, key=lambda command: command.name or "")
