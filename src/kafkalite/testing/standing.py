"""A network whose ports and connections outlast the broker behind them.

Owns the listening sockets of one broker over its renewals, and the links that one life leaves to
the next. Invariant: while nobody listens, those who connect wait in the system's backlog, and what
is sent over a kept link waits in its socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kafkalite.env.network import SYSTEM_BUFFERS, Address, Attempt, Buffers, Link, Port
from kafkalite.env.sockets import SocketNetwork


class _StandingPort:
    """A port of the system's, which is only paused when a broker that is renewed closes it."""

    def __init__(self, network: StandingNetwork) -> None:
        self._network = network
        self.accept: Callable[[Link], None] | None = None
        self.port: Port | None = None
        self.address: Address = ("", 0)

    def accepted(self, link: Link) -> None:
        assert self.accept is not None
        self.accept(link)

    def pause(self) -> None:
        if self.port is not None:
            self.port.pause()

    def resume(self) -> None:
        if self.port is not None:
            self.port.resume()

    def close(self) -> None:
        if self._network.is_renewed:
            self.pause()
        elif self.port is not None:
            self.port.close()
            self._network.forget(self)


class StandingNetwork:
    """The network of one broker."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._network = SocketNetwork(loop)
        self._ports: dict[Address, _StandingPort] = {}
        self.is_renewed = False  # the broker behind it makes way for another one
        self.kept: list[tuple[str, Link]] = []  # with the listeners that they came in by

    def listen(
        self,
        host: str,
        port: int,
        backlog: int,
        accept: Callable[[Link], None],
        buffers: Buffers = SYSTEM_BUFFERS,
    ) -> Port:
        standing = self._ports.get((host, port))
        if standing is None:
            standing = _StandingPort(self)
            standing.port = self._network.listen(host, port, backlog, standing.accepted, buffers)
            standing.address = standing.port.address
            self._ports[host, standing.address[1]] = standing
        standing.accept = accept
        standing.resume()
        return standing

    def connect(self, host: str, port: int, done: Callable[[Link | OSError], None]) -> Attempt:
        return self._network.connect(host, port, done)

    def soon(self, callback: Callable[[], None]) -> None:
        self._network.soon(callback)

    def keep(self, listener: str, link: Link) -> None:
        self.kept.append((listener, link))

    def forget(self, port: _StandingPort) -> None:
        for address in [each for each, known in self._ports.items() if known is port]:
            del self._ports[address]

    def close(self) -> None:
        """Nobody comes any more: ends what no broker took over."""
        self.is_renewed = False
        kept, self.kept = self.kept, []
        for _, link in kept:
            link.abort()
        for port in list(self._ports.values()):
            port.close()
