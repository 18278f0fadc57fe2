"""The quotas of one broker: of bytes, of time, of changes of topics, and of new connections.

Owns what the cluster's metadata says of them, in the form in which each request can be held to it.
Invariant: while nobody is limited, `is_on` is false and nothing is counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from kafkalite.config.broker import BrokerConfig
from kafkalite.env.clock import Clock
from kafkalite.quotas.connection_rates import ConnectionRates
from kafkalite.quotas.gauges import Gauges
from kafkalite.quotas.limits import NOBODY, Key
from kafkalite.quotas.meter import Kinds, Meter
from kafkalite.quotas.permits import Mutations
from kafkalite.quotas.rates import Rate, Window

USER, CLIENT_ID, IP = "user", "client-id", "ip"
CONNECTIONS = "connection_creation_rate"
CHANGES, WAITS = "ControllerMutation", "throttle-time"  # as their numbers are called

Entity = tuple[tuple[str, str | None], ...]  # a kind and a name each; None is the default of all


def window_of(config: BrokerConfig) -> Window:
    """What rates of bytes, of time and of connections are reckoned over."""
    seconds = config.get_int("quota.window.size.seconds")
    return Window(config.get_int("quota.window.num"), seconds * 1000)


class ClientQuotas:
    """Of all clients of one broker; of changes of topics, of all that have the same controller."""

    def __init__(self, config: BrokerConfig, clock: Clock, mutations: Mutations) -> None:
        window = window_of(config)
        self.is_on = False
        self._kinds = Kinds(
            clock, Gauges(Rate, window, clock), Gauges(Rate, window, clock),
            Gauges(Rate, window, clock), mutations,
        )  # fmt: skip
        self._connections = ConnectionRates()

    def set(self, entity: Entity, values: Mapping[str, float]) -> None:
        """All that is said of an entity from now on."""
        names = dict(entity)
        if IP in names:
            rate = values.get(CONNECTIONS)
            self._connections.set(names[IP], None if rate is None else _whole(rate))
            return
        kinds = self._kinds
        user, client_id = names.get(USER, NOBODY), names.get(CLIENT_ID, NOBODY)
        for limits, key in (
            (kinds.produced.limits, "producer_byte_rate"),
            (kinds.fetched.limits, "consumer_byte_rate"),
            (kinds.time.limits, "request_percentage"),
            (kinds.mutations.limits, "controller_mutation_rate"),
        ):
            limits.set(user, client_id, values.get(key))
        self.is_on = kinds.is_on

    def rates(self) -> list[tuple[str, str, list[tuple[Key, float]]]]:
        """What clients had lately, by what it is called, while anybody is limited in it."""
        kinds, now_ms = self._kinds, self._kinds.clock.monotonic_ms()
        named: tuple[tuple[str, str, Gauges[Rate]], ...] = (
            ("Produce", "byte-rate", kinds.produced), ("Fetch", "byte-rate", kinds.fetched),
            ("Request", "request-time", kinds.time),
        )  # fmt: skip
        found = [
            (type_, name, [(key, rate.value(now_ms)) for key, rate in gauges.items()])
            for type_, name, gauges in named
        ]
        buckets = [(key, bucket.tokens(now_ms)) for key, bucket in kinds.mutations.items()]
        found.append((CHANGES, "tokens", [each for each in buckets if each[1] < math.inf]))
        found += [(type_, WAITS, gauges.waits()) for type_, _, gauges in named]
        return [*found, (CHANGES, WAITS, kinds.mutations.waits())]

    def meter(self, principal: str, size: int) -> Meter:
        """For a request of so many bytes."""
        return Meter(self._kinds, principal, size)

    def is_at(self, name: str, address: str | None) -> None:
        """What is said of a host by its name holds for this address, or for nobody."""
        self._connections.is_at(name, address)

    def connection_rate(self, host: str) -> float | None:
        """How many connections an address may make in a second, if somebody has said so."""
        return self._connections.of(host)


def _whole(rate: float) -> float:
    """As Java makes an int of it."""
    return 0 if math.isnan(rate) else int(rate)
