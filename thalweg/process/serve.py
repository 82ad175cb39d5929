"""`thalweg up`: runs a node in the foreground.

It ends on a signal, `thalweg stop`, idleness, or the death of a part.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import traceback
from pathlib import Path
from types import TracebackType

import duckdb
import uvloop

from storage.database import is_damage
from storage.directory_lock import LOCK_NAME, lock_holder
from storage.disk import full_sentence, is_full, low_sentence
from streams.clock import SystemClock, format_time
from streams.errors import ThalwegError
from streams.redaction import redact
from thalweg.process.gc_tuning import freeze_startup_objects
from thalweg.process.node import Node
from thalweg.process.worker import Worker
from thalweg.settings import Settings
from thalweg.status import last_node

STOP_S = 30.0


class WithoutSecrets(logging.Formatter):
    """Formats a log line and its traceback without secrets.

    A library's exception may quote its arguments.
    """

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def _print_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an exception that ends the process, without secrets."""
    sys.stderr.write(redact("".join(traceback.format_exception(kind, error, trace))))


def serve(settings: Settings) -> int:
    """Run the node; returns the exit code. A part that dies ends the process at once (crash-only)."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(WithoutSecrets("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
    sys.excepthook = _print_exception
    for noisy in ("faust", "mode", "aiokafka", "kafka"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLogger().level))
    # Faust's consumers make loops of their own, each in a thread
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    # Not closed: that waits for the parts that `stop` left, and the process ends now.
    return asyncio.Runner().run(_serve(settings))


async def _serve(settings: Settings) -> int:
    node = Worker(settings) if settings.role == "worker" else Node(settings)
    loop = asyncio.get_running_loop()
    try:
        await node.start()
    except Exception as error:
        keep_failure(error, settings)
        if (
            not isinstance(error, ThalwegError)
            and not met_full_disk(error, settings)
            and not is_in_the_way(error, settings)
        ):
            raise
        print(f"thalweg: {sentence_of(error, settings)}", file=sys.stderr, flush=True)
        await node.stop()
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, node.ask_to_stop)
    freeze_startup_objects()
    last_node.write(settings.home, {"broker": settings.broker_url, "started_at": format_time(node.started_at)})
    print(f"thalweg: ready on {settings.home} ({settings.broker_url})", file=sys.stderr, flush=True)
    if isinstance(node, Node) and (http := node.running.http):
        place = http["token_file"] or "the setting `token`"
        print(
            f"thalweg: HTTP on {http['url']}; clients send `Authorization: Bearer <token>`, "
            f"and the token is in {place}",
            file=sys.stderr,
            flush=True,
        )
    try:
        await node.wait()
    except BaseException as error:
        if isinstance(node, Node) and isinstance(error, duckdb.Error) and is_damage(error):
            node.running.store.database.condemn()  # the next start moves the file aside and replays the log
        die(error, settings)
    loop.call_later(STOP_S, _end_unstopped)
    await node.stop()
    return 0


def _end_unstopped() -> None:
    """End a node whose parts, each within its bound, took too long together. The log has everything."""
    print(f"thalweg: the node did not stop within {STOP_S:g} s and ends now", file=sys.stderr, flush=True)
    os._exit(1)


def met_full_disk(error: BaseException, settings: Settings) -> bool:
    """Whether the disk took no more.

    The keyword index says only that its writer is gone: then the room that is left decides.
    """
    return is_full(error) or low_sentence(settings.home) is not None


def is_in_the_way(error: BaseException, settings: Settings) -> bool:
    """Whether the data directory cannot be used: a file where a folder must be, or rights are missing."""
    return (
        isinstance(error, OSError)
        and error.filename is not None
        and settings.home in Path(os.fsdecode(error.filename)).parents
    )


def sentence_of(error: BaseException, settings: Settings) -> str:
    """Why the node does not go on, for the operator."""
    if met_full_disk(error, settings):
        return full_sentence(settings.home)
    if isinstance(error, OSError) and is_in_the_way(error, settings):
        path = os.fsdecode(error.filename)
        return f"{path} cannot be used: {error.strerror}. Move it away or mend its rights, then start again."
    return redact(getattr(error, "message", None) or f"{type(error).__name__}: {error}")


def keep_failure(error: BaseException, settings: Settings) -> None:
    """Keep the failure for `thalweg status`, unless another process owns the directory.

    That process then writes what is kept there.
    """
    if lock_holder(settings.home / LOCK_NAME) in (None, str(os.getpid())):
        last_node.failed(settings.home, sentence_of(error, settings), format_time(SystemClock().now()))


def die(error: BaseException, settings: Settings) -> None:
    """Say in one sentence why, and end at once: nothing is drained, the log has it all."""
    logging.getLogger("thalweg").debug("the node stopped", exc_info=error)
    keep_failure(error, settings)
    print(f"thalweg: the node stopped: {sentence_of(error, settings)}", file=sys.stderr, flush=True)
    os._exit(1)
