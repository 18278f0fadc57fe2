"""Who may come in, and when: how many connections there may be, and how many new ones per second.

Owns the counts: in all, of each listener and of each address, as Apache Kafka keeps them. Beyond
the limits of the broker and of a listener a connection waits; beyond those of its address it is
refused. The listener that brokers speak to each other through is kept free of the broker's own
limits, when there is another one. Never touches a socket.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress

from kafkalite.config import InvalidSetting, broker_settings
from kafkalite.config.broker import BrokerConfig
from kafkalite.config.tables import LISTENER_PREFIX
from kafkalite.config.together import connections_by_host
from kafkalite.env.clock import Clock
from kafkalite.env.dataclasses import dataclass

SAMPLE_MS, SAMPLES = 1_000, 11
LONGEST_WAIT_MS = 1_000
COUNT, RATE = "max.connections", "max.connection.creation.rate"

# New connections per second that an address may make; None when nobody has limited it.
RateOf = Callable[[str], "float | None"]


class Rate:
    """Events per second, as Apache Kafka's metrics have it: over samples of a second each, of which
    those that are still to come count as empty."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[list[int]] = deque(maxlen=SAMPLES)  # when it began, and how many

    def record(self, now_ms: int, count: int = 1) -> None:
        """Something happened; a negative count takes it back."""
        if not self._samples or now_ms - self._samples[-1][0] >= SAMPLE_MS:
            self._samples.append([now_ms, 0])
        self._samples[-1][1] += count

    def wait_ms(self, now_ms: int, limit: float) -> int:
        """How long to wait until it is within a limit again; not longer than a sample."""
        while self._samples and now_ms - self._samples[0][0] >= SAMPLES * SAMPLE_MS:
            self._samples.popleft()
        if not self._samples:
            return 0
        elapsed_ms = now_ms - self._samples[0][0]
        window_ms = elapsed_ms + max(0, SAMPLES - 1 - elapsed_ms // SAMPLE_MS) * SAMPLE_MS
        rate = sum(count for _, count in self._samples) * 1_000 / window_ms
        if rate <= limit:
            return 0
        return min(LONGEST_WAIT_MS, round((rate - limit) / limit * window_ms) if limit else 1 << 31)

    @property
    def newest_ms(self) -> int:
        """When the newest sample began."""
        return self._samples[-1][0] if self._samples else 0


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
        self._rate = Rate()
        self._listener_rates: dict[str, Rate] = {}
        self._host_rates: dict[str, Rate] = {}

    def is_protected(self, listener: str) -> bool:
        """Whether brokers speak to each other through it, and clients have another one."""
        return self._config.derived(_protected) == listener

    def arrived(self, listener: str) -> int:
        """Notes a new connection; returns for how many milliseconds it has to wait."""
        now_ms, waits = self._clock.monotonic_ms(), [0]
        if not self.is_protected(listener):
            self._rate.record(now_ms)
            waits.append(self._rate.wait_ms(now_ms, self._config.get_int(RATE)))
        own = self._listener_rates.setdefault(listener, Rate())
        own.record(now_ms)
        waits.append(own.wait_ms(now_ms, self._limits(listener)[1]))
        return max(waits)

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
            return Refusal("connection_creation_rate", wait_ms)
        if self._by_host[host] >= self._most_of(host):
            return Refusal(f"{COUNT}.per.ip")
        self.total += 1
        self._by_host[host] += 1
        self._by_listener[listener] += 1
        return None

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
            rate = self._host_rates[host] = Rate()
        rate.record(now_ms)
        wait_ms = rate.wait_ms(now_ms, limit)
        if wait_ms:
            rate.record(now_ms, -1)  # it does not come in, so it does not count
        return wait_ms

    def _forget_hosts(self, now_ms: int) -> None:
        """Those that came last long ago, a few at a time: hosts are in the order in which they
        came first."""
        for host in list(self._host_rates)[:2]:
            if now_ms - self._host_rates[host].newest_ms >= SAMPLES * SAMPLE_MS:
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
        for each in config.listeners
    }


def _own_limit(config: BrokerConfig, listener: str, name: str) -> int:
    text = config.text(f"{LISTENER_PREFIX}{listener.lower()}.{name}")
    if text is not None:
        with suppress(InvalidSetting):
            value = broker_settings()[name].parse(text)
            assert isinstance(value, int), f"{name} is a number"
            return value
    return config.get_int(name)
