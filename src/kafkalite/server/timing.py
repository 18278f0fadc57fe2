"""How long requests take, stage by stage, of as many as are enough to know.

Owns the samples: of each API the last `SAMPLES` that were timed, and the sums of all. While there
are few requests every one is timed; of many, one of so many that the samples cover some minutes,
for each reading of the clock costs what a hundredth of a small request does. What is summed up is
multiplied accordingly. A request is timed from when its last bytes came, over the wait behind what
came with it (the clock is read for that only where something did), the work of the loop's thread,
and what else was waited for (a log, a disk, others), to when the socket has taken its reply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkalite.env.network import Link, Part

SAMPLES = 1_024
# A ring that is full sooner is too short a time, and one that takes longer too long a time.
SHORT_NS, LONG_NS = 30_000_000_000, 240_000_000_000
MOST_EVERY = 1 << 12
STAGES = (
    "RequestQueue", "Local", "Remote", "ResponseQueue", "ResponseSend", "Throttle"
)  # fmt: skip

Sample = tuple[int, ...]  # nanoseconds of each stage


class Times:
    """Of one API: FetchConsumer and FetchFollower are two."""

    __slots__ = ("_since_ns", "every", "samples", "sums", "taken", "timed")

    def __init__(self, now_ns: int) -> None:
        self.every = 1  # how many requests one sample stands for
        self.samples: list[Sample] = []
        self.sums = [0] * len(STAGES)
        self.timed = 0  # requests that the sums stand for
        self.taken = 0  # samples, since the beginning
        self._since_ns = now_ns

    def take(self, sample: Sample, now_ns: int) -> None:
        every, place = self.every, self.taken % SAMPLES
        self.taken += 1
        self.timed += every
        for stage, spent_ns in enumerate(sample):
            if spent_ns:
                self.sums[stage] += spent_ns * every
        if len(self.samples) < SAMPLES:
            self.samples.append(sample)
        else:
            self.samples[place] = sample
        if place == SAMPLES - 1:
            self._pace(now_ns)

    def _pace(self, now_ns: int) -> None:
        took_ns, self._since_ns = now_ns - self._since_ns, now_ns
        if took_ns < SHORT_NS:
            self.every = min(self.every * (1 + SHORT_NS // max(took_ns, 1)), MOST_EVERY)
        elif took_ns > LONG_NS and self.every > 1:
            self.every //= 2


class Timed:
    """One request that is timed, until its reply has been taken."""

    __slots__ = ("_left_ns", "_local_ns", "_queue_ns", "_ready_ns", "_remote_ns", "_throttle_ns",
                 "_times")  # fmt: skip

    def __init__(self, times: Times, queue_ns: int, local_ns: int) -> None:
        self._times = times
        self._queue_ns, self._local_ns = queue_ns, local_ns
        self._remote_ns = self._throttle_ns = self._ready_ns = self._left_ns = 0

    def came(self, waited_ns: int, *, is_work: bool) -> None:
        """What was waited for is there: work that was done in slices, or something else."""
        if is_work:
            self._local_ns += waited_ns
        else:
            self._remote_ns += waited_ns

    def ready(self, now_ns: int, throttle_ms: int) -> None:
        """There is a reply; it goes when it is the next in order."""
        self._ready_ns, self._throttle_ns = now_ns, throttle_ms * 1_000_000

    def leaves(self, now_ns: int) -> None:
        """The reply is given to the socket."""
        self._left_ns = self._left_ns or now_ns

    @property
    def is_leaving(self) -> bool:
        return self._left_ns > 0

    def taken(self, now_ns: int) -> None:
        """The socket has taken all of it, or there was nothing to send."""
        left_ns = self._left_ns or now_ns
        self._times.take(
            (
                self._queue_ns, self._local_ns, self._remote_ns, left_ns - self._ready_ns,
                now_ns - left_ns, self._throttle_ns,
            ),
            now_ns,
        )  # fmt: skip


class Peer(Protocol):
    """Of a connection: its request whose reply is on its way, if that is timed."""

    timed: Timed | None


class Watch:
    """What the connections of one broker are watched with."""

    __slots__ = ("now_ns", "sent_bytes")

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.now_ns = now_ns
        self.sent_bytes = 0

    def send(self, link: Link, peer: Peer, parts: list[Part]) -> None:
        """With what is timed among them."""
        if peer.timed is not None:
            peer.timed.leaves(self.now_ns())
        link.send(parts)
        if not link.unsent_bytes:
            self.taken(peer)

    def taken(self, peer: Peer) -> None:
        """The socket has taken all that it was given."""
        timed = peer.timed
        if timed is not None and timed.is_leaving:
            peer.timed = None
            timed.taken(self.now_ns())
