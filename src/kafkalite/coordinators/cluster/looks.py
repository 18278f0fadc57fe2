"""What the controller looks for from time to time: delegation tokens that have expired,
partitions that others lead than those that should, and those that nobody leads.

Owns when that is done: at once again while there is more. Without a secret nobody has a token, and
with auto.leader.rebalance.enable=false leaders stay where an election put them.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.leader_balance import BalanceLeaders, ElectLeaderless
from kafkalite.coordinators.cluster.tokens import RemoveExpired
from kafkalite.coordinators.events import Event
from kafkalite.env.clock import Clock, Timer
from kafkalite.env.later import Later
from kafkalite.protocol.errors import KafkaError
from kafkalite.security.delegation import SECRET

Submit = Callable[[Event[bool]], Later[bool | KafkaError]]


class Look:
    """Between `start` and `stop`; what is submitted is answered with whether there is more."""

    def __init__(
        self, clock: Clock, interval_ms: int, make: Callable[[], Event[bool]], submit: Submit
    ) -> None:
        self._clock, self._interval_ms = clock, interval_ms
        self._make, self._submit = make, submit
        self._timer: Timer | None = None
        self._is_on = False

    def start(self) -> None:
        self._is_on = True
        self._wait()

    def stop(self) -> None:
        self._is_on = False
        self._rest()

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        self._rest()
        if self._is_on:
            self._timer = self._clock.call_later(self._interval_ms, self._look)

    def _look(self) -> None:
        self._submit(self._make()).then(self._looked)

    def _looked(self, has_more: bool | KafkaError) -> None:
        if has_more is True and self._is_on:
            self._look()
        else:
            self._wait()


def looks_of(clock: Clock, config: BrokerConfig, submit: Submit) -> list[Look]:
    """Those that this controller has to do."""
    found = []
    if config.get_optional_str(SECRET):
        interval_ms = config.get_int("delegation.token.expiry.check.interval.ms")
        found.append(Look(clock, interval_ms, lambda: RemoveExpired(clock.now_ms()), submit))
    if config.get_bool("auto.leader.rebalance.enable"):
        interval_ms = config.get_int("leader.imbalance.check.interval.seconds") * 1_000
        found.append(Look(clock, interval_ms, BalanceLeaders, submit))
    interval_ms = config.get_int("unclean.leader.election.interval.ms")
    found.append(Look(clock, interval_ms, ElectLeaderless, submit))
    return found
