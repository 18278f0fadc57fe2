"""`kafkalite serve --metrics`: the broker's own numbers over HTTP.

Owns the order: the address is taken before anything of the broker is touched, and answers from then
on; what there is to say before the broker serves is that it does not yet.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable, Mapping
from socket import socket
from time import monotonic_ns
from typing import TYPE_CHECKING

import click

from kafkalite.broker import Broker
from kafkalite.cli._addresses import Address, listening
from kafkalite.cli._port_file import write_port
from kafkalite.server.counting import Counts

if TYPE_CHECKING:
    from kafkalite.metrics.broker_server import MetricsServer

OPTION = "--metrics"


class Metrics:
    """Who counts, and who tells of it."""

    def __init__(self, text: str, port_file: str | None) -> None:
        """Takes the address; ClickException says why it is not to be had."""
        try:
            import kafkalite.metrics.broker_server  # noqa: F401 - before a port is taken
        except ImportError as error:
            raise click.ClickException(
                f"--metrics needs prometheus-client, starlette and uvicorn ({error}): "
                "pip install 'kafkalite[web]'"
            ) from None
        host, port = Address().convert(text, None, None)
        self.listener: socket = listening(OPTION, host, port)
        self.counts = Counts(monotonic_ns)
        self._port_file = port_file
        self._server: MetricsServer | None = None

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.listener.getsockname()[:2]
        return host, port

    def start(self, loop: AbstractEventLoop, found: Callable[[], Mapping[int, Broker]]) -> None:
        """`found` says which brokers of the loop there are; raises OSError for the port's file."""
        from kafkalite.metrics.broker_server import Brokers, MetricsServer

        if self._port_file is not None:
            write_port(self._port_file, self.address[1], "--metrics-port-file")
        self._server = MetricsServer(Brokers(lambda: loop, found), self.listener)
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
        self.listener.close()
