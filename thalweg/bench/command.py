"""`thalweg bench`: measurements as commands."""

import click


@click.group()
def bench() -> None:
    """Measure this machine."""
