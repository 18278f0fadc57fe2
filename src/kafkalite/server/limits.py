"""What peers may cost us: memory for requests and replies, time for a frame, lines in the log.

Owns the counts that all connections share and the one timer that looks for those out of time. Never
touches bytes. Invariant: what a peer claims costs nothing; only what has arrived is counted.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterator
from itertools import chain
from typing import Protocol, TypeAlias

from kafkalite.config.broker import BrokerConfig
from kafkalite.env.clock import Clock, Timer
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Slices, Steps, Work

_LOG = logging.getLogger(__name__)

SWEEP_MS = 250
IDLE_LOOKS = 20  # in the time that a connection may be idle
# What a peer that sends nothing more is owed comes by then, or never.
LEAVING_MS = 30_000
# A frame that grows by less is a drip; whatever its link can do, an upload is faster.
FRAME_BYTES_PER_SECOND = 1_024
# When request memory is short, a drip is told from an upload in this time already.
PRESSED_FRAME_MS = 5_000
# When memory for replies is short, a peer that took none for so long makes room for others.
PRESSED_READER_MS = 1_000

# Of encrypted connections without a login, 25 KB each, more cost too much: the oldest have this
# long, and of twice as many half of that.
MOST_STRANGERS = 500
CROWDED_LOGIN_MS = 2_000
# Of frames that are not whole yet, of all who have not logged in.
STRANGERS_BYTES = 8 * 1024 * 1024

LINES_PER_SECOND = 5
BURST_LINES = 20
LOGGED_KINDS = 100


class Expiring(Protocol):
    """A connection, as the sweep sees it."""

    last_active_ms: int

    @property
    def is_busy(self) -> bool:
        """Whether a reply is owed, so that silence is ours and not the peer's."""
        ...

    @property
    def held_reply_bytes(self) -> int:
        """Replies in memory that the peer has not taken."""
        ...

    @property
    def frame_bytes(self) -> int:
        """What has come of a frame that is not whole yet."""
        ...

    @property
    def is_held_up(self) -> bool:
        """Whether we read no further, so that slowness is ours and not the peer's."""
        ...

    def expire(self, reason: str) -> None: ...

    def unmute(self) -> None:
        """Its time of silence is over."""
        ...

    def memory_freed(self) -> bool:
        """Goes on if there is enough now; says whether it does."""
        ...


@dataclass(slots=True)
class Limits:
    """The settings that connections are held to."""

    max_request_bytes: int = 104_857_600
    max_queued_request_bytes: int = 268_435_456
    max_held_reply_bytes: int = 268_435_456
    frame_timeout_ms: int = 30_000
    max_idle_ms: int = 600_000

    @classmethod
    def of(cls, config: BrokerConfig) -> Limits:
        return cls(
            max_request_bytes=config.get_int("socket.request.max.bytes"),
            max_queued_request_bytes=config.get_int("queued.max.request.bytes"),
            frame_timeout_ms=config.get_int("kafkalite.frame.timeout.ms"),
            max_idle_ms=config.get_int("connections.max.idle.ms"),
        )


class RequestMemory:
    """Bytes that wait for the rest of their frame, for their turn or for their answer, over all
    connections.

    Who would pass the limit waits, in turn, and is not read from meanwhile. One frame at a time may
    pass it all the same: frames that hold parts of all memory would else wait for each other.
    """

    __slots__ = ("_first", "_next", "_waiters", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit if limit > 0 else 1 << 62  # -1: no limit, as in Kafka
        self.used = 0
        self._waiters: OrderedDict[Expiring, None] = OrderedDict()
        self._next: Expiring | None = None  # of the waiters, while it is its turn
        self._first: Expiring | None = None  # whose frame may pass the limit

    @property
    def is_short(self) -> bool:
        return self.used >= self.limit

    def may_grow(self, connection: Expiring, held: int) -> bool:
        """Whether a connection may hold twice what it holds."""
        is_its_turn = not self._waiters or connection is self._next
        if is_its_turn and self.used + held <= self.limit:
            return True
        if self._first is None:
            self._first = connection
        return self._first is connection

    @property
    def is_waited_for(self) -> bool:
        return bool(self._waiters)

    def take(self, count: int) -> None:
        self.used += count

    def wait(self, connection: Expiring) -> None:
        """Has `memory_freed` called when there may be room."""
        self._waiters[connection] = None

    def leave(self, connection: Expiring) -> None:
        """Its frame is whole, or will never be."""
        self._waiters.pop(connection, None)
        if self._first is connection:
            self._first = None
            self._wake()

    def give_back(self, count: int) -> None:
        self.used -= count
        assert self.used >= 0
        if self._waiters:
            self._wake()

    def _wake(self) -> None:
        while self._waiters and self._next is None:
            self._next, _ = self._waiters.popitem(last=False)
            try:
                if not self._next.memory_freed():
                    self._waiters.move_to_end(self._next, last=False)
                    return
            finally:
                self._next = None


# Who is to be cut off, and why; None: somebody was looked at who may stay.
_Looked: TypeAlias = tuple[Expiring, str] | None


class Deadlines:
    """Closes what is idle or too slow: one timer, and work only for connections that are due, a few
    of them in each step. Who is muted has a timer of its own, which is there to the millisecond."""

    def __init__(
        self, clock: Clock, slices: Slices, limits: Limits, memory: RequestMemory
    ) -> None:
        self.clock = clock
        self._slices = slices
        self._limits = limits
        self._memory = memory
        self.strangers_memory = RequestMemory(STRANGERS_BYTES)
        # When each was last found to grow, oldest first, and how large it was then.
        self._frames: dict[Expiring, tuple[int, int]] = {}
        self._readers: dict[Expiring, None] = {}  # those that have replies to take
        self._leaving: dict[Expiring, int] = {}  # since when, oldest first
        self._logging_in: dict[Expiring, tuple[int, int]] = {}  # until when, and how long that is
        self._costly: dict[Expiring, int] = {}  # those of them who are encrypted, since when
        self._muted: dict[Expiring, tuple[int, Timer]] = {}  # until when
        self._open: dict[Expiring, None] = {}
        self._timer: Timer | None = None
        self._is_stopped = False
        self._skipped_ms = 0
        self.now_ms = clock.monotonic_ms()  # as of the last sweep: exact enough for deadlines
        self._next_idle_ms = self.now_ms

    def start(self) -> None:
        self._timer = self.clock.call_later(SWEEP_MS, self._sweep)

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def skip(self, duration_ms: int) -> None:
        """So much of the clock's time counts for no connection."""
        self._skipped_ms += duration_ms

    def add(self, connection: Expiring) -> None:
        connection.last_active_ms = self.now_ms
        self._open[connection] = None

    def remove(self, connection: Expiring) -> None:
        self._open.pop(connection, None)
        self._frames.pop(connection, None)
        self._readers.pop(connection, None)
        self._leaving.pop(connection, None)
        self._logging_in.pop(connection, None)
        self._costly.pop(connection, None)
        _, timer = self._muted.pop(connection, (0, None))
        if timer is not None:
            timer.cancel()

    def mute(self, connection: Expiring, wait_ms: int) -> None:
        """Has `unmute` called after that time, unless it is to be called later anyway."""
        end_ms = self.clock.monotonic_ms() + wait_ms
        known_ms, timer = self._muted.get(connection, (0, None))
        if timer is not None:
            if known_ms >= end_ms:
                return
            timer.cancel()

        def over() -> None:
            del self._muted[connection]
            if self._frames.pop(connection, None) is not None:
                self._frames[connection] = (self.now_ms, connection.frame_bytes)
            connection.unmute()

        self._muted[connection] = end_ms, self.clock.call_later(wait_ms, over)

    def login_within(self, connection: Expiring, login_ms: int | None, is_costly: bool) -> None:
        """Gives the peer this long to log in; None: it need not, or has done so."""
        if login_ms is None:
            self._logging_in.pop(connection, None)
            self._costly.pop(connection, None)
            return
        self._logging_in[connection] = (self.now_ms + login_ms, login_ms)
        if is_costly:
            self._costly.setdefault(connection, self.now_ms)

    def leaves(self, connection: Expiring) -> None:
        """The peer sends nothing more."""
        self._leaving[connection] = self.now_ms

    def reply_waits(self, connection: Expiring) -> None:
        """The peer has not taken all of its replies."""
        self._readers[connection] = None

    def replies_taken(self, connection: Expiring) -> None:
        self._readers.pop(connection, None)

    def frame_begun(self, connection: Expiring) -> None:
        """Part of a frame has come; it has to grow from the first call until `frame_done`."""
        self._frames.setdefault(connection, (self.now_ms, 0))

    def frame_done(self, connection: Expiring) -> None:
        self._frames.pop(connection, None)

    def _sweep(self) -> None:
        self.now_ms = self.clock.monotonic_ms() - self._skipped_ms
        again = self._sweep_again
        self._slices.begin(Work(self._sweeping(), lambda _: again(), again))

    def _sweep_again(self) -> None:
        if not self._is_stopped:
            self.start()

    def _sweeping(self) -> Steps[None]:
        looked_at = chain(
            self._slow_frames(), self._slow_readers(), self._leavers(), self._logins(),
            self._crowd(), self._idle(),
        )
        for number, looked in enumerate(looked_at, 1):
            if looked is not None:
                connection, reason = looked
                connection.expire(reason)
            if number % ELEMENTS_PER_STEP == 0:
                yield

    def _logins(self) -> Iterator[_Looked]:
        for connection, (due_ms, login_ms) in list(self._logging_in.items()):
            if connection not in self._logging_in:
                yield None
            elif self.now_ms >= due_ms:
                yield connection, f"it did not log in within {login_ms} ms"
            else:
                yield self._greedy(connection, self.now_ms - (due_ms - login_ms))

    def _greedy(self, connection: Expiring, known_ms: int) -> _Looked:
        """One that holds memory for which others wait who have not logged in, and is not waiting
        itself."""
        may_stay = known_ms < CROWDED_LOGIN_MS or not self.strangers_memory.is_waited_for
        if may_stay or connection.is_held_up or not connection.frame_bytes:
            return None
        return connection, (
            f"its frame was not whole within {CROWDED_LOGIN_MS} ms, and memory for logins was short"
        )

    def _crowd(self) -> Iterator[_Looked]:
        """The first of too many who come by TLS and do not log in; a step of a login that takes
        this side so long is not theirs to answer for."""
        surplus = len(self._costly) - MOST_STRANGERS
        if surplus <= 0:
            return
        patience_ms = CROWDED_LOGIN_MS * MOST_STRANGERS // len(self._costly)
        why = f"it did not log in within {patience_ms} ms, and very many had not"
        for connection, since_ms in list(self._costly.items()):
            if surplus <= 0 or self.now_ms - since_ms < patience_ms:
                return
            if connection in self._costly and not connection.is_busy:
                surplus -= 1
                yield connection, why
            else:
                yield None

    def _leavers(self) -> Iterator[_Looked]:
        while self._leaving:
            connection, since_ms = next(iter(self._leaving.items()))
            if self.now_ms - since_ms < LEAVING_MS:
                return
            yield connection, ""

    def _slow_frames(self) -> Iterator[_Looked]:
        is_pressed = self._memory.is_waited_for
        limit_ms = self._limits.frame_timeout_ms
        if is_pressed:
            limit_ms = min(limit_ms, PRESSED_FRAME_MS)
        while self._frames:
            connection, (since_ms, bytes_then) = next(iter(self._frames.items()))
            age_ms = self.now_ms - since_ms
            if age_ms < limit_ms:
                return
            del self._frames[connection]
            grown = connection.frame_bytes - bytes_then
            if connection.is_held_up or grown * 1000 >= FRAME_BYTES_PER_SECOND * age_ms:
                self._frames[connection] = (self.now_ms, connection.frame_bytes)
                yield None
            else:
                yield connection, (
                    f"a request that is not complete grew by {grown} bytes in {age_ms} ms"
                    + (", and memory for requests was short" if is_pressed else "")
                )

    def _slow_readers(self) -> Iterator[_Looked]:
        held: dict[Expiring, int] = {}
        for connection in list(self._readers):
            held[connection] = connection.held_reply_bytes
            yield None
        surplus = sum(held.values()) - self._limits.max_held_reply_bytes
        if surplus <= 0:
            return
        for connection in sorted(held, key=lambda each: each.last_active_ms):
            silent_ms = self.now_ms - connection.last_active_ms
            if surplus <= 0 or silent_ms < PRESSED_READER_MS:
                return
            surplus -= held[connection]
            if connection in self._readers:
                yield connection, (
                    f"it took no replies for {silent_ms} ms, and memory for replies was short"
                )

    def _idle(self) -> Iterator[_Looked]:
        """Looks at all connections, but seldom: silence is measured in minutes."""
        limit_ms = self._limits.max_idle_ms
        if limit_ms < 0 or self.now_ms < self._next_idle_ms:
            return
        self._next_idle_ms = self.now_ms + limit_ms // IDLE_LOOKS
        for connection in list(self._open):
            is_idle = self.now_ms - connection.last_active_ms >= limit_ms
            is_over = is_idle and not connection.is_busy and connection in self._open
            yield (connection, "") if is_over else None


class LimitedLog:
    """Log lines about peers, few of each kind: a flood of bad frames is no flood of lines."""

    def __init__(self, clock: Clock, logger: logging.Logger = _LOG) -> None:
        self._clock = clock
        self._logger = logger
        self._kinds: dict[str, _Allowance] = {}
        self.counts: Counter[str] = Counter()

    def warn(self, kind: str, text: str) -> None:
        self._write(logging.WARNING, kind, text)

    def bug(self, kind: str, text: str, error: BaseException) -> None:
        """A mistake of ours, with its stack."""
        self._write(logging.ERROR, kind, text, error)

    def _write(
        self, level: int, kind: str, text: str, error: BaseException | None = None
    ) -> None:
        self.counts[kind] += 1
        allowance = self._kinds.get(kind)
        if allowance is None:
            if len(self._kinds) >= LOGGED_KINDS:
                self._kinds.clear()
            allowance = self._kinds[kind] = _Allowance(self._clock.monotonic_ms())
        unwritten = allowance.unwritten
        if allowance.take(self._clock.monotonic_ms()):
            more = f" ({unwritten} more like it were not logged)" if unwritten else ""
            self._logger.log(level, "%s%s", text, more, exc_info=error)


@dataclass(slots=True)
class _Allowance:
    """A bucket of lines that fills with time."""

    filled_ms: int
    lines: float = BURST_LINES
    unwritten: int = 0

    def take(self, now_ms: int) -> bool:
        self.lines = min(
            BURST_LINES, self.lines + (now_ms - self.filled_ms) * LINES_PER_SECOND / 1000
        )
        self.filled_ms = now_ms
        if self.lines < 1:
            self.unwritten += 1
            return False
        self.lines -= 1
        self.unwritten = 0
        return True
