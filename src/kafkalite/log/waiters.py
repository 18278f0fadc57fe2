"""Who waits until an offset is covered: by stable storage, or by the replicas.

Owns the waits on one offset, and not the offset, which whoever owns it moves at once. Those who
wait are told in the loop's next turn, all together: what they do then, an append to another log or
an answer, never runs inside the append, the flush or the change of metadata that moved the offset.
Invariant: every wait ends once, with None or with why it ends in vain.
"""

from __future__ import annotations

from kafkalite.env.clock import Clock
from kafkalite.env.later import Later
from kafkalite.protocol.errors import KafkaError

Outcome = KafkaError | None


class OffsetWaiters:
    """The waits on one offset."""

    __slots__ = ("_clock", "_due", "waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Most logs have nobody who waits, and there are many logs: hence no empty lists.
        self.waiting: list[tuple[int, Later[Outcome]]] | None = None
        self._due: list[tuple[Later[Outcome], Outcome]] | None = None

    def wait_for(self, offset: int) -> Later[Outcome]:
        """Ends when everything below an offset is covered."""
        later: Later[Outcome] = Later()
        if self.waiting is None:
            self.waiting = []
        self.waiting.append((offset, later))
        return later

    def cover(self, end_offset: int) -> None:
        """Everything below an offset is covered now."""
        if self.waiting is not None:
            self._end([one for one in self.waiting if one[0] <= end_offset], None)

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
