"""`thalweg hook`: what a client gives its hook becomes telemetry."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from thalweg.commands.options import HOME, settings_of
from thalweg.paths import make_home


@click.command()
@click.argument("event", required=False)
@click.option(
    "--answer", is_flag=True, help="Print what the model should know, as the hook's JSON; wait a moment only."
)
@click.option(
    "--off", "switch", flag_value="off", help="Capture no more sessions in the current directory; no EVENT then."
)
@click.option("--on", "switch", flag_value="on", help="Capture them again.")
@HOME
@click.option("--namespace", help="The namespace of the session.")
def hook(event: str | None, answer: bool, switch: str | None, home: Path | None, namespace: str | None) -> None:
    """Publish a client's hook event, read from stdin as JSON.

    At a session's end its transcript is imported too. With --answer, SessionStart prints a brief of what is known, and
    UserPromptSubmit at most five facts that bear on the prompt. Exit code 0, also where the event could not be
    recorded, which a sentence says; never 2, by which a hook forbids what its client is about to do.

    \b
    Example: echo '{"session_id": "s1", "hook_event_name": "Stop"}' | thalweg hook Stop
    """
    if (event is None) is (switch is None):
        raise click.UsageError("Name the EVENT, or --off or --on alone.")
    if event is None:
        from thalweg.importing.ignore import switch_off, switch_on

        place = settings_of(home=home).home
        make_home(place)
        click.echo((switch_off if switch == "off" else switch_on)(place, Path.cwd()))
        return
    from thalweg.client.hook import run

    options = {"--home": home, "--namespace": namespace}
    flags = [f"{name}={value}" for name, value in options.items() if value is not None]
    sys.exit(run([event, *flags, *(["--answer"] if answer else [])]))


COMMAND = hook
