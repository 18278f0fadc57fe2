"""The calls of a small Produce from the socket to the file, counted while it runs."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import kafkalite
from kafkalite.env.reading import Reading
from kafkalite.env.slicing import Slices
from kafkalite.env.sockets import SocketLink
from kafkalite.server.common import Common
from kafkalite.server.connection import Connection
from kafkalite.server.limits import Deadlines, Limits, RequestMemory
from kafkalite.server.terms import Terms
from tests.unit.handlers.producing import batch_of, by_producer, request
from tests.unit.handlers.whole_broker import WholeBroker

PACKAGE = Path(kafkalite.__file__).parent


def calls_of_a_produce() -> list[str]:
    """Of a broker's second Produce, when nothing is done for the first time."""
    broker = WholeBroker()
    broker.create("t")
    wire = Wire(broker)
    try:
        broker.ask(request(by_producer(broker, 0)), 9)
        wire.send(batch_of(broker, b"v" * 100))
        [way] = ways_to_the_file(wire)
        return way
    finally:
        wire.close()
        broker.close()


class Wire:
    """A connection of the broker over a real socket, which is read when asked to."""

    def __init__(self, broker: WholeBroker) -> None:
        self._broker = broker
        self._loop = asyncio.new_event_loop()
        self._ours, self._peer = socket.socketpair()
        self._ours.setblocking(False)
        limits = Limits.of(broker.config)
        memory = RequestMemory(limits.max_queued_request_bytes)
        deadlines = Deadlines(broker.clock, Slices(broker.clock), limits, memory)
        common = Common(limits, memory, deadlines, lambda act: act())
        self.link = SocketLink(
            self._loop, Reading(self._loop), self._ours, ("10.0.0.9", 40_000)
        )
        terms = Terms(broker.broker.dispatcher)
        self.link.start(Connection(common, terms, self.link, broker.connection, lambda _: None))

    def send(self, batch: Any) -> None:
        self.send_frame(bytes(self._broker.frame(request(batch), 9)))

    def send_frame(self, frame: bytes) -> None:
        self._peer.sendall(struct.pack(">i", len(frame)) + frame)

    def error_code(self) -> int:
        """Of the one partition in the response of version 9: behind its name and its number."""
        response = self._peer.recv(1_000)
        code: int = struct.unpack_from(">h", response, 4 + 4 + 1 + 1 + 2 + 1 + 4)[0]
        return code

    def close(self) -> None:
        self.link.pause()
        self._ours.close()
        self._peer.close()
        self._loop.close()


def ways_to_the_file(wire: Wire) -> list[list[str]]:
    """The calls of this package from the socket's callback to each write of a file."""
    found: list[list[str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "write_at":
            found.append(_ours(frame))

    sys.setprofile(note)
    try:
        wire.link._readable()
    finally:
        sys.setprofile(None)
    return found


def _ours(frame: FrameType | None) -> list[str]:
    names: list[str] = []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            names.append(f"{path.relative_to(PACKAGE)}: {frame.f_code.co_qualname}")
        frame = frame.f_back
    return names[::-1]
