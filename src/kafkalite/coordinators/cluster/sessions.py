"""Which brokers the controller has heard of lately, and how far each is with the metadata.

Owns that as soft state, as Apache Kafka's controller does: it is in no log, and a controller that
takes the lead gives every broker that is up a whole session. A broker whose session has ended is
fenced. Brokers of this process have none: they are known to be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkalite.coordinators.cluster.brokers import FenceBroker
from kafkalite.env.clock import Clock, Timer
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.later import Later
from kafkalite.protocol.errors import KafkaError

LOOKS_PER_SESSION = 8
UNKNOWN = -1


@dataclass(slots=True)
class Session:
    """Of one broker, in one life of it."""

    until_ms: int
    metadata_offset: int = UNKNOWN  # up to which it has applied the log
    # What all others have to have applied before it may end.
    shut_down_offset: int | None = None


class Sessions:
    """Between `start` and `stop`."""

    def __init__(
        self,
        clock: Clock,
        timeout_ms: int,
        submit: Callable[[FenceBroker], Later[KafkaError | None]],
    ) -> None:
        self._clock, self._timeout_ms, self._submit = clock, timeout_ms, submit
        self._sessions: dict[int, Session] = {}
        self._timer: Timer | None = None
        self._is_stopped = False

    def start(self, up: Iterable[int]) -> None:
        """Those that were up for the controller before."""
        for broker_id in up:
            self.touch(broker_id, UNKNOWN)

    def stop(self) -> None:
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    def is_live(self, broker_id: int) -> bool:
        session = self._sessions.get(broker_id)
        return session is not None and session.until_ms > self._clock.monotonic_ms()

    def touch(self, broker_id: int, metadata_offset: int) -> None:
        """It has been heard of."""
        until_ms = self._clock.monotonic_ms() + self._timeout_ms
        session = self._sessions.setdefault(broker_id, Session(until_ms))
        session.until_ms = until_ms
        session.metadata_offset = max(metadata_offset, session.metadata_offset)
        if self._timer is None and not self._is_stopped:
            self._look_later()

    def end(self, broker_id: int) -> None:
        """It has said that it goes, or begins another life."""
        self._sessions.pop(broker_id, None)

    def begin_shut_down(self, broker_id: int, offset: int) -> None:
        """Everybody is to know first that it leads nothing any more."""
        session = self._sessions.get(broker_id)
        if session is not None and session.shut_down_offset is None:
            session.shut_down_offset = offset

    def may_end(self, broker_id: int) -> bool:
        """Whether all others have applied that it leads nothing."""
        session = self._sessions.get(broker_id)
        if session is None or session.shut_down_offset is None:
            return False
        others = (
            each.metadata_offset
            for key, each in self._sessions.items()
            if key != broker_id and each.shut_down_offset is None and self.is_live(key)
        )
        return min(others, default=session.shut_down_offset) >= session.shut_down_offset

    def _look_later(self) -> None:
        delay_ms = max(1, self._timeout_ms // LOOKS_PER_SESSION)
        self._timer = self._clock.call_later(delay_ms, self._look)

    def _look(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        over = [key for key, each in self._sessions.items() if each.until_ms <= now_ms]
        for broker_id in over:
            del self._sessions[broker_id]
            self._submit(FenceBroker(broker_id)).then(lambda _: None)
        if self._sessions:
            self._look_later()
