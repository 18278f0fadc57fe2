"""An offset below which everything is covered, by stable storage or by the replicas, and who waits
for it to rise.

It moves at once. Those who wait are told in the loop's next turn, all together: what they do then,
an append to another log or an answer, never runs inside the append, the flush or the change of
metadata that moved it. Invariant: it falls only when its log is cut or begins anew, and every wait
ends once, with None or with why it ends in vain.
"""

from __future__ import annotations

from kafkalite.env.clock import Clock
from kafkalite.env.later import Later
from kafkalite.protocol.errors import Error, KafkaError

Outcome = KafkaError | None


class Watermark:
    """The durable offset of a log, or its high watermark."""

    __slots__ = ("_clock", "_due", "offset", "waiting")

    def __init__(self, clock: Clock, offset: int) -> None:
        self._clock = clock
        self.offset = offset
        # Most logs have nobody who waits, and there are many logs: hence no empty lists.
        self.waiting: list[tuple[int, Later[Outcome]]] | None = None
        self._due: list[tuple[Later[Outcome], Outcome]] | None = None

    def wait_for(self, offset: int) -> Later[Outcome]:
        """Ends when everything below an offset is covered."""
        if offset <= self.offset:
            return Later.of(None)
        later: Later[Outcome] = Later()
        if self.waiting is None:
            self.waiting = []
        self.waiting.append((offset, later))
        return later

    def raise_to(self, offset: int) -> bool:
        """Everything below an offset is covered now; False when it was before."""
        if offset <= self.offset:
            return False
        self.offset = offset
        if self.waiting is not None:
            self._end([one for one in self.waiting if one[0] <= offset], None)
        return True

    def lower_to(self, offset: int) -> None:
        """What lies above an offset has to be covered again; who waits for it waits on."""
        self.offset = min(self.offset, offset)

    def cut_to(self, offset: int) -> None:
        """What lay above an offset is gone, and who waited for it is told."""
        self.lower_to(offset)
        cut = KafkaError(Error.NOT_LEADER_OR_FOLLOWER, f"the log was cut at {offset}")
        self.fail(cut, above=offset)

    def fail(self, error: KafkaError, above: int = -1) -> None:
        """What lies above an offset will never be covered, at least not here."""
        if self.waiting is not None:
            self._end([one for one in self.waiting if one[0] > above], error)

    def _end(self, ended: list[tuple[int, Later[Outcome]]], outcome: Outcome) -> None:
        if not ended:
            return
        assert self.waiting is not None
        if len(ended) == len(self.waiting):
            self.waiting = None
        else:
            gone = {later for _, later in ended}
            self.waiting = [one for one in self.waiting if one[1] not in gone]
        self._tell_soon([(later, outcome) for _, later in ended])

    def _tell_soon(self, due: list[tuple[Later[Outcome], Outcome]]) -> None:
        if self._due is None:
            self._due = due
            self._clock.call_later(0, self._tell)
        else:
            self._due += due

    def _tell(self) -> None:
        due, self._due = self._due or [], None
        told = 0
        try:
            for later, outcome in due:
                told += 1
                later.resolve(outcome)
        finally:
            if told < len(due):  # what one of them did was a mistake; the others are told
                self._tell_soon(due[told:])
