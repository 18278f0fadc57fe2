"""`kafkalite serve --control`: the broker as tests have it, and its controls over HTTP.

Owns the order: the address of the controls is taken, the broker serves, its controls answer; at the
end the controls first. Whatever ends the one ends the other.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kafkalite.cli import _banner
from kafkalite.cli._addresses import Address, listening
from kafkalite.cli._port_file import write_port
from kafkalite.cli._properties import TopicWanted
from kafkalite.cli._signals import ENDING, hang_ups
from kafkalite.cli._streams import leave_output
from kafkalite.config import BrokerConfig
from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka
from kafkalite.testing.outcome import Outcome

if TYPE_CHECKING:
    from kafkalite.testing.control import ControlServer

TOKEN_VARIABLE = "KAFKALITE_CONTROL_TOKEN"
LOOK_SECONDS = 0.5


@dataclass(slots=True)
class Door:
    """Where the controls are asked, and who is let in."""

    listener: socket.socket
    token: str | None
    port_file: str | None
    metrics: str | None = None  # where the broker's numbers are told
    metrics_port_file: str | None = None

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.listener.getsockname()[:2]
        return host, port


def open_door(text: str, token: str | None, port_file: str | None) -> Door:
    """Takes the address; ClickException says why it is not to be had."""
    try:
        from kafkalite.testing.control import is_loopback
    except ImportError as error:
        raise click.ClickException(
            f"--control needs starlette and uvicorn ({error}): pip install 'kafkalite[web]'"
        ) from None
    host, port = Address().convert(text, None, None)
    token = os.environ.get(TOKEN_VARIABLE) if token is None else token
    if token is not None and not _is_sendable(token):
        raise click.ClickException(
            "--control-token is empty or has other than visible ASCII characters: choose another"
        )
    if token is None and not is_loopback(host):
        raise click.ClickException(
            f"--control {text} lets other machines control the broker: give --control-token or "
            f"{TOKEN_VARIABLE}, or an address such as 127.0.0.1:{port}"
        )
    return Door(listening("--control", host, port), token, port_file)


def _is_sendable(token: str) -> bool:
    return token.isascii() and token.isprintable() and bool(token) and " " not in token


def serve(
    door: Door,
    config: BrokerConfig,
    settings: Mapping[str, str],
    in_memory: bool,
    port_file: str | None,
    topics: list[TopicWanted],
    reason: Callable[[Exception], str],
) -> int:
    """Until a signal, or the broker's own end; the exit code. `reason` says why a start failed."""
    stopped = _on_signals()
    with closing(door.listener):
        try:
            kafka = _kafka(config, settings, in_memory, topics, door.metrics).start()
        except (BrokerFailed, ValueError) as error:
            cause = error.__cause__
            why = reason(cause if isinstance(cause, Exception) else error)
            click.echo(f"kafkalite cannot start: {why}", err=True)
            return 1
        from kafkalite.testing.control import ControlServer

        controls = ControlServer(kafka, door.listener, door.token)
        controls.start()
        try:
            _tell(door, kafka, config, port_file, in_memory)
            return _serve_until(stopped, kafka)
        except OSError as error:
            click.echo(f"kafkalite cannot start: {error}", err=True)
            return 1
        finally:
            _end(controls, kafka)


def _kafka(
    config: BrokerConfig,
    settings: Mapping[str, str],
    in_memory: bool,
    topics: list[TopicWanted],
    metrics: str | None,
) -> EmbeddedKafka:
    kept = dict(settings)
    if in_memory:
        for name in ("log.dirs", "log.dir"):
            kept.pop(name, None)
    first = config.listeners[0]
    wanted = {each.name: (each.partitions, each.configs) for each in topics}
    return EmbeddedKafka(
        topics=wanted, settings=kept, host=first.host, port=first.port, metrics=metrics
    )


def _on_signals() -> Outcome:
    """Done by the first; the second one ends the process at once."""
    stopped = Outcome()

    def stop(number: int, _: object) -> None:
        if stopped.is_there and number in ENDING:
            os._exit(1)
        if not stopped.is_there:
            stopped.done()
            with suppress(OSError):  # the terminal may have gone
                os.write(2, b"kafkalite is stopping; once more to stop at once\n")

    for number in (*ENDING, *hang_ups()):
        signal.signal(number, stop)
    return stopped


def _serve_until(stopped: Outcome, kafka: EmbeddedKafka) -> int:
    while not stopped.wait(LOOK_SECONDS):
        if not kafka.is_running:
            return 1  # its log says why
    return 0


def _tell(
    door: Door, kafka: EmbeddedKafka, config: BrokerConfig, port_file: str | None, in_memory: bool
) -> None:
    """Where it is, to files and on the screen; whoever cannot read the latter is served anyway."""
    if door.port_file is not None:
        write_port(door.port_file, door.address[1], "--control-port-file")
    if door.metrics_port_file is not None:
        port = int(kafka.metrics_url.rpartition(":")[2])
        write_port(door.metrics_port_file, port, "--metrics-port-file")
    if port_file is not None:
        write_port(port_file, kafka.port)
    try:
        _banner.show(kafka.listeners, config, in_memory=in_memory, control=door.address)
    except OSError as error:
        leave_output()
        logging.warning("it serves, and standard output cannot be written: %s", error.strerror)


def _end(controls: ControlServer, kafka: EmbeddedKafka) -> None:
    """The controls first: nobody asks anything of a broker that stops."""
    controls.stop()
    try:
        kafka.stop()
    except BrokerFailed as error:
        click.echo(str(error), err=True)
