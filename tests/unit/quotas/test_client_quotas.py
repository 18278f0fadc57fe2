"""A broker's quotas: what the metadata says of them, and what a request is charged."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from kafkalite.config.broker import BrokerConfig
from kafkalite.env.clock import ManualClock
from kafkalite.env.slicing import finish
from kafkalite.quotas.client_quotas import ClientQuotas
from kafkalite.quotas.host_names import address_in
from kafkalite.quotas.meter import Meter, metered
from kafkalite.quotas.permits import mutations
from kafkalite.quotas.rates import NO_LIMIT

USER = (("user", "alice"),)


class World:
    """Quotas, and time that passes or is spent."""

    def __init__(self, **settings: str) -> None:
        self.clock = ManualClock()
        config = BrokerConfig({name.replace("_", "."): text for name, text in settings.items()})
        self.quotas = ClientQuotas(config, self.clock, mutations(config, self.clock))

    def meter(self, size: int = 0, client_id: str | None = "c") -> Meter:
        meter = self.quotas.meter("User:alice", size)
        meter.is_of(client_id)
        return meter


def test_it_is_off_until_somebody_is_limited_and_again_when_nobody_is() -> None:
    quotas = World().quotas
    for key in (
        "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"
    ):  # fmt: skip
        quotas.set((("client-id", None), ("user", None)), {key: 1.0})
        assert quotas.is_on
        quotas.set((("client-id", None), ("user", None)), {})
        assert not quotas.is_on


def test_bytes_of_a_produce_are_charged_with_its_reply() -> None:
    world = World()
    world.quotas.set(USER, {"producer_byte_rate": 100.0})
    assert world.meter(1_000).settle(is_produce=True, is_timed=True) == 0
    assert world.meter(1_000).settle(is_produce=False, is_timed=True) == 0
    assert world.meter(500).settle(is_produce=True, is_timed=True) == 5_000


def test_settings_say_what_rates_are_reckoned_over() -> None:
    world = World(quota_window_num="3", quota_window_size_seconds="2")
    world.quotas.set(USER, {"producer_byte_rate": 100.0, "consumer_byte_rate": 50.0})
    assert world.meter(400).settle(is_produce=True, is_timed=True) == 0
    assert world.meter(100).settle(is_produce=True, is_timed=True) == 1_000
    assert world.meter().most_fetched() == 200


def test_a_fetch_that_is_too_much_is_not_charged() -> None:
    world = World()
    assert world.meter().most_fetched() == NO_LIMIT
    world.quotas.set(USER, {"consumer_byte_rate": 100.0})
    assert world.meter().most_fetched() == 1_000
    assert world.meter().fetched(1_000) == 0
    late = world.meter()
    assert late.fetched(200) == 2_000
    assert late.settle(is_produce=False, is_timed=True) == 2_000
    assert world.meter().fetched(0) == 0


def test_time_is_charged_while_the_loop_is_at_work() -> None:
    world = World()
    world.quotas.set(USER, {"request_percentage": 10.0})
    meter = world.meter()
    world.clock.spend(800)
    meter.pause()
    world.clock.spend(60_000)  # for others
    assert world.meter().settle(is_produce=False, is_timed=True) == 0, "it is long ago"
    meter.resume()
    world.clock.spend(1_010)
    assert meter.settle(is_produce=False, is_timed=True) == 90
    world.clock.spend(990)
    meter.pause()
    assert world.meter().settle(is_produce=False, is_timed=True) == 1_000, "a sample at most"


def test_time_between_steps_is_others() -> None:
    world = World()
    world.quotas.set(USER, {"request_percentage": 1.0})
    meter = world.meter()
    meter.pause()

    def steps() -> Generator[None, None, str]:
        for _ in range(2):
            world.clock.spend(20)
            yield
        world.clock.spend(20)
        return "done"

    running = metered(steps(), meter)
    for _ in range(2):
        next(running)
        world.clock.spend(1_000)
    assert finish(running) == "done"
    world.clock.advance(9_000)
    wait_ms = world.meter().settle(is_produce=False, is_timed=True)
    assert wait_ms == 0
    meter.resume()
    world.clock.spend(500)
    meter.pause()
    assert world.meter().settle(is_produce=False, is_timed=True) > 0


@pytest.mark.parametrize("is_exempt", [True, False])
def test_what_is_exempt_costs_no_time(is_exempt: bool) -> None:
    world = World()
    world.quotas.set(USER, {"request_percentage": 1.0})
    meter = world.meter()
    if is_exempt:
        meter.exempt()
    world.clock.spend(5_000)
    meter.pause()
    wait_ms = world.meter().settle(is_produce=False, is_timed=True)
    assert wait_ms == (0 if is_exempt else 1_000)


def test_the_longest_of_all_waits_counts() -> None:
    world = World()
    world.quotas.set(USER, {"producer_byte_rate": 100.0, "controller_mutation_rate": 1.0})
    meter = world.meter(1_100)
    permits = meter.permits(is_strict=False)
    assert permits is not None
    assert permits.take(14)
    assert meter.settle(is_produce=True, is_timed=True) == 3_000
    unasked = world.meter().permits(is_strict=True, is_told=False)
    assert unasked is not None
    assert not unasked.take(1)


def test_addresses_are_found_however_they_are_written() -> None:
    quotas = World().quotas
    assert quotas.connection_rate("10.0.0.1") is None
    quotas.set((("ip", "0:0:0:0:0:0:0:1"),), {"connection_creation_rate": 3.0})
    quotas.set((("ip", "10.0.0.1"),), {"connection_creation_rate": 5.0})
    assert quotas.connection_rate("::1") == 3
    assert quotas.connection_rate("::ffff:10.0.0.1") == 5
    assert quotas.connection_rate("10.0.0.2") is None
    quotas.set((("ip", None),), {"connection_creation_rate": float("nan")})
    assert quotas.connection_rate("10.0.0.2") == 0
    assert quotas.connection_rate("no address") == 0
    quotas.set((("ip", "10.0.0.1"),), {})
    assert quotas.connection_rate("10.0.0.1") == 0
    assert not quotas.is_on


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("127.1", "127.0.0.1"), ("1.2.3", "1.2.0.3"), ("10.65535", "10.0.255.255"),
        ("2130706433", "127.0.0.1"), ("010.0.0.08", "10.0.0.8"), ("[::1]", "::1"),
    ],
)  # fmt: skip
def test_what_java_takes_for_an_address_holds_for_it(written: str, address: str) -> None:
    quotas = World().quotas
    quotas.set((("ip", written),), {"connection_creation_rate": 3.0})
    assert quotas.connection_rate(address) == 3
    quotas.set((("ip", written),), {})
    assert quotas.connection_rate(address) is None


@pytest.mark.parametrize("text", ["256.1", "1.2.65536", "1.2.3.4.5", "[localhost]", "[1.2.3.4]"])
def test_what_is_no_address_is_a_name(text: str) -> None:
    assert address_in(text) is None
