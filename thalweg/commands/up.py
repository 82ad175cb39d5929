"""`thalweg up`: run the node."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from storage.malloc import tune_malloc
from thalweg.commands.options import HOME, setting_options, settings_of
from thalweg.process.gc_tuning import collect_rarely

SETTINGS = ("broker", "role", "http", "embedder", "namespace", "toolsets", "read_only", "idle_exit_s")
"""The settings that are flags too, beside --home."""


@click.command()
@HOME
@setting_options(SETTINGS)
def up(**flags: Any) -> None:
    """Run the node in the foreground until it is stopped.

    \b
    Example: thalweg up --http 7733
    """
    collect_rarely()  # before the imports
    tune_malloc()  # before the threads
    from thalweg.process.serve import serve

    code = serve(settings_of(**flags))
    # All parts are closed. The thread of a Kafka consumer whose broker is gone never ends; Python would wait for it.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


COMMAND = up
