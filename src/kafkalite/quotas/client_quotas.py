"""The quotas of one broker: of bytes, of time, of changes of topics, and of new connections.

Owns what the cluster's metadata says of them, in the form in which each request can be held to it.
Invariant: while nobody is limited, `is_on` is false and nothing is counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from kafkalite.config.broker import BrokerConfig
from kafkalite.env.clock import Clock
from kafkalite.quotas.gauges import Gauges
from kafkalite.quotas.host_names import address_in
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
        self._connection_rates: dict[str | None, float] = {}  # by address, or a name without one
        self._addresses: dict[str, str] = {}  # of names

    def set(self, entity: Entity, values: Mapping[str, float]) -> None:
        """All that is said of an entity from now on."""
        names = dict(entity)
        if IP in names:
            self._set_connection_rate(names[IP], values.get(CONNECTIONS))
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

    def _set_connection_rate(self, host: str | None, rate: float | None) -> None:
        address = None if host is None else self._addresses.get(host, address_of(host))
        if rate is None:
            self._connection_rates.pop(address, None)
            self._addresses.pop(host or "", None)
        else:
            self._connection_rates[address] = 0 if math.isnan(rate) else int(rate)

    def is_at(self, name: str, address: str) -> None:
        """What is said of a host by its name holds for this address."""
        before, now = self._addresses.get(name, name), address_of(address)
        rate = self._connection_rates.pop(before, None)
        if rate is not None:
            self._addresses[name] = now
            self._connection_rates[now] = rate

    def connection_rate(self, host: str) -> float | None:
        """How many connections an address may make in a second, if somebody has said so."""
        rates = self._connection_rates
        if not rates:
            return None
        rate = rates.get(address_of(host))
        return rates.get(None) if rate is None else rate


def address_of(host: str) -> str:
    """One way to write an address, of all there are; a name stays as it is."""
    return address_in(host) or host
