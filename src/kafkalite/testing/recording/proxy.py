"""Stands between clients and a cluster: one listening port for each broker.

Whatever is said goes through unchanged, but for the addresses of brokers in responses: in their
place stands the proxy's own port for that broker, which is opened when it is first named. So a
client that came to one port stays with the proxy wherever the cluster sends it.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from kafkalite.log.failures import is_out_of_descriptors
from kafkalite.protocol.framing import frame_size
from kafkalite.security.client_login import Security
from kafkalite.testing.recording.addresses import addresses, has_addresses
from kafkalite.testing.recording.conversation import Conversation, Peer, copied
from kafkalite.testing.recording.cutting import Held
from kafkalite.testing.recording.entering import IN_THE_OPEN, Entrances, entered
from kafkalite.testing.recording.link import Ends, Hearer, Link, shut
from kafkalite.testing.recording.said import RESPONSE, Said, frame_of

Address = tuple[str, int]
SETTLING_TURNS = 10  # of the event loop
CONNECT_TIMEOUT_SECONDS = 10
PAUSE_SECONDS = 0.1
MOST_PORTS = 1_000
HIGHEST_PORT = 65_535


async def _always() -> None:
    """There is always room."""


def _nobody(text: str) -> None:
    """Nobody is told."""


@dataclass(slots=True)
class Port:
    """Where the proxy listens for one broker."""

    server: asyncio.Server
    peer: Peer
    is_away: bool = False  # said so, and not been reached since

    @property
    def number(self) -> int:
        number: int = self.server.sockets[0].getsockname()[1]
        return number


class Proxy:
    """`saw` is given everything that is said, in the order in which it came by; before more is
    read `room` is awaited. `tell` is told what somebody should know who looks after the proxy."""

    def __init__(
        self,
        to: Address,
        listen: Address,
        saw: Callable[[Said], None],
        *,
        room: Callable[[], Awaitable[None]] = _always,
        tell: Callable[[str], None] = _nobody,
        entrances: Entrances = IN_THE_OPEN,
    ) -> None:
        self._first = to
        self._entrances = entrances
        self._host, self._port = listen
        self._hearer, self._tell = Hearer(saw, room), tell
        self._held = Held()
        self._ports: dict[Address, Port] = {}
        self._left: set[Address | str] = set()  # what was said to stay as it is
        self._connections: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()
        self.connections = 0

    async def start(self) -> None:
        """OSError when the port is not to be had."""
        await self._open(self._first, self._port)

    async def stop(self) -> None:
        loop = asyncio.get_running_loop()
        servers = [port.server for port in self._ports.values()]
        for server in servers:
            # A server that is closed loses the connections that it has only just accepted.
            for listening in server.sockets:
                loop.remove_reader(listening.fileno())
        await _settled()
        for server in servers:
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await _settled()

    @property
    def port(self) -> int:
        return self._ports[self._first].number

    # --- connections ------------------------------------------------------------------------------

    async def _open(self, address: Address, number: int) -> Port:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            self.connections += 1
            with suppress(asyncio.CancelledError):  # by `stop`; nobody asks the task how it ended
                await self._serve(self.connections, port, (reader, writer))

        server = await asyncio.start_server(
            accept, sock=_listening(self._host, number), start_serving=False,
            ssl=self._entrances.shown,
        )  # fmt: skip
        port = self._ports[address] = Port(server, Peer(*address))
        await server.start_serving()
        return port

    async def _serve(self, number: int, port: Port, client: Ends) -> None:
        """One client's connection, until both ends have closed it or one is gone."""
        broker = None
        try:
            broker = await self._connected(port)
            if broker is not None:
                own_host = client[1].get_extra_info("sockname")[0]
                link = Link(
                    Conversation(number, port.peer), self._hearer, self._held,
                    lambda said: self._named_here(said, own_host),
                )
                await link.carry(client, broker)
        finally:
            task = asyncio.current_task()
            is_stopped = task is not None and bool(task.cancelling())
            for end in filter(None, (client, broker)):
                shut(end[1], at_once=is_stopped)

    async def _connected(self, port: Port) -> Ends | None:
        """None when the broker is not there, which is said once until it is there again."""
        try:
            there = await _connection_to(port.peer, self._entrances.to)
        except (OSError, UnicodeError) as reason:  # a TimeoutError is one
            if not port.is_away:
                self._tell(_away(port.peer, reason, is_first=port is self._ports[self._first]))
            port.is_away = True
            return None
        if port.is_away:
            self._tell(f"{_named(port.peer)} is there again")
        port.is_away = False
        return there

    # --- addresses --------------------------------------------------------------------------------

    async def _named_here(self, said: Said, own_host: str) -> bytes | None:
        """A response with the proxy's addresses; None when it names no broker."""
        if said.message is None:
            self._warn_of_unread(said)
            return None
        if next(addresses(said.message), None) is None:
            return None
        moved = replace(said, message=copied(said))
        for each in addresses(moved.message):
            port = await self._port_of(each.address, own_host)
            if port is not None:
                port.peer.node_id = each.node_id
                each.holder.host, each.holder.port = own_host, port.number
        if frame_of(said) != said.frame:
            self._warn_of_lost(said)
        frame = frame_of(moved)
        return frame_size([frame]) + frame

    async def _port_of(self, address: Address, own_host: str) -> Port | None:
        """Where the proxy stands for a broker; None when its address has to stay."""
        async with self._opening:
            if address in self._ports:
                return self._ports[address]
            reason = self._cannot_stand_for(address, own_host)
            if reason is None:
                try:
                    return await self._open(address, 0)
                except OSError as error:
                    reason = f"no port can be opened for it: {error.strerror or error}"
        if address not in self._left and len(self._left) < MOST_PORTS:
            self._left.add(address)
            self._tell(f"{address[0]}:{address[1]} stays in answers as it is ({reason}):"
                       " what clients say there is not recorded")
        return None

    def _cannot_stand_for(self, address: Address, own_host: str) -> str | None:
        host, number = address
        if not host or number > HIGHEST_PORT:
            return "no client can go there"
        own_numbers = {port.number for port in self._ports.values()}
        if number in own_numbers and _is_host_of(host, own_host):
            return "it is the proxy's own, and should be the broker's: see advertised.listeners"
        if len(self._ports) >= MOST_PORTS:
            return f"the proxy stands for {MOST_PORTS} brokers already"
        return None

    def _warn_of_lost(self, said: Said) -> None:
        what = f"answers to {said.api} v{said.version}"
        if what not in self._left:
            self._left.add(what)
            self._tell(f"{what} name brokers, and pass without what no spec of kafkalite's knows")

    def _warn_of_unread(self, said: Said) -> None:
        what = f"{said.api} v{said.version}"
        names_brokers = said.api is not None and has_addresses(f"{said.api}Response")
        if said.kind == RESPONSE and names_brokers and what not in self._left:
            self._left.add(what)
            self._tell(f"an answer to {what} passes as it is ({said.reason}):"
                       " clients may leave the proxy by the addresses in it")


async def _connection_to(peer: Peer, security: Security) -> Ends:
    """Waits while too many files are open: others may go."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CONNECT_TIMEOUT_SECONDS
    while True:
        try:
            connecting = entered(peer.host, peer.port, security)
            return await asyncio.wait_for(connecting, CONNECT_TIMEOUT_SECONDS)
        except OSError as reason:
            if not is_out_of_descriptors(reason) or loop.time() > deadline:
                raise
        await asyncio.sleep(PAUSE_SECONDS)


def _is_host_of(host: str, own_host: str) -> bool:
    return host.lower() in (own_host, "localhost", "127.0.0.1", "::1", socket.gethostname().lower())


def _away(peer: Peer, reason: Exception, *, is_first: bool) -> str:
    if is_out_of_descriptors(reason):
        cure = "raise `ulimit -n`"
    elif getattr(reason, "errno", None) == errno.EACCES:
        cure = "say in --command-config how to be let in"
    elif is_first:
        cure = "start it, or give its address with --to"
    else:
        cure = "start it, or have it advertise an address that can be reached from here"
    text = getattr(reason, "strerror", None) or str(reason) or "no answer"
    return f"{_named(peer)} cannot be reached ({text}): clients are turned away; {cure}"


def _named(peer: Peer) -> str:
    return f"broker {peer}" if peer.node_id is None else f"broker {peer.node_id} at {peer}"


def _listening(host: str, port: int) -> socket.socket:
    """One socket, although a name may stand for addresses of both families."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((host, port), family=family)


async def _settled() -> None:
    """What was accepted has become a task by then, and what was closed has let go of its socket."""
    for _ in range(SETTLING_TURNS):
        await asyncio.sleep(0)
