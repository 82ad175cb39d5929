"""`thalweg up`: run the node."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from thalweg.commands.options import HOME, settings_of
from thalweg.process.gc_tuning import calm


@click.command()
@HOME
@click.option("--broker", help="sqlite:///path/log.db (default) or kafka://host:port")
@click.option("--role", type=click.Choice(["all", "ingress", "worker"]), help="Which parts this process runs.")
@click.option("--http", help="PORT or HOST:PORT for streamable HTTP.")
@click.option("--embedder", help="minilm, hashing, none or a model name.")
@click.option("--namespace", help="The namespace of this node's callers.")
@click.option("--toolsets", help="Comma-separated toolsets to serve.")
@click.option("--read-only/--no-read-only", default=None, help="Serve only tools that read.")
@click.option("--idle-exit-s", type=float, help="End after so many seconds without a client.")
def up(**flags: Any) -> None:
    """Run the node in the foreground until it is stopped.

    \b
    Example: thalweg up --http 7733
    """
    calm()  # before the imports
    from thalweg.process.serve import serve

    code = serve(settings_of(**flags))
    # All parts are closed. The thread of a Kafka consumer whose broker is gone never ends, and Python would wait for it.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


COMMAND = up
