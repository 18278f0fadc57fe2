"""The controller's look for delegation tokens that have expired, from time to time.

Owns when it is done. Without a secret nobody has a token, and there is nothing to look for.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.config import BrokerConfig
from kafkalite.coordinators.cluster.tokens import RemoveExpired
from kafkalite.env.clock import Clock, Timer
from kafkalite.env.later import Later
from kafkalite.protocol.errors import KafkaError
from kafkalite.security.delegation import SECRET


class TokenExpiry:
    """Between `start` and `stop`."""

    def __init__(
        self,
        clock: Clock,
        config: BrokerConfig,
        submit: Callable[[RemoveExpired], Later[bool | KafkaError]],
    ) -> None:
        self._clock, self._config, self._submit = clock, config, submit
        self._timer: Timer | None = None
        self._is_on = False

    def start(self) -> None:
        self._is_on = bool(self._config.get_optional_str(SECRET))
        self._wait()

    def stop(self) -> None:
        self._is_on = False
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        if self._is_on:
            interval_ms = self._config.get_int("delegation.token.expiry.check.interval.ms")
            self._timer = self._clock.call_later(interval_ms, self._look)

    def _look(self) -> None:
        self._submit(RemoveExpired(self._clock.now_ms())).then(self._looked)

    def _looked(self, has_more: bool | KafkaError) -> None:
        if has_more is True and self._is_on:
            self._look()
        else:
            self._wait()
