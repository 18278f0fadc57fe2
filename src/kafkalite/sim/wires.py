"""A network between several machines: links that are slow, cut one way or both, and hosts that die.

Owns what is on its way, and which ways are cut. The bytes of one link arrive in order. What is sent
over a way that is cut waits until that is mended, as a real network's does that sends again and
again; who wants to connect over it waits, too. Every delay comes from the one chance of the
simulation.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from kafkalite.env.clock import ManualClock
from kafkalite.env.network import SYSTEM_BUFFERS, Address, Buffers, Link, Part
from kafkalite.sim.machine_life import MachineLife
from kafkalite.sim.network import bytes_of
from kafkalite.sim.reading_end import ReadingEnd

DELAY_MS = 8
LATE_MS = 400
TRIED_AGAIN_MS = 100
CONNECT_MS = 5_000

Way = tuple[str, str]  # from, to


class Wires:
    """All links of a world."""

    def __init__(self, clock: ManualClock, random: Random) -> None:
        self.clock, self._random = clock, random
        self.ports: dict[Address, HostPort] = {}
        self.slowest_ms = DELAY_MS
        self._cut: set[Way] = set()
        self._ends: list[End] = []

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cut

    def cut(self, ways: Sequence[Way]) -> None:
        self._cut |= {*ways}

    def mend(self, ways: Sequence[Way]) -> None:
        self._cut -= {*ways}
        for end in list(self._ends):
            end.go_on()

    def join(self, first: End, second: End) -> None:
        first.other, second.other = second, first
        self._ends = [each for each in self._ends if each.is_of_use]
        self._ends += [first, second]

    def died(self, life: MachineLife) -> None:
        """The other sides hear of it, as far as they can be reached."""
        for address, port in list(self.ports.items()):
            if port.life is life:
                del self.ports[address]
        for end in self._ends:
            if end.life is life:
                end.hang_up()

    def delay_ms(self) -> int:
        if self._random.random() < 0.01:
            return self._random.randrange(LATE_MS)
        return self._random.randrange(self.slowest_ms)


class End(ReadingEnd):
    """One side of a link, as its machine holds it."""

    def __init__(self, wires: Wires, life: MachineLife, own: Address, peer: Address) -> None:
        super().__init__()
        self.life, self.local_address, self.peer_address = life, own, peer
        self.other: End | None = None
        self._wires = wires
        self._sent: deque[bytes | None] = deque()  # in order; None is the end
        self._due = 0  # how many of them may arrive now
        self._latest_ms = 0
        self._has_hung_up = False

    @property
    def is_of_use(self) -> bool:
        return bool(self._sent) or not self._has_hung_up

    # --- what goes out ----------------------------------------------------------------------------

    def send(self, parts: Sequence[Part]) -> None:
        if not self._has_hung_up:
            self._carry(b"".join(map(bytes_of, parts)))

    def hang_up(self) -> None:
        """Nothing more comes from here."""
        if not self._has_hung_up:
            self._has_hung_up = True
            self._carry(None)

    def _carry(self, data: bytes | None) -> None:
        clock = self._wires.clock
        now_ms = clock.monotonic_ms()
        self._latest_ms = max(self._latest_ms, now_ms + self._wires.delay_ms())
        self._sent.append(data)
        clock.call_later(self._latest_ms - now_ms, self._arrives)

    def _arrives(self) -> None:
        self._due += 1
        self.go_on()

    def go_on(self) -> None:
        """What is due arrives, unless the way is cut."""
        other = self.other
        assert other is not None
        while self._due and not self._wires.is_cut(self.local_address[0], self.peer_address[0]):
            self._due -= 1
            other.life.does(partial(other.deliver, self._sent.popleft()))

    # --- what comes in ----------------------------------------------------------------------------

    def deliver(self, data: bytes | None) -> None:
        if self._has_ended:
            return
        if data is None:
            self._end()
        else:
            self._came(data)

    # --- its end ----------------------------------------------------------------------------------

    def close(self) -> None:
        self._end()

    def abort(self) -> None:
        self._end()

    def _end(self) -> None:
        if not self._has_ended:
            self.hang_up()
        super()._end()


class HostPort:
    """An open address."""

    def __init__(
        self, wires: Wires, life: MachineLife, address: Address, accept: Callable[[Link], None]
    ) -> None:
        self.life, self.address, self.accept = life, address, accept
        self._wires = wires
        wires.ports[address] = self

    def pause(self) -> None:
        """Nobody here comes to the limits of connections."""

    def resume(self) -> None: ...

    def close(self) -> None:
        if self._wires.ports.get(self.address) is self:
            del self._wires.ports[self.address]


class HostNetwork:
    """The network as one machine sees it in one of its lives."""

    def __init__(self, wires: Wires, host: str, life: MachineLife) -> None:
        self._wires, self._host, self._life = wires, host, life
        self._next_port = 40_000

    def listen(
        self,
        host: str,
        port: int,
        backlog: int,
        accept: Callable[[Link], None],
        buffers: Buffers = SYSTEM_BUFFERS,
    ) -> HostPort:
        return HostPort(self._wires, self._life, (host, port), accept)

    def connect(self, host: str, port: int, done: Callable[[Link | OSError], None]) -> Connecting:
        self._next_port += 1
        own = (self._host, self._next_port)
        return Connecting(self._wires, self._life, own, (host, port), done)

    def soon(self, callback: Callable[[], None]) -> None:
        self._life.call_later(0, callback)


class Connecting:
    """A connection on its way: tried until it comes through or took too long."""

    def __init__(
        self, wires: Wires, life: MachineLife, own: Address, peer: Address,
        done: Callable[[Link | OSError], None],
    ) -> None:  # fmt: skip
        self._wires, self._life, self._own, self._peer = wires, life, own, peer
        self._done: Callable[[Link | OSError], None] | None = done
        self._ends_ms = wires.clock.monotonic_ms() + CONNECT_MS
        wires.clock.call_later(wires.delay_ms() + 1, self._try)

    def cancel(self) -> None:
        self._done = None

    def _try(self) -> None:
        """As the system does it, also while the process stands still."""
        wires, hosts = self._wires, (self._own[0], self._peer[0])
        if self._done is None or not self._life.is_alive:
            return
        if wires.is_cut(*hosts) or wires.is_cut(*reversed(hosts)):
            if wires.clock.monotonic_ms() < self._ends_ms:
                wires.clock.call_later(TRIED_AGAIN_MS, self._try)
            else:
                self._tell(OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
            return
        port = wires.ports.get(self._peer)
        if port is None:
            self._tell(ConnectionRefusedError(f"nobody listens at {self._peer}"))
            return
        there = End(wires, port.life, self._peer, self._own)
        here = End(wires, self._life, self._own, self._peer)
        wires.join(here, there)
        port.life.does(partial(port.accept, there))
        self._tell(here)

    def _tell(self, outcome: Link | OSError) -> None:
        def told() -> None:
            done, self._done = self._done, None
            if done is not None:
                done(outcome)
            elif not isinstance(outcome, OSError):
                outcome.abort()

        self._life.does(told)
