"""`kafkalite proxy`: what a client and its brokers say to each other, printed or saved."""

from __future__ import annotations

import asyncio
import io
import signal
import sys
from contextlib import suppress
from ssl import SSLContext
from typing import Any

import click

from kafkalite.cli import _conversation_screen as screen
from kafkalite.cli._addresses import Address
from kafkalite.cli._frames import describe_records
from kafkalite.cli._port_file import write_port
from kafkalite.cli._security_files import ListenFile, SecurityFile
from kafkalite.log.failures import is_out_of_descriptors
from kafkalite.security.client_login import OPEN, Security
from kafkalite.testing.recording.entering import Entrances
from kafkalite.testing.recording.proxy import Proxy
from kafkalite.testing.recording.scribe import Scribe
from kafkalite.testing.recording.trace import to_json
from kafkalite.testing.recording.trace_file import TraceFile

NOT_ALL = 1  # exit code
MOST_TROUBLES = 100


@click.command()
@click.option("--to", "broker", required=True, type=Address(), metavar="HOST:PORT",
              help="A broker of the cluster.")
@click.option("--listen", default="127.0.0.1:9192", show_default=True, type=Address(),
              metavar="HOST:PORT", help="Where clients connect; port 0 picks one.")
@click.option("--command-config", "security", type=SecurityFile(), default=OPEN,
              help="How to be let in by brokers, as Java's clients are told it: security.protocol,"
                   " ssl.*, sasl.*. With a login there, clients need none.")
@click.option("--listen-config", "shown", type=ListenFile(),
              help="How clients come: the ssl.* settings of a listener.")
@click.option("--save", "path", metavar="FILE",
              help="Write JSON lines to FILE instead of printing. An older FILE is replaced when"
                   " there is a first line.")
@click.option("--port-file", metavar="FILE", help="Write the port to FILE once clients may come.")
def command(
    broker: tuple[str, int], listen: tuple[str, int], security: Security,
    shown: SSLContext | None, path: str | None, port_file: str | None,
) -> None:
    """Stand between clients and brokers and show what they say.

    Point any client at --listen instead of its broker. Answers that name brokers name the proxy
    instead, one port for each broker, so the client stays with it. What is not Kafka's protocol
    passes as it is. Where brokers or clients speak TLS, --command-config and --listen-config say
    with which keys; logins of clients go through, and nothing secret in them is saved. Ends on
    Ctrl-C.

    \b
    Exit code 0: all that was said was printed or saved.
              1: the proxy could not listen, or not all could be printed or saved.
              2: wrong usage.

        kafkalite proxy --to localhost:9092 --save trace.jsonl
        kafkalite replay trace.jsonl --against localhost:9092 --oracle localhost:9093
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # whatever the terminal can show
    file = _trace_file(path) if path is not None else None
    scribe = Scribe(screen.show if file is None else file.write, _tell)
    entrances = Entrances(security, shown)
    proxy = Proxy(
        broker, listen, scribe.hear, room=scribe.room, tell=_tell, entrances=entrances
    )
    asyncio.run(_serve(proxy, port_file))
    scribe.close()
    if file is not None:
        _finish(file, scribe)
    _tell(_summary(proxy, scribe, path))
    sys.exit(NOT_ALL if scribe.failure else 0)


def _trace_file(path: str) -> TraceFile:
    try:
        return TraceFile(path, lambda said: to_json(said, describe_records))
    except OSError as reason:
        raise click.BadParameter(str(reason), param_hint="--save") from None


def _finish(file: TraceFile, scribe: Scribe) -> None:
    try:
        file.close()
    except OSError as reason:
        scribe.written = 0
        scribe.fail(f"nobody knows what of the trace lasts: {reason.strerror}")


def _summary(proxy: Proxy, scribe: Scribe, path: str | None) -> str:
    text = f"{scribe.heard} requests and responses over {proxy.connections} connections"
    if scribe.failure:
        done = "printed" if path is None else f"saved to {path}"
        return f"{text}: {scribe.written} {done}, {scribe.heard - scribe.written} not"
    if path is None:
        return text
    return f"{text} saved to {path}" if scribe.heard else f"{text}; {path} is as it was"


def _tell(text: str) -> None:
    with suppress(OSError):  # nobody reads it: whoever speaks is served as before
        screen.ERR.print(text, highlight=False, markup=False, soft_wrap=True)


async def _serve(proxy: Proxy, port_file: str | None) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    told: set[str] = set()
    loop.set_exception_handler(lambda _, context: _tell_of_trouble(context, told))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        await proxy.start()
    except OSError as reason:
        raise click.ClickException(f"cannot listen: {reason}") from None
    try:
        if port_file is not None:
            write_port(port_file, proxy.port)
    except OSError as reason:
        await proxy.stop()
        raise click.ClickException(str(reason)) from None
    _tell(f"clients may come to port {proxy.port}; Ctrl-C ends")
    await stopped.wait()
    await proxy.stop()


def _tell_of_trouble(context: dict[str, Any], told: set[str]) -> None:
    """Of what the loop itself meets, such as connections that it cannot take; of each once."""
    reason = context.get("exception")
    text = f"{context['message']}: {reason}" if reason else str(context["message"])
    if is_out_of_descriptors(reason):
        text = "too many files are open: clients wait until others have gone; raise `ulimit -n`"
    if text not in told and len(told) < MOST_TROUBLES:
        told.add(text)
        _tell(text)
