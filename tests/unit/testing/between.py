"""A proxy between a client that the test plays and a broker that a function plays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from kafkalite.client.wire import request_frame
from kafkalite.protocol import codec, headers
from kafkalite.protocol.framing import frame_size
from kafkalite.testing.recording.proxy import Proxy
from kafkalite.testing.recording.said import Said

HERE = "127.0.0.1"
TIMEOUT_S = 10

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Play = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Stand:
    """What stands there, and what it has said to whom."""

    to: tuple[str, int]
    said: list[Said] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    proxy: Proxy = field(init=False)

    async def client(self, port: int | None = None) -> Ends:
        return await asyncio.open_connection(HERE, port or self.proxy.port)


@asynccontextmanager
async def played(broker: Play, port: int = 0) -> AsyncIterator[int]:
    """The port of a broker, each connection to which is played by the function."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await broker(reader, writer)
        writer.close()

    server = await asyncio.start_server(take, HERE, port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def proxy_to(port: int, **options: object) -> AsyncIterator[Stand]:
    stand = Stand((HERE, port))
    stand.proxy = Proxy(
        stand.to, (HERE, 0), stand.said.append, tell=stand.told.append, **options  # type: ignore[arg-type]
    )
    await stand.proxy.start()
    try:
        yield stand
    finally:
        await stand.proxy.stop()


@asynccontextmanager
async def between(broker: Play) -> AsyncIterator[Stand]:
    async with played(broker) as port, proxy_to(port) as stand:
        yield stand


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(scenario(), TIMEOUT_S)

    asyncio.run(limited())


def asked(request: object, version: int, correlation_id: int = 1) -> bytes:
    """A request on the wire."""
    frame = request_frame(request, version, correlation_id, "me")
    return frame_size([frame]) + frame


def answered(response: object, version: int, correlation_id: int = 1) -> bytes:
    key = response.API_KEY  # type: ignore[attr-defined]
    header = headers.encode_response_header(key, version, correlation_id)
    frame = header + codec.encode(response, version)
    return frame_size([frame]) + frame


async def frame_from(reader: asyncio.StreamReader) -> bytes:
    """The next one without its size."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)
