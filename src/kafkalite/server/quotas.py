"""Who may come in, and when: how many connections there may be, and how many new ones per second.

Owns the counts: in all, of each listener and of each address, as Apache Kafka keeps them. Beyond
the limits of the broker and of a listener a connection waits; beyond those of its address it is
refused. The listener that brokers speak to each other through is kept free of the broker's own
limits, when there is another one. Never touches a socket.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from kafkalite.config import InvalidSetting, broker_settings
from kafkalite.config.broker import BrokerConfig
from kafkalite.config.tables import LISTENER_PREFIX
from kafkalite.config.together import connections_by_host
from kafkalite.env.clock import Clock
from kafkalite.env.dataclasses import dataclass
from kafkalite.quotas.client_quotas import window_of
from kafkalite.quotas.rates import Rate

COUNT, RATE = "max.connections", "max.connection.creation.rate"
MOST_HOSTS = 16_384  # whose rates are known

# New connections per second that an address may make; None when nobody has limited it.
RateOf = Callable[[str], "float | None"]


@dataclass(slots=True, frozen=True)
class Refusal:
    """By which limit, and how long the connection is kept from trying again."""

    limit: str
    delay_ms: int = 0


class ConnectionQuotas:
    """The connections of one broker."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, rate_of: RateOf = lambda host: None
    ) -> None:
        self._config = config
        self._clock = clock
        self._rate_of = rate_of
        self.total = 0
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._window = window_of(config)
        self._rate = Rate(self._window)
        self._listener_rates: dict[str, Rate] = {}
        self._host_rates: OrderedDict[str, Rate] = OrderedDict()

    def is_protected(self, listener: str) -> bool:
        """Whether brokers speak to each other through it, and clients have another one."""
        return self._config.derived(_protected) == listener

    def arrived(self, listener: str) -> int:
        """Notes a new connection; returns for how many milliseconds it has to wait."""
        now_ms = self._clock.monotonic_ms()
        return max(self._waited(rate, now_ms) for rate in self._rates(listener))

    def _waited(self, rate: Rate, now_ms: int) -> int:
        """Notes one, and says how long it waits; no longer than a sample."""
        rate.record(now_ms, 1)
        return min(rate.wait_ms(now_ms), self._window.sample_ms)

    def _rates(self, listener: str) -> list[Rate]:
        """Those that count who comes by a listener, with their limits as they are now."""
        own = self._listener_rates.setdefault(listener, Rate(self._window))
        own.limit = self._limits(listener)[1]
        if self.is_protected(listener):
            return [own]
        self._rate.limit = self._config.get_int(RATE)
        return [self._rate, own]

    def full_by(self, listener: str) -> str | None:
        """Which limit keeps everybody out of a listener for now."""
        if self._by_listener[listener] >= self._limits(listener)[0]:
            return f"{LISTENER_PREFIX}{listener.lower()}.{COUNT}"
        is_free = self.is_protected(listener) or self.total < self._config.get_int(COUNT)
        return None if is_free else COUNT

    def enter(self, listener: str, host: str) -> Refusal | None:
        """Counts a connection in, or says what its address has to do with it that it may not."""
        wait_ms = self._host_wait_ms(host)
        if wait_ms:
            now_ms = self._clock.monotonic_ms()
            for rate in self._rates(listener):  # it does not come in, so it does not count
                rate.record(now_ms, -1)
            return Refusal("connection_creation_rate", wait_ms)
        if self._by_host[host] >= self._most_of(host):
            return Refusal(f"{COUNT}.per.ip")
        self.count(listener, host)
        return None

    def count(self, listener: str, host: str) -> None:
        """One more is in: nobody asks whether it may."""
        self.total += 1
        self._by_host[host] += 1
        self._by_listener[listener] += 1

    def leave(self, listener: str, host: str) -> None:
        self.total -= 1
        self._by_listener[listener] -= 1
        self._by_host[host] -= 1
        if self._by_host[host] <= 0:
            del self._by_host[host]

    @property
    def has_too_many(self) -> bool:
        """Whether those that nothing keeps out are more than there may be in all."""
        return self.total > self._config.get_int(COUNT)

    def _host_wait_ms(self, host: str) -> int:
        limit = self._rate_of(host)
        if limit is None:
            self._host_rates.pop(host, None)
            return 0
        now_ms = self._clock.monotonic_ms()
        rate = self._host_rates.get(host)
        if rate is None:
            self._forget_hosts(now_ms)
            rate = self._host_rates[host] = Rate(self._window)
        else:
            self._host_rates.move_to_end(host)
        rate.limit = limit
        wait_ms = self._waited(rate, now_ms)
        if wait_ms:
            rate.record(now_ms, -1)
        return wait_ms

    def _forget_hosts(self, now_ms: int) -> None:
        """Those that came last long ago, a few at a time, and of very many the one that came least
        lately: hosts are in the order in which they came last."""
        for host in list(islice(self._host_rates, 2)):
            if len(self._host_rates) >= MOST_HOSTS or self._host_rates[host].is_idle(now_ms):
                del self._host_rates[host]

    def _most_of(self, host: str) -> int:
        own = self._config.derived(connections_by_host).get(host)
        return self._config.get_int(f"{COUNT}.per.ip") if own is None else own

    def _limits(self, listener: str) -> tuple[int, int]:
        return self._config.derived(_limits_of_listeners)[listener]


def _protected(config: BrokerConfig) -> str | None:
    own = config.get_optional_str("inter.broker.listener.name")
    name = own or config.get_str("security.inter.broker.protocol")
    return name.upper() if len(config.listeners) > 1 else None


def _limits_of_listeners(config: BrokerConfig) -> dict[str, tuple[int, int]]:
    """Number and rate for each listener by itself: those of the broker unless it has its own."""
    return {
        each.name: (_own_limit(config, each.name, COUNT), _own_limit(config, each.name, RATE))
        for each in config.opened_listeners
    }


def _own_limit(config: BrokerConfig, listener: str, name: str) -> int:
    text = config.text(f"{LISTENER_PREFIX}{listener.lower()}.{name}")
    if text is not None:
        with suppress(InvalidSetting):
            value = broker_settings()[name].parse(text)
            assert isinstance(value, int), f"{name} is a number"
            return value
    return config.get_int(name)
