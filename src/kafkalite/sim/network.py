"""A network of links between clients and a broker: delays, cuts, and bytes that come too late.

Owns what is on its way. Bytes of one link arrive in order or not at all; a link that its client
gave up may still deliver what was sent on it, much later, as a real one does when the client's
machine is slow or has gone. Every delay comes from the one chance of the simulation.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random

from kafkalite.env.clock import ManualClock, ManualTimer
from kafkalite.env.network import SYSTEM_BUFFERS, Address, Buffers, Link, Part
from kafkalite.sim.life import Life
from kafkalite.sim.reading_end import ReadingEnd

PORT = 9092
DELAY_MS = 8
LATE_MS = 3_000
_SIZE = struct.Struct(">i")


class SimPort:
    """An open address of a broker."""

    def __init__(self, network: SimNetwork, address: Address) -> None:
        self._network = network
        self.address = address

    def pause(self) -> None:
        """Nobody here comes to the limits of connections."""

    def resume(self) -> None: ...

    def close(self) -> None:
        self._network.accept = None


class BrokerLink(ReadingEnd):
    """A connection as the broker holds it."""

    def __init__(self, client: ClientLink) -> None:
        super().__init__()
        self.peer_address: Address = ("10.0.0.9", 40_000)
        self._client = client

    @property
    def local_address(self) -> Address:
        return ("10.0.0.1", PORT)

    def deliver(self, data: bytes) -> None:
        self._came(data)

    def send(self, parts: Sequence[Part]) -> None:
        if not self._has_ended:
            self._client.reply(b"".join(map(bytes_of, parts)))

    def close(self) -> None:
        self._end()
        self._client.cut()

    def abort(self) -> None:
        self.close()

    def end(self) -> None:
        """The client has gone."""
        self._end()


class ClientLink:
    """A connection as its client holds it: frames out, whole frames in."""

    def __init__(
        self,
        network: SimNetwork,
        on_frame: Callable[[memoryview], None],
        on_end: Callable[[], None],
    ) -> None:
        self._network = network
        self._on_frame = on_frame
        self._on_end = on_end
        self._received = bytearray()
        self._latest_out = self._latest_in = 0
        self._is_open = True
        self._life = network.life
        self._broker: BrokerLink | None = None
        accept = network.accept
        if accept is None or not network.life.is_alive:
            network.later(DELAY_MS, self.cut)
            return
        self._broker = BrokerLink(self)
        accept(self._broker)

    def send(self, frame: bytes) -> None:
        broker, life = self._broker, self._life
        if broker is None:
            return
        self._latest_out = self._network.ordered(self._latest_out, lambda: (
            broker.deliver(frame) if life.is_alive else None
        ))

    def reply(self, data: bytes) -> None:
        self._latest_in = self._network.ordered(self._latest_in, lambda: self._arrived(data))

    def _arrived(self, data: bytes) -> None:
        if not self._is_open:
            return
        self._received += data
        while self._is_open and len(self._received) >= _SIZE.size:
            end = _SIZE.size + _SIZE.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            frame = bytes(self._received[_SIZE.size : end])
            del self._received[:end]
            self._on_frame(memoryview(frame))

    def cut(self) -> None:
        """The link has ended; the client hears of it once."""
        if self._is_open:
            self._is_open = False
            self._on_end()

    def give_up(self, *, is_late: bool) -> None:
        """The client listens no more. What it sent is lost, or `is_late`, and then it counts."""
        self._is_open = False
        broker, life = self._broker, self._life
        if broker is None:
            return
        self._broker = None

        def end() -> None:
            if life.is_alive:
                broker.end()

        if is_late:
            delay = max(self._latest_out - self._network.clock.monotonic_ms(), 0)
            self._network.later(delay + LATE_MS, end)
        else:
            end()


class SimNetwork:
    """The links to one broker in one of its lives."""

    def __init__(self, clock: ManualClock, random: Random, life: Life) -> None:
        self.clock = clock
        self.life = life
        self.accept: Callable[[Link], None] | None = None
        self._random = random
        self.slowest_ms = DELAY_MS

    def listen(
        self,
        host: str,
        port: int,
        backlog: int,
        accept: Callable[[Link], None],
        buffers: Buffers = SYSTEM_BUFFERS,
    ) -> SimPort:
        self.accept = accept
        return SimPort(self, (host or "sim", port or PORT))

    def connect(self, host: str, port: int, done: Callable[[Link | OSError], None]) -> ManualTimer:
        """There is one broker in this world, which nobody else listens to."""
        refused = ConnectionRefusedError(f"nobody listens at {host}:{port}")
        return self.later(DELAY_MS, lambda: done(refused))

    def soon(self, callback: Callable[[], None]) -> None:
        self.life.call_later(0, callback)

    def later(self, delay_ms: int, callback: Callable[[], None]) -> ManualTimer:
        return self.clock.call_later(delay_ms, callback)

    def ordered(self, latest_ms: int, callback: Callable[[], None]) -> int:
        """Calls back after a delay, but not before what was sent earlier; tells when."""
        now_ms = self.clock.monotonic_ms()
        due_ms = max(latest_ms, now_ms + self._delay_ms())
        self.clock.call_later(due_ms - now_ms, callback)
        return due_ms

    def _delay_ms(self) -> int:
        if self._random.random() < 0.01:
            return self._random.randrange(LATE_MS)
        return self._random.randrange(self.slowest_ms)


def bytes_of(part: Part) -> bytes:
    if isinstance(part, (bytes, bytearray, memoryview)):
        return bytes(part)
    return part.file.read_at(part.position, part.length)
