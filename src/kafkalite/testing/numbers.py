"""The numbers of an `EmbeddedKafka` over HTTP: where, and from when to when.

Owns the address, which stays the same from one start to the next, and the server of HTTP, which
others do without.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from kafkalite.testing.arguments import metrics_address
from kafkalite.testing.plan import BrokerFailed

if TYPE_CHECKING:
    from kafkalite.metrics.broker_server import MetricsServer
    from kafkalite.testing.running import Run


class Numbers:
    """Nothing of it is there where nobody asked for it."""

    def __init__(self, metrics: str | bool | None) -> None:
        self._address = metrics_address(metrics)
        self._listener: socket.socket | None = None
        self._server: MetricsServer | None = None

    @property
    def are_counted(self) -> bool:
        return self._address is not None

    @property
    def url(self) -> str:
        if self._address is None:
            raise ValueError("there are no numbers without metrics=…")
        host, port = self._address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def begin(self, run: Run) -> None:
        """Answers from here on, also while the brokers start; ImportError without the extra."""
        try:
            if self._address is not None:
                self._start(run, *self._address)
            run.begin()
        except BaseException:
            self.stop()
            run.stop()
            raise

    def _start(self, run: Run, host: str, port: int) -> None:
        from kafkalite.metrics.broker_server import Brokers, MetricsServer

        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self._listener = socket.create_server((host, port), family=family)
        except OSError as error:
            raise BrokerFailed(f"metrics={host}:{port}: {error}") from error
        self._address = host, self._listener.getsockname()[1]
        self._server = MetricsServer(
            Brokers(lambda: run.loop, lambda: run.brokers), self._listener
        )  # fmt: skip
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()
        if self._listener is not None:
            self._listener.close()
        self._server = self._listener = None
