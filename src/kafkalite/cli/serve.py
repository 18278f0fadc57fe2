"""`kafkalite serve`: one broker in this process, until it is told to stop."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
from contextlib import suppress
from typing import TextIO

import click
from rich.console import Console

from kafkalite.broker import Broker
from kafkalite.cli import _banner, _properties
from kafkalite.cli._properties import DEFAULT_DATA, DEFAULT_LISTEN
from kafkalite.cli._recovery_bar import RecoveryBar
from kafkalite.config import BrokerConfig, InvalidSetting, MalformedProperties
from kafkalite.env import real_env
from kafkalite.env.disk import LockedByOther
from kafkalite.env.loop import new_loop
from kafkalite.env.sockets import SocketNetwork
from kafkalite.log.directory import WrongDirectory

OPEN_FILES = 1 << 16


@click.command()
@click.option("--listen", metavar="HOST:PORT",
              help=f"Where to listen [{DEFAULT_LISTEN}]; port 0 picks one.")
@click.option("--data-dir", metavar="DIR", help=f"Where data lies [{DEFAULT_DATA}].")
@click.option("--memory", "in_memory", is_flag=True,
              help="Keep everything in memory; it ends with the process.")
@click.option("--port-file", metavar="FILE", help="Write the port to FILE once the broker serves.")
@click.option("-c", "--config", "properties", type=click.File(encoding="utf-8"), metavar="FILE",
              help="An unmodified Kafka server.properties.")
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE",
              help="One more setting; may be repeated.")
@click.option("--topic", "topics", multiple=True, metavar="NAME[:PARTITIONS[:k=v,…]]",
              help="Create a topic unless it is there; may be repeated.")
def command(
    listen: str | None,
    data_dir: str | None,
    in_memory: bool,
    port_file: str | None,
    properties: TextIO | None,
    overrides: tuple[str, ...],
    topics: tuple[str, ...],
) -> None:
    """Start a broker.

    Stops on SIGTERM or Ctrl-C in good order; a second signal stops it at once.
    """
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr
    )
    try:
        config, ignored = _properties.broker_config(
            properties, listen, data_dir, in_memory, overrides
        )
        wanted = [_properties.topic(text) for text in topics]
    except (InvalidSetting, MalformedProperties) as error:
        raise click.ClickException(str(error)) from None
    for judgement in ignored:
        logging.warning("%s has no effect: %s", judgement.key, judgement.reason)
    _raise_open_files()
    serving = _Serving(config, in_memory, port_file, wanted)
    sys.exit(serving.run())


class _Serving:
    """The life of the process: loop, broker, signals."""

    def __init__(
        self,
        config: BrokerConfig,
        in_memory: bool,
        port_file: str | None,
        topics: list[_properties.TopicWanted],
    ) -> None:
        self._config = config
        self._in_memory = in_memory
        self._port_file = port_file
        self._topics = topics
        self._loop = new_loop()
        self._broker: Broker | None = None
        self._is_stopping = False
        self._exit_code = 0

    def run(self) -> int:
        asyncio.set_event_loop(self._loop)
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._stop)
        try:
            self._start()
        except (LockedByOther, WrongDirectory, OSError) as error:
            click.echo(f"kafkalite cannot start: {_reason(error)}", err=True)
            return 1
        self._loop.run_forever()
        return self._exit_code

    def _start(self) -> None:
        env = real_env(self._loop, in_memory=self._in_memory)
        broker = self._broker = Broker(env, SocketNetwork(self._loop), self._config)
        broker.ended.then(lambda _: _halt())
        started = broker.start()
        bar = RecoveryBar(self._loop.call_later, broker.logs.loading, Console(stderr=True))
        started.then(lambda failure: self._started(failure, bar))

    def _started(self, failure: OSError | None, bar: RecoveryBar) -> None:
        bar.end()
        broker = self._broker
        assert broker is not None
        if failure is not None:
            self._fail(_reason(failure))
            return
        _properties.create(broker, self._topics).then(lambda refusal: self._ready(broker, refusal))

    def _ready(self, broker: Broker, refusal: InvalidSetting | None) -> None:
        if refusal is not None:
            reason = str(refusal)
            broker.stop().then(lambda _: self._fail(reason))
        if refusal is not None or self._is_stopping:
            return
        if self._port_file is not None:
            _write_port(self._port_file, broker)
        _banner.show(broker, in_memory=self._in_memory)

    def _fail(self, reason: str) -> None:
        click.echo(f"kafkalite cannot start: {reason}", err=True)
        self._exit_code = 1
        self._end()

    def _stop(self) -> None:
        if self._is_stopping or self._broker is None:
            os._exit(1)
        self._is_stopping = True
        click.echo("kafkalite is stopping; once more to stop at once", err=True)
        self._broker.stop().then(lambda _: self._end())

    def _end(self) -> None:
        self._loop.call_soon(self._loop.stop)


def _halt() -> None:
    """At once, as Apache Kafka does: a worker may hang on the disk that has failed."""
    logging.shutdown()
    os._exit(1)


def _raise_open_files() -> None:
    """Connections and segments are open files; take what the system allows."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _write_port(path: str, broker: Broker) -> None:
    """In one step, so that who waits for the file never reads half of it."""
    port = next(iter(broker.server.addresses.values()))[1]
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="ascii") as file:
        file.write(f"{port}\n")
    os.replace(temporary, path)


def _reason(error: Exception) -> str:
    if isinstance(error, LockedByOther):
        return (
            f"the data directory is in use by process {error.pid or '(unknown)'} ({error.path}); "
            "stop that one or choose another --data-dir"
        )
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"{error}; choose another --listen, or port 0 for a free one"
    return str(error)
