"""`python -m tests.cluster.links`: the links between brokers and to their controller, which can be
cut.

A proxy in front of each, a process of its own, between all who talk to each other; clients go past
it. What is sent over a cut link stands still, as a network's does that sends again and again, and
goes on when the link is mended. Who comes to a broker says so itself: the client id of its first
request begins with `broker-` and its number, with Apache Kafka, too.

Standard input has a line for each change: `cut FROM TO`, or `mend`; standard output the ports.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

LINK = [sys.executable, "-m", "tests.cluster.links"]
CONTROLLER = 0
Link = tuple[int, int]  # from, to
_NAMED = re.compile(rb"broker-(\d+)-")
_HEAD = 14  # of a request: its size, what it asks, in which version, its number, the name's size
_CHUNK = 1 << 16
_LOOK_S = 0.02


class Links:
    """The proxies as whoever makes faults has them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def cut(self, *links: Link) -> None:
        """One way: what the first of the two says does not come to the other."""
        for source, target in links:
            self._tell(f"cut {source} {target}")

    def mend(self) -> None:
        self._tell("mend")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()


@contextmanager
def linked(routes: dict[Link, int]) -> Iterator[tuple[Links, dict[Link, int]]]:
    """A proxy for each route: who comes (0: says so itself) to whom, and that one's port. With the
    ports that they come to."""
    words = [f"{source}:{target}:{port}" for (source, target), port in routes.items()]
    process = subprocess.Popen(
        [*LINK, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        ports = map(int, process.stdout.readline().split())
        yield Links(process), dict(zip(routes, ports, strict=True))
    finally:
        process.kill()
        process.communicate()


# --- the process ----------------------------------------------------------------------------------


class Proxy:
    def __init__(self) -> None:
        self.cut: set[Link] = set()
        self._conversations: set[asyncio.Task[None]] = set()

    async def serve(self, source: int, target: int, port: int) -> int:
        server = await asyncio.start_server(
            partial(self._come, source, target, port), "127.0.0.1", 0
        )
        found: int = server.sockets[0].getsockname()[1]
        return found

    async def _come(
        self, source: int, target: int, port: int, reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:  # fmt: skip
        with suppress(OSError, asyncio.IncompleteReadError):
            first = b"" if source else await _first_of(reader)
            named = _NAMED.search(first)
            source = int(named[1]) if named else source
            await self._while_cut(source, target)
            there, back = await asyncio.open_connection("127.0.0.1", port)
            back.write(first)
            await asyncio.gather(
                self._carry(reader, back, source, target),
                self._carry(there, writer, target, source),
            )
        writer.close()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, source: int, target: int
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._while_cut(source, target)
                writer.write(data)
                await writer.drain()
            await self._while_cut(source, target)
        writer.close()

    async def _while_cut(self, source: int, target: int) -> None:
        while (source, target) in self.cut:
            await asyncio.sleep(_LOOK_S)

    def hear(self, line: str) -> None:
        match line.split():
            case ["cut", source, target]:
                self.cut.add((int(source), int(target)))
            case ["mend"]:
                self.cut.clear()


async def _first_of(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(_HEAD)
    return head + await reader.readexactly(max(0, int.from_bytes(head[12:], "big", signed=True)))


async def main(*words: str) -> None:
    proxy, loop = Proxy(), asyncio.get_running_loop()
    routes = [tuple(map(int, word.split(":"))) for word in words]
    ports = [await proxy.serve(*each) for each in routes]
    print(*ports, flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        proxy.hear(line)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
