"""A link, a service and a connection between them: tests own every byte and every moment."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence

from kafkalite.config.listeners import PLAINTEXT
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.env.network import Address, Part, Receiver
from kafkalite.env.slicing import Slices
from kafkalite.handlers.call import CloseConnection
from kafkalite.server.common import Common
from kafkalite.server.connection import Connection
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.limits import SWEEP_MS, Deadlines, Limits, RequestMemory
from kafkalite.server.terms import Answer, Outcome, Terms

PEER = ("203.0.113.7", 50_000)


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class FakeLink:
    """A link whose peer takes `room` bytes and then no more until `peer_takes` is called."""

    def __init__(self, room: int = 1 << 30, peer_address: Address = PEER) -> None:
        self.room = room
        self.sent = b""
        self.sends = 0
        self.unsent = b""
        self.is_reading = False
        self.is_ended = False
        self.is_closing = False
        self.receiver: Receiver | None = None
        self.local_address = ("198.51.100.1", 9092)
        self.peer_address = peer_address

    @property
    def unsent_bytes(self) -> int:
        return len(self.unsent)

    @property
    def held_bytes(self) -> int:
        return len(self.unsent)

    def start(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.is_reading = True

    def send(self, parts: Sequence[Part]) -> None:
        assert not self.is_ended, "sent on a link that has ended"
        self.sends += 1
        self.unsent += b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]
        self._move()

    def _move(self) -> None:
        count = min(self.room, len(self.unsent))
        self.sent += self.unsent[:count]
        self.unsent = self.unsent[count:]
        self.room -= count
        if self.is_closing and not self.unsent:
            self.abort()

    def peer_takes(self, count: int) -> None:
        self.room += count
        self._move()
        if self.receiver is not None:
            self.receiver.sent()

    def pause(self) -> None:
        self.is_reading = False

    def resume(self) -> None:
        self.is_reading = True

    def close(self) -> None:
        self.is_closing = True
        self.is_reading = False
        self._move()

    def abort(self) -> None:
        if not self.is_ended:
            self.is_ended = True
            self.is_reading = False
            receiver, self.receiver = self.receiver, None
            if receiver is not None:
                receiver.ended()

    def replies(self) -> list[bytes]:
        """The frames that the peer has, without their sizes."""
        found, rest = [], self.sent
        while len(rest) >= 4:
            (size,) = struct.unpack_from(">i", rest)
            found.append(rest[4 : 4 + size])
            rest = rest[4 + size :]
        assert rest == b""
        return found


class FakeService:
    """Answers with what it was sent, or as told: `later-N` waits, `none`, `close`, `big-N`."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self.laters: dict[bytes, Later[Outcome]] = {}
        self.refused: list[int] = []
        self.expired_reasons: list[str] = []

    def answer(self, frame_: memoryview, connection: ConnectionInfo) -> Answer:
        body = bytes(frame_)
        if not frame_.readonly and len(frame_):
            frame_[:] = bytes(len(frame_))  # handlers patch records where they lie
        self.requests.append(body)
        if body.startswith(b"later"):
            self.laters[body] = Later()
            return self.laters[body]
        if body.startswith(b"none"):
            return None
        if body.startswith(b"close"):
            return CloseConnection("told to")
        if body.startswith(b"big-"):
            return [frame(b"b" * int(body[4:]))]
        return [frame(body)]

    def resolve(self, name: bytes) -> None:
        self.laters.pop(name).resolve([frame(name)])

    def refuse(self, head: memoryview, size: int, connection: ConnectionInfo) -> bytes:
        self.refused.append(size)
        return b"" if size < 0 else frame(b"refused")

    def expired(self, reason: str, connection: ConnectionInfo) -> None:
        self.expired_reasons.append(reason)


class World:
    """Connections over fake links, their common limits, and the loop's turns under control."""

    def __init__(self, limits: Limits | None = None, buffer_bytes: int = 262_144) -> None:
        self.clock = ManualClock()
        self.limits = limits or Limits()
        self.service = FakeService()
        self.memory = RequestMemory(self.limits.max_queued_request_bytes)
        self.slices = Slices(self.clock)
        self.deadlines = Deadlines(self.clock, self.slices, self.limits, self.memory)
        self.deadlines.start()
        self._soon: deque[Callable[[], None]] = deque()
        self.common = Common(
            self.limits,
            self.memory,
            self.deadlines,
            self._soon.append,
            memoryview(bytearray(buffer_bytes)),
        )
        self.ended: list[Connection] = []

    def connect(
        self, link: FakeLink, terms: Terms | None = None, protocol: str = PLAINTEXT
    ) -> Connection:
        info = ConnectionInfo(
            protocol, link.local_address, link.peer_address, protocol=protocol
        )
        terms = terms or Terms(self.service)
        connection = Connection(self.common, terms, link, info, self.ended.append)
        link.start(connection)
        return connection

    def feed(self, link: FakeLink, data: bytes, turns: bool = True) -> int:
        """Sends bytes to a connection as long as it reads; returns how many it took."""
        position = 0
        while position < len(data) and link.is_reading and link.receiver is not None:
            receiver = link.receiver
            buffer = receiver.buffer()
            assert len(buffer) > 0, "a receiver that reads has room for a byte"
            count = min(len(buffer), len(data) - position)
            buffer[:count] = data[position : position + count]
            receiver.received(count)
            position += count
            if turns:
                self.turn()
        return position

    def turn(self) -> None:
        """The loop's next turns, until nothing more is due."""
        for _ in range(100_000):
            if not self._soon:
                return
            self._soon.popleft()()
        raise AssertionError("the loop never comes to rest")

    def sweep(self, duration_ms: int = SWEEP_MS) -> None:
        self.clock.advance(duration_ms)
        self.turn()
