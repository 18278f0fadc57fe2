"""A broker's place in a cluster whose controller is elsewhere: registered, let in, kept, given up.

Owns the registration and the heartbeats, one at a time on a way of their own, as with Apache Kafka;
and what is wanted with the next one. A broker that the controller knows no more registers anew, for
as long as that is refused.
Invariant: whoever waits for a step is told once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial

from kafkalite.env.clock import Clock, Timer
from kafkalite.env.dataclasses import dataclass, replace
from kafkalite.env.later import Later, resolve_each
from kafkalite.peers.channel import Channel
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

logger = logging.getLogger(__name__)

REGISTRATION_VERSIONS = range(3, 5)
HEARTBEAT_VERSIONS = range(3)
RETRY_MS = 100
AT_STOP_MS = 50  # between heartbeats, while the controller is asked to let it go
# Trying again does not help a broker that starts; one that serves goes on when the controller is
# as it was.
LASTING = (Error.INCONSISTENT_CLUSTER_ID, Error.UNSUPPORTED_VERSION, Error.INVALID_REGISTRATION)
FORGOTTEN = (Error.STALE_BROKER_EPOCH, Error.BROKER_ID_NOT_REGISTERED)
SHUT_DOWN_MS = 60_000


@dataclass(slots=True, frozen=True)
class Times:
    """broker.heartbeat.interval.ms and its like."""

    heartbeat_ms: int
    session_ms: int
    registration_ms: int


class Lifecycle:
    """Of one broker."""

    def __init__(
        self, clock: Clock, channel: Channel, times: Times, applied: Callable[[], int]
    ) -> None:
        """`applied` is the offset up to which the broker follows the metadata."""
        self._clock, self._channel, self._times, self._applied = clock, channel, times, applied
        self.epoch = -1
        self.is_let_go = False  # the controller has said that nobody needs it any more
        self._request = BrokerRegistrationRequest()
        self._registered: Later[KafkaError | None] = Later()
        self._let_in: Later[KafkaError | None] = Later()
        self._let_go: Later[None] = Later()
        self._wants_in = self._wants_out = False
        self._offline: dict[bytes, None] = {}
        self._told_offline: list[tuple[frozenset[bytes], Later[KafkaError | None]]] = []
        self._cordoned: list[bytes] = []
        self._timer: Timer | None = None
        self._is_asking = self._is_stopped = False
        self._give_up_ms = 0
        self._heard_ms = 0
        self._problem: tuple[str, Error] | None = None  # that was told

    def _now_ms(self) -> int:
        return self._clock.monotonic_ms()

    # --- registration -----------------------------------------------------------------------------

    def register(
        self, request: BrokerRegistrationRequest, cordoned: Iterable[bytes] = ()
    ) -> Later[KafkaError | None]:
        """Filled when the controller has it, fenced; or with why it will not."""
        self._request, self._cordoned = request, list(cordoned)
        self._give_up_ms = self._now_ms() + self._times.registration_ms
        self._register()
        return self._registered

    def _register(self) -> None:
        self._timer = None
        if not self._is_stopped:
            self._is_asking = True
            asked = self._channel.ask(self._request, REGISTRATION_VERSIONS)
            asked.then(self._was_registered)

    def _was_registered(self, answer: BrokerRegistrationResponse | KafkaError) -> None:
        self._is_asking = False
        if self._is_stopped:
            return
        if isinstance(answer, KafkaError):
            error = answer
        else:
            error = KafkaError(_known(answer.error_code))
        if error.code == Error.NONE and isinstance(answer, BrokerRegistrationResponse):
            self.epoch = answer.broker_epoch
            # From now on it is in this life, whose data it has.
            self._request = replace(self._request, previous_broker_epoch=self.epoch)
            self._problem = None
            self._tell_registered(None)
            self._beat_in(0)
        elif not self._registered.is_resolved and (error.code in LASTING or self._is_too_late):
            self._tell_registered(error)
        else:
            self._tell_problem("registers", error)
            again_ms = self._times.heartbeat_ms if error.code in LASTING else RETRY_MS
            self._timer = self._clock.call_later(again_ms, self._register)

    @property
    def _is_too_late(self) -> bool:
        return self._now_ms() >= self._give_up_ms

    def _tell_registered(self, outcome: KafkaError | None) -> None:
        if not self._registered.is_resolved:
            self._registered.resolve(outcome)

    def _tell_problem(self, what: str, error: KafkaError) -> None:
        """Once, until it is gone or another one."""
        if self._problem != (what, error.code):
            logger.warning("the broker %s later: %s", what, error)
        self._problem = what, error.code

    # --- heartbeats -------------------------------------------------------------------------------

    def let_in(self) -> Later[KafkaError | None]:
        """Asks to be let in, now that it is ready; filled when clients may be sent to it."""
        self._wants_in = True
        self._beat_in(0)
        return self._let_in

    def shut_down(self) -> Later[None]:
        """Hands over what it leads; filled when nobody needs it any more, or nobody can be asked
        for a whole session."""
        if not self._wants_out:
            self._wants_out = True
            self._give_up_ms = self._now_ms() + SHUT_DOWN_MS
            self._heard_ms = self._now_ms()
            if self.epoch < 0:
                self._let_go.resolve(None)
            else:
                self._beat_in(0)
        return self._let_go

    def offline(self, directories: Iterable[bytes]) -> Later[KafkaError | None]:
        """Tells the controller of directories that failed; filled when it knows."""
        self._offline |= dict.fromkeys(directories)
        told: Later[KafkaError | None] = Later()
        self._told_offline.append((frozenset(self._offline), told))
        self._beat_in(0)
        return told

    def stop(self) -> None:
        """Says nothing more, and nobody waits any longer."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        over = KafkaError(Error.NETWORK_EXCEPTION, "this broker stops")
        told = [later for _, later in self._told_offline]
        resolve_each(
            (later, over)
            for later in (self._registered, self._let_in, *told)
            if not later.is_resolved
        )
        if not self._let_go.is_resolved:
            self._let_go.resolve(None)

    def _beat_in(self, delay_ms: int) -> None:
        if self._is_stopped or self._is_asking or self.epoch < 0:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(delay_ms, self._beat)

    def _beat(self) -> None:
        self._timer = None
        if self._is_stopped:
            return
        self._is_asking = True
        offline = frozenset(self._offline)
        request = BrokerHeartbeatRequest(
            broker_id=self._request.broker_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._applied(),
            want_fence=not self._wants_in,
            want_shut_down=self._wants_out,
            offline_log_dirs=list(offline),
            cordoned_log_dirs=self._cordoned if self._let_in.is_resolved else None,
        )
        asked = self._channel.ask(request, HEARTBEAT_VERSIONS)
        asked.then(partial(self._was_heard, offline))

    def _was_heard(
        self, offline: frozenset[bytes], answer: BrokerHeartbeatResponse | KafkaError
    ) -> None:
        self._is_asking = False
        if self._is_stopped:
            return
        code = answer.code if isinstance(answer, KafkaError) else _known(answer.error_code)
        if isinstance(answer, KafkaError) or code != Error.NONE:
            self._was_not_heard(KafkaError(code))
            return
        self._problem = None
        self._heard_ms = self._now_ms()
        told = [later for names, later in self._told_offline if names <= offline]
        self._told_offline = [each for each in self._told_offline if not each[0] <= offline]
        for later in told:
            later.resolve(None)
        if answer.should_shut_down and self._wants_out:
            self.is_let_go = True
            self.stop()
            return
        if self._wants_in and not answer.is_fenced and not self._let_in.is_resolved:
            self._let_in.resolve(None)
        self._beat_next(is_fenced=answer.is_fenced)

    def _beat_next(self, *, is_fenced: bool) -> None:
        if self._wants_out and self._now_ms() >= self._give_up_ms:
            self.stop()
        elif self._wants_out or (is_fenced and self._wants_in):
            self._beat_in(AT_STOP_MS)
        else:
            self._beat_in(self._times.heartbeat_ms)

    def _was_not_heard(self, error: KafkaError) -> None:
        if self._wants_out and self._now_ms() >= self._heard_ms + self._times.session_ms:
            self.stop()
        elif error.code in FORGOTTEN and not self._wants_out:
            self.epoch = -1
            self._register()
        elif error.code in FORGOTTEN:
            self.stop()
        else:
            self._tell_problem("is heard of", error)
            self._beat_in(min(RETRY_MS, self._times.heartbeat_ms))


def _known(code: int) -> Error:
    """A newer controller may have errors that nobody here has heard of."""
    try:
        return Error(code)
    except ValueError:
        return Error.UNKNOWN_SERVER_ERROR
