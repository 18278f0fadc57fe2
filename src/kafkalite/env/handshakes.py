"""TLS handshakes that are under way on one loop: a few steps per turn, and not for ever.

Owns the links on which no handshake is over yet, and whose step is next. A signature costs the loop
about a millisecond; many peers that come at once are taken in turn, and everything else goes on
between them. A peer that was answered costs memory until it goes on: there are never more than
`MOST_HALFWAY` of them, the hellos of others wait, and who lets them wait is cut off. Invariant:
whoever began one is told once how it ended, unless it was dropped.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Callable

from kafkalite.env.clock import Clock, Timer
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.network import Attempt, Link, Network
from kafkalite.env.tls_link import BUFFER_BYTES, TlsFailure, TlsLink

STEPS_PER_TURN = 4
TURN_MS = 2
LAST_WORDS_MS = 1_000
# Each has 50 KB of OpenSSL's, and may have sent 32 KB.
MOST_HALFWAY = 256
# Within which one of them goes on, or makes room for who waits.
HALFWAY_MS = 1_000

Done = Callable[[TlsLink | TlsFailure], None]


@dataclass(slots=True, eq=False)
class Handshake:
    """One of them; cancelled, it ends the link and nobody is told."""

    link: TlsLink
    done: Done
    timer: Timer
    owner: Handshakes

    def cancel(self) -> None:
        self.owner.drop(self)


class Handshakes:
    """All of one server, or of one caller."""

    def __init__(
        self, clock: Clock, soon: Callable[[Callable[[], None]], None], timeout_ms: int
    ) -> None:
        self._clock = clock
        self._soon = soon
        self._timeout_ms = timeout_ms
        self._open: dict[Handshake, None] = {}
        self._ready: deque[Handshake] = deque()
        self._hellos: deque[Handshake] = deque()  # of whom nothing is kept but that
        self._halfway: dict[Handshake, int] = {}  # since when they have been answered
        self._room: Timer | None = None
        self._is_flooded = False  # since somebody was cut off to make room
        self._is_due = False
        self._scratch: memoryview | None = None

    def __len__(self) -> int:
        return len(self._open)

    def answer(self, link: Link, context: ssl.SSLContext, done: Done) -> Handshake:
        """Has a peer that called shake hands."""
        return self._begin(self._link(link, context), done)

    def call(self, link: Link, context: ssl.SSLContext, name: str, done: Done) -> Handshake:
        """Shakes hands with a peer that was called by this name."""
        handshake = self._begin(self._link(link, context, name), done)
        self._has_news(handshake, None)  # the caller speaks first
        return handshake

    def drop(self, handshake: Handshake) -> None:
        """Ends it without telling."""
        if handshake in self._open:
            self._over(handshake)
            handshake.link.abort()

    def dismiss(self, link: TlsLink) -> None:
        """Ends a link that nobody has taken; a peer that takes no last words is not waited for."""
        link.give_up()
        if not link.has_ended:
            self._clock.call_later(LAST_WORDS_MS, link.abort)

    def stop(self) -> None:
        """Ends all that are under way: they have failed."""
        self._hellos.clear()
        if self._room is not None:
            self._room.cancel()
        for handshake in list(self._open):
            self._fail(handshake, TlsFailure("this side ends", is_silent=True))

    def _link(self, link: Link, context: ssl.SSLContext, called: str | None = None) -> TlsLink:
        if self._scratch is None:
            self._scratch = memoryview(bytearray(BUFFER_BYTES))
        return TlsLink(link, context, self._soon, self._scratch, called)

    def _begin(self, link: TlsLink, done: Done) -> Handshake:
        def late() -> None:
            why = f"it is not over within {self._timeout_ms} ms"
            self._fail(handshake, TlsFailure(why))

        timer = self._clock.call_later(self._timeout_ms, late)
        handshake = Handshake(link, done, timer, self)
        self._open[handshake] = None
        link.shake(lambda failure: self._has_news(handshake, failure))
        return handshake

    def _has_news(self, handshake: Handshake, failure: TlsFailure | None) -> None:
        if failure is not None:
            self._fail(handshake, failure)
            return
        (self._ready if handshake.link.is_heard else self._hellos).append(handshake)
        self._go_on()

    def _go_on(self) -> None:
        if not self._is_due and (self._ready or self._may_hear):
            self._is_due = True
            self._soon(self._turn)
        if self._hellos and not self._may_hear and self._room is None:
            self._wait_for_room()

    @property
    def _may_hear(self) -> bool:
        return bool(self._hellos) and len(self._halfway) < MOST_HALFWAY

    def _wait_for_room(self) -> None:
        """Has whoever was answered first cut off, once it has had its time."""
        since_ms = next(iter(self._halfway.values()))
        wait_ms = max(0, since_ms + HALFWAY_MS - self._clock.monotonic_ms())
        self._room = self._clock.call_later(wait_ms, self._make_room)

    def _make_room(self) -> None:
        self._room = None
        self._hellos = deque(each for each in self._hellos if each in self._open)
        late_ms = self._clock.monotonic_ms() - HALFWAY_MS
        why = f"it did not go on within {HALFWAY_MS} ms, and others waited for their turn"
        late = [each for each, since_ms in self._halfway.items() if since_ms <= late_ms]
        self._is_flooded |= bool(late)
        for each in late[: len(self._hellos)]:
            self._fail(each, TlsFailure(why))
        self._go_on()

    def _turn(self) -> None:
        self._is_due = False
        end_ms = self._clock.monotonic_ms() + TURN_MS
        for number in range(STEPS_PER_TURN):
            if self._may_hear and (number % 2 or not self._ready):
                self._hear()
            elif self._ready:
                self._step(self._ready.popleft())
            else:
                break
            if self._clock.monotonic_ms() >= end_ms:
                break
        self._go_on()

    def _hear(self) -> None:
        """Takes up the next hello; in a flood the last one, whose peer is the likeliest to wait."""
        handshake = self._hellos.pop() if self._is_flooded else self._hellos.popleft()
        self._is_flooded &= bool(self._hellos)
        if handshake in self._open:
            self._halfway[handshake] = self._clock.monotonic_ms()
            self._step(handshake)

    def _step(self, handshake: Handshake) -> None:
        if handshake not in self._open:
            return
        try:
            is_over = handshake.link.advance()
        except TlsFailure as failure:
            self._fail(handshake, failure)
            return
        if is_over and handshake in self._open:
            self._over(handshake)(handshake.link)

    def _fail(self, handshake: Handshake, failure: TlsFailure) -> None:
        if handshake in self._open:
            done = self._over(handshake)
            self.dismiss(handshake.link)
            done(failure)

    def _over(self, handshake: Handshake) -> Done:
        """Whom to tell. Each knows the other: what is over lets go, so that both are freed."""
        del self._open[handshake]
        handshake.timer.cancel()
        if self._halfway.pop(handshake, None) is not None:
            self._go_on()
        done, handshake.done = handshake.done, _told
        return done


def _told(_: TlsLink | TlsFailure) -> None:
    """Nobody is told twice."""


class _Call:
    """A connection on its way: first to the peer, then through the handshake."""

    __slots__ = ("stage",)

    stage: Attempt | None

    def __init__(self) -> None:
        self.stage = None

    def cancel(self) -> None:
        if self.stage is not None:
            self.stage.cancel()


class EncryptedNetwork:
    """A network whose calls are encrypted, with the keys that count when they are made."""

    def __init__(
        self, network: Network, handshakes: Handshakes, context: Callable[[], ssl.SSLContext]
    ) -> None:
        self._network = network
        self._handshakes = handshakes
        self._context = context
        self.listen, self.soon = network.listen, network.soon

    def connect(self, host: str, port: int, done: Callable[[Link | OSError], None]) -> Attempt:
        call = _Call()

        def connected(outcome: Link | OSError) -> None:
            if isinstance(outcome, OSError):
                done(outcome)
            else:
                call.stage = self._handshakes.call(outcome, self._context(), host, shaken)

        def shaken(outcome: TlsLink | TlsFailure) -> None:
            if isinstance(outcome, TlsFailure):
                done(ConnectionError(f"SSL handshake failed: {outcome}"))
            else:
                done(outcome)

        call.stage = self._network.connect(host, port, connected)
        return call
