"""Stands between clients and a cluster: one listening port for each broker.

Whatever is said goes through unchanged, but for the addresses of brokers in responses: in their
place stands the proxy's own port for that broker, which is opened when it is first named. So a
client that came to one port stays with the proxy wherever the cluster sends it.
"""

from __future__ import annotations

import asyncio
import copy
import socket
import time
from collections.abc import Callable
from contextlib import closing, suppress

from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.framing import MAX_FRAME_BYTES, FrameCutter, frame_size
from kafkalite.testing.recording.addresses import addresses
from kafkalite.testing.recording.conversation import Conversation, Peer, response_frame
from kafkalite.testing.recording.trace import REQUEST, RESPONSE, Said

Address = tuple[str, int]
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
SETTLING_TURNS = 10  # of the event loop
READ_BYTES = 1 << 16
CONNECT_TIMEOUT_SECONDS = 10


class Proxy:
    """`saw` is given everything that is said, in the order in which it came by."""

    def __init__(self, to: Address, listen: Address, saw: Callable[[Said], None]) -> None:
        self._first = to
        self._host, self._port = listen
        self._saw = saw
        self._servers: dict[Address, asyncio.Server] = {}
        self._peers: dict[Address, Peer] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()
        self.connections = 0

    async def start(self) -> None:
        """OSError when the port is not to be had."""
        await self._open(self._first, self._port)

    async def stop(self) -> None:
        loop = asyncio.get_running_loop()
        for server in self._servers.values():
            # A server that is closed loses the connections that it has only just accepted.
            for listening in server.sockets:
                loop.remove_reader(listening.fileno())
        await _settled()
        for server in self._servers.values():
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await _settled()

    @property
    def port(self) -> int:
        return self._port_for(self._first)

    def _port_for(self, address: Address) -> int:
        port: int = self._servers[address].sockets[0].getsockname()[1]
        return port

    async def _open(self, address: Address, port: int) -> None:
        self._peers[address] = peer = Peer(*address)

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
            self.connections += 1
            with suppress(asyncio.CancelledError):  # by `stop`; nobody asks the task how it ended
                await self._serve(self.connections, peer, reader, writer)

        self._servers[address] = await asyncio.start_server(
            accept, sock=_listening(self._host, port)
        )

    async def _serve(
        self, number: int, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One client's connection, until either end closes it."""
        with closing(writer):
            try:
                connecting = asyncio.open_connection(peer.host, peer.port)
                there = await asyncio.wait_for(connecting, CONNECT_TIMEOUT_SECONDS)
            except (OSError, TimeoutError):
                return
            link = _Link(self, Conversation(number, peer), writer.get_extra_info("sockname")[0])
            with closing(there[1]):
                await link.carry_both((reader, writer), there)

    def saw(self, said: Said) -> None:
        self._saw(said)

    async def keep_here(self, said: Said, own_host: str) -> Said | None:
        """A copy of a response with the proxy's addresses; None when it names no broker."""
        if said.message is None or next(addresses(said.message), None) is None:
            return None
        moved = copy.deepcopy(said)
        for each in addresses(moved.message):
            async with self._opening:
                if each.address not in self._servers:
                    await self._open(each.address, 0)
            self._peers[each.address].node_id = each.node_id
            each.holder.host, each.holder.port = own_host, self._port_for(each.address)
        return moved


class _Link:
    """The two ways of one connection. The client knows the proxy as `own_host`."""

    def __init__(self, proxy: Proxy, conversation: Conversation, own_host: str) -> None:
        self._proxy, self._conversation, self._own_host = proxy, conversation, own_host

    async def carry_both(self, client: Ends, broker: Ends) -> None:
        """Until one way ends."""
        ways = [
            asyncio.create_task(self.carry(REQUEST, client[0], broker[1])),
            asyncio.create_task(self.carry(RESPONSE, broker[0], client[1])),
        ]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def carry(
        self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Frame by frame; bytes that are not frames (TLS, say) as they come."""
        cutter: FrameCutter | None = FrameCutter(MAX_FRAME_BYTES)
        with suppress(ConnectionError):
            while data := await reader.read(READ_BYTES):
                if cutter is None:
                    writer.write(data)
                else:
                    cutter = await self._cut(kind, cutter, data, writer)
                await writer.drain()

    async def _cut(
        self, kind: str, cutter: FrameCutter, data: bytes, writer: asyncio.StreamWriter
    ) -> FrameCutter | None:
        cutter.feed(data)
        try:
            while (frame := cutter.take()) is not None:
                seen = await self._seen(kind, bytes(frame))
                writer.write(frame_size([seen]))
                writer.write(seen)
        except MalformedFrame as reason:
            said = self._conversation.unreadable(kind, data, str(reason), _now_ms())
            self._proxy.saw(said)
            writer.write(cutter.release())
            return None
        return cutter

    async def _seen(self, kind: str, frame: bytes) -> bytes:
        """Notes what a frame says; the frame that goes on."""
        if kind == REQUEST:
            self._proxy.saw(self._conversation.request(frame, _now_ms()))
            return frame
        said = self._conversation.response(frame, _now_ms())
        self._proxy.saw(said)
        moved = await self._proxy.keep_here(said, self._own_host)
        return frame if moved is None else response_frame(moved)


def _listening(host: str, port: int) -> socket.socket:
    """One socket, although a name may stand for addresses of both families."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((host, port), family=family)


async def _settled() -> None:
    """What was accepted has become a task by then, and what was closed has let go of its socket."""
    for _ in range(SETTLING_TURNS):
        await asyncio.sleep(0)


def _now_ms() -> int:
    return int(time.time() * 1000)
