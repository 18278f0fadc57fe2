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

    def __init__(self, network: StandingNetwork, asked: Address) -> None:
        self._network = network
        self.asked = asked  # port 0 where one was to be found
        self.is_open = True
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

    def is_again(self, host: str, port: int) -> bool:
        """Whether it is what a broker asks for that comes back."""
        is_same = (host, port) in (self.asked, (host, self.address[1]))
        return is_same and not self.is_open

    def close(self) -> None:
        self.is_open = False
        if self._network.is_renewed:
            self.pause()
        elif self.port is not None:
            self.port.close()
            self._network.forget(self)


class StandingNetwork:
    """The network of one broker."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._network = SocketNetwork(loop)
        self._ports: list[_StandingPort] = []
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
        standing = next((each for each in self._ports if each.is_again(host, port)), None)
        if standing is None:
            standing = _StandingPort(self, (host, port))
            standing.port = self._network.listen(host, port, backlog, standing.accepted, buffers)
            standing.address = standing.port.address
            self._ports.append(standing)
        standing.accept, standing.is_open = accept, True
        standing.resume()
        return standing

    def connect(self, host: str, port: int, done: Callable[[Link | OSError], None]) -> Attempt:
        return self._network.connect(host, port, done)

    def soon(self, callback: Callable[[], None]) -> None:
        self._network.soon(callback)

    def keep(self, listener: str, link: Link) -> None:
        self.kept.append((listener, link))

    def forget(self, port: _StandingPort) -> None:
        if port in self._ports:
            self._ports.remove(port)

    def close(self) -> None:
        """Nobody comes any more: ends what no broker took over."""
        self.is_renewed = False
        kept, self.kept = self.kept, []
        for _, link in kept:
            link.abort()
        for port in list(self._ports):
            port.close()
