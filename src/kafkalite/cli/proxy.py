"""`kafkalite proxy`: what a client and its brokers say to each other, printed or saved."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import TextIO

import click

from kafkalite.cli import _conversation_screen as screen
from kafkalite.cli._addresses import Address
from kafkalite.cli._frames import describe_records
from kafkalite.testing.recording.proxy import Proxy
from kafkalite.testing.recording.trace import Said, to_json


@click.command()
@click.option("--to", "broker", required=True, type=Address(), metavar="HOST:PORT",
              help="A broker of the cluster.")
@click.option("--listen", default="127.0.0.1:9192", show_default=True, type=Address(),
              metavar="HOST:PORT", help="Where clients connect; port 0 picks one.")
@click.option("--save", "file", type=click.File("w", encoding="utf-8", lazy=False), metavar="FILE",
              help="Write JSON lines to FILE instead of printing.")
@click.option("--port-file", metavar="FILE", help="Write the port to FILE once clients may come.")
def command(
    broker: tuple[str, int], listen: tuple[str, int], file: TextIO | None, port_file: str | None
) -> None:
    """Stand between clients and brokers and show what they say.

    Point any client at --listen instead of its broker. Answers that name brokers name the proxy
    instead, one port for each broker, so the client stays with it. Ends on Ctrl-C.

        kafkalite proxy --to localhost:9092 --save trace.jsonl
        kafkalite replay trace.jsonl --against localhost:9092 --oracle localhost:9093
    """
    counts = [0]
    proxy = Proxy(broker, listen, _sink(file, counts))
    try:
        asyncio.run(_serve(proxy, port_file))
    except OSError as reason:
        raise click.ClickException(f"cannot listen: {reason}") from None
    screen.ERR.print(f"{counts[0]} requests and responses over {proxy.connections} connections"
                     + (f" saved to {file.name}" if file else ""), highlight=False)


def _sink(file: TextIO | None, counts: list[int]) -> Callable[[Said], None]:
    def sink(said: Said) -> None:
        counts[0] += 1
        if file is None:
            screen.show(said)
        else:
            file.write(to_json(said, describe_records) + "\n")
            file.flush()  # whoever kills the proxy has all until then

    return sink


async def _serve(proxy: Proxy, port_file: str | None) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    await proxy.start()
    if port_file is not None:
        _write_port(port_file, proxy.port)
    screen.ERR.print(f"clients may come to port {proxy.port}; Ctrl-C ends", highlight=False)
    await stopped.wait()
    await proxy.stop()


def _write_port(path: str, port: int) -> None:
    """In one step, so that who waits for the file never reads half of it."""
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="ascii") as file:
        file.write(f"{port}\n")
    os.replace(temporary, path)
