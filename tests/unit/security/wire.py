"""Two encrypted ends with a wire between them that does what the test says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from kafkalite.env.clock import ManualClock
from kafkalite.env.disk import FileRange
from kafkalite.env.handshakes import Handshake, Handshakes
from kafkalite.env.network import Address, Part, Receiver
from kafkalite.env.tls import Offer, Shown, client_context, server_context
from kafkalite.env.tls_link import TlsFailure, TlsLink
from kafkalite.security.authority import Issued, der_of
from tests.unit.security import keys

TIMEOUT_MS = 30_000


class End:
    """One end of a wire; what is sent waits until `carry`."""

    def __init__(self, name: str, room: int) -> None:
        self.peer_address: Address = (name, 1)
        self.local_address: Address = ("here", 2)
        self.other: End
        self.room = room
        self.taken = 0
        self.swallows = False  # as a system with large buffers does
        self.out = bytearray()
        self.most_out = 0
        self.receiver: Receiver | None = None
        self.is_paused = self.is_closing = self.is_ended = self.has_finished = False

    @property
    def unsent_bytes(self) -> int:
        return 0 if self.swallows else len(self.out)

    @property
    def held_bytes(self) -> int:
        return len(self.out)

    def start(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def send(self, parts: Sequence[Part]) -> None:
        if not self.is_ended:
            for part in parts:
                assert not isinstance(part, FileRange)
                self.out += part
            self.most_out = max(self.most_out, len(self.out))

    def carry(self) -> bool:
        """Brings some bytes to the other end; whether there was anything to do."""
        if self.other.is_closing:
            self.out.clear()  # nobody reads it any more
        if self.is_closing and not self.out:
            self.abort()
        reader = self.other.receiver
        if self.other.is_paused or self.other.is_ended or reader is None:
            return False
        if not self.out:
            return self._finish(reader)
        view = reader.buffer()
        count = min(len(view), len(self.out), self.room)
        view[:count] = self.out[:count]
        del self.out[:count]
        self.taken += count
        reader.received(count)
        if self.receiver is not None and not self.is_ended:
            self.receiver.sent()
        return count > 0

    def _finish(self, reader: Receiver) -> bool:
        if not self.is_ended or self.has_finished:
            return False
        self.has_finished = True
        reader.finished()
        return True

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def close(self) -> None:
        self.is_closing = True

    def abort(self) -> None:
        if not self.is_ended:
            self.is_ended = True
            self.out.clear()
            receiver, self.receiver = self.receiver, None
            if receiver is not None:
                receiver.ended()


class Listening:
    """What one end is told, and what it read."""

    def __init__(self, buffer_bytes: int = 65_536) -> None:
        self.link: TlsLink
        self.read = bytearray()
        self.said: list[str] = []
        self.pauses_at: int | None = None
        self._buffer = memoryview(bytearray(buffer_bytes))

    def buffer(self) -> memoryview:
        return self._buffer

    def received(self, count: int) -> None:
        self.read += self._buffer[:count]
        if self.pauses_at is not None and len(self.read) >= self.pauses_at:
            self.link.pause()

    def sent(self) -> None: ...

    def finished(self) -> None:
        self.said.append("finished")

    def ended(self) -> None:
        self.said.append("ended")


def offer(issued: Issued | None = None, **others: object) -> Offer:
    shown = [] if issued is None else [Shown(issued.key_pem.encode(), issued.chain_pem.encode())]
    trusted = [der_of(keys.authority().root)]
    return Offer(**{"shown": shown, "trusted": trusted, **others})  # type: ignore[arg-type]


class World:
    """A server's end and a client's."""

    def __init__(
        self,
        server: Offer | None = None,
        client: Offer | None = None,
        *,
        room: int = 1 << 20,
        name: str = "localhost",
    ) -> None:
        self.clock = ManualClock()
        self.soon: deque[Callable[[], None]] = deque()
        self.near, self.far = End("client", room), End("server", room)
        self.near.other, self.far.other = self.far, self.near
        self.handshakes = Handshakes(self.clock, self.soon.append, TIMEOUT_MS)
        self.outcomes: dict[str, TlsLink | TlsFailure] = {}
        self.server, self.client = Listening(), Listening()
        context = server_context(server or offer(keys.server()))
        self.answering = self.handshakes.answer(self.near, context, self._told("server"))
        self.calling: Handshake | None = None
        if client is not None:
            self.calling = self.handshakes.call(
                self.far, client_context(client), name, self._told("client")
            )

    def _told(self, who: str) -> Callable[[TlsLink | TlsFailure], None]:
        def done(outcome: TlsLink | TlsFailure) -> None:
            assert who not in self.outcomes, "told twice"
            self.outcomes[who] = outcome

        return done

    def failure(self, who: str) -> str:
        outcome = self.outcomes[who]
        assert isinstance(outcome, TlsFailure), f"{who} has a link"
        return str(outcome)

    def link(self, who: str) -> TlsLink:
        outcome = self.outcomes[who]
        assert isinstance(outcome, TlsLink), f"{who}: {outcome}"
        return outcome

    def run(self, steps: int = 100_000) -> None:
        """Until nothing happens any more."""
        if not any(not self.turn() for _ in range(steps)):
            raise AssertionError("it does not come to an end")

    def turn(self) -> bool:
        """Of the loop; whether anything happened."""
        moved = bool(self.soon)
        for _ in range(len(self.soon)):
            self.soon.popleft()()
        moved |= self.near.carry()
        moved |= self.far.carry()
        return moved

    def meet(self) -> World:
        """Shakes hands and starts both ends."""
        self.run()
        for who, end in (("server", self.server), ("client", self.client)):
            end.link = self.link(who)
            end.link.start(end)
        self.run()
        return self
