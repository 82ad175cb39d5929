"""`thalweg topics`: the topics of the log."""

from __future__ import annotations

from typing import Any

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of


@click.group()
def topics() -> None:
    """The topics of the log."""


@topics.command()
@HOME
@click.option("--broker", help="sqlite:///path/log.db or kafka://host:port")
@click.option("--otlp", is_flag=True, help="Also those that the OpenTelemetry Collector's Kafka exporter writes.")
@JSON
def create(as_json: bool, otlp: bool, **flags: Any) -> None:
    """Create the missing topics.

    \b
    Example: thalweg topics create --broker kafka://localhost:9092
    """
    from thalweg.terminal.topics import create_topics

    settings = settings_of(**flags)
    created = create_topics(settings, otlp=otlp)
    if as_json:
        print_json({"created": created, "broker": settings.broker_url})
    else:
        click.echo(
            "\n".join(
                [
                    *created,
                    f"{len(created)} topics were created on {settings.broker_url}."
                    if created
                    else f"All topics exist on {settings.broker_url}.",
                ]
            )
        )


@topics.command()
@JSON
@click.option("--asyncapi", is_flag=True, help="Print the AsyncAPI document.")
def describe(as_json: bool, asyncapi: bool) -> None:
    """Describe what each topic carries.

    \b
    Example: thalweg topics describe --asyncapi
    """
    from streams.asyncapi import asyncapi_document
    from streams.topics import TOPICS
    from thalweg.terminal.show import show_rows

    if asyncapi:
        print_json(asyncapi_document())
    elif as_json:
        print_json([vars(topic) for topic in TOPICS])
    else:
        show_rows(
            ["topic", "partitions", "key", "retention", "carries"],
            [[t.name, t.partitions, t.key, t.retention, t.carries] for t in TOPICS],
            "",
        )


COMMAND = topics
