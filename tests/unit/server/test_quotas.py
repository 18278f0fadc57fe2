"""Who may come in: counts and rates of connections, as Apache Kafka keeps them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkalite.config.broker import BrokerConfig
from kafkalite.env.clock import ManualClock
from kafkalite.env.network import Link
from kafkalite.env.slicing import Slices
from kafkalite.server.door import Door
from kafkalite.server.limits import LimitedLog
from kafkalite.server.listener import Server
from kafkalite.server.quotas import MOST_HOSTS, ConnectionQuotas, Refusal
from kafkalite.server.terms import Terms
from tests.unit.handlers.whole_broker import SilentNetwork
from tests.unit.server.support import FakeLink, FakeService

SAMPLES, SAMPLE_MS = 11, 1_000  # Apache Kafka's defaults
PER_IP = Refusal("max.connections.per.ip")
TWO_LISTENERS = {
    "listeners": "INSIDE://:9092,OUTSIDE://:9093",
    "listener_security_protocol_map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter_broker_listener_name": "INSIDE",
}


def config_of(**settings: str) -> BrokerConfig:
    return BrokerConfig({name.replace("_", "."): text for name, text in settings.items()})


class FakePort:
    """An address whose connections wait while it is paused."""

    address = ("10.0.0.1", 9092)

    def __init__(self) -> None:
        self.is_paused = False

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def close(self) -> None: ...


class Doors:
    """Listeners with one count, and who came in through which."""

    def __init__(
        self, rate_of: Callable[[str], float | None] | None = None, **settings: str
    ) -> None:
        self.config = config_of(**settings)
        self.clock = ManualClock()
        self.quotas = ConnectionQuotas(
            self.config, self.clock, rate_of or (lambda host: None)
        )
        self.inside: list[tuple[str, FakeLink]] = []
        self.doors = {each.name: self._door(each.name) for each in self.config.listeners}

    def _door(self, name: str) -> Door:
        log = LimitedLog(self.clock)


        def let_in(at: str, link: Link) -> None:
            assert isinstance(link, FakeLink)
            self.inside.append((at, link))

        door = Door(name, self.quotas, self.clock, log, let_in)
        door.port = FakePort()
        return door

    def come(self, name: str = "PLAINTEXT", host: str = "10.0.0.9") -> FakeLink:
        """Somebody connects, though perhaps only as far as the system's own line."""
        assert not self.is_shut(name), "nobody is taken from the system's line"
        link = FakeLink(peer_address=(host, 40_000))
        self.doors[name].arrived(link)
        return link

    def is_shut(self, name: str = "PLAINTEXT") -> bool:
        port = self.doors[name].port
        assert isinstance(port, FakePort)
        return port.is_paused

    def leave(self, link: FakeLink) -> None:
        at = next(at for at, each in self.inside if each is link)
        self.inside.remove((at, link))
        self.quotas.leave(at, link.peer_address[0])
        for door in self.doors.values():
            door.look_again()

    def is_in(self, link: FakeLink) -> bool:
        return any(each is link for _, each in self.inside)


def test_who_comes_when_all_places_are_taken_waits_until_somebody_leaves() -> None:
    doors = Doors(max_connections="2")
    first, _, third = doors.come(), doors.come(), doors.come()
    assert not doors.is_in(third)
    assert not third.is_ended
    assert doors.is_shut()
    doors.leave(first)
    assert doors.is_in(third)
    assert not doors.is_shut()


def test_who_waits_comes_in_when_the_limit_is_raised() -> None:
    doors = Doors(max_connections="1")
    doors.come()
    waiting = doors.come()
    doors.config.set_dynamic({"max.connections": "2"}, {})
    doors.clock.advance(1_000)
    assert doors.is_in(waiting)


def test_nobody_at_another_listener_waits_for_one_that_is_full() -> None:
    own = {"listener.name.outside.max.connections": "1"}
    doors = Doors(None, **TWO_LISTENERS, **own)
    doors.come("OUTSIDE")
    doors.come("OUTSIDE")
    assert doors.is_shut("OUTSIDE")
    inside = [doors.come("INSIDE") for _ in range(3)]
    assert all(map(doors.is_in, inside))


def test_brokers_come_in_though_all_places_are_taken() -> None:
    doors = Doors(None, **TWO_LISTENERS, max_connections="2")
    clients = [doors.come("OUTSIDE") for _ in range(3)]
    assert doors.is_shut("OUTSIDE")
    broker = doors.come("INSIDE")
    assert doors.is_in(broker)
    assert doors.quotas.has_too_many
    doors.leave(clients[0])
    assert not doors.is_in(clients[2]), "two are in, so there is no place yet"
    doors.leave(clients[1])
    assert doors.is_in(clients[2])


def test_an_address_with_too_many_is_refused_at_once_and_others_come_in() -> None:
    doors = Doors(max_connections_per_ip="1", max_connections_per_ip_overrides="b:2")
    first, second = doors.come(host="a"), doors.come(host="a")
    assert doors.is_in(first)
    assert second.is_ended
    assert all(doors.is_in(doors.come(host="b")) for _ in range(2))
    assert doors.come(host="b").is_ended
    assert not doors.is_shut()
    doors.leave(first)
    assert doors.is_in(doors.come(host="a"))


def test_addresses_that_left_are_forgotten() -> None:
    quotas = ConnectionQuotas(config_of(), ManualClock())
    for number in range(1_000):
        quotas.enter("PLAINTEXT", f"10.0.0.{number}")
        quotas.leave("PLAINTEXT", f"10.0.0.{number}")
    assert quotas.total == 0
    assert quotas._by_host == {}


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_more_new_ones_than_the_rate_allows_come_in_later_and_none_is_lost(limit: int) -> None:
    doors = Doors(max_connection_creation_rate=str(limit))
    begun_ms = doors.clock.monotonic_ms()
    came: list[FakeLink] = []
    wanted = limit * (SAMPLES - 1) + 5 * limit
    while len(came) < wanted:
        if doors.is_shut():
            doors.clock.advance(10)
        else:
            came.append(doors.come())
    doors.clock.advance(2_000)
    assert all(map(doors.is_in, came))
    took_seconds = (doors.clock.monotonic_ms() - begun_ms) / 1_000
    # What nobody asked for in ten seconds is given at once, as by Apache Kafka; then it is slow.
    assert 4 <= took_seconds <= SAMPLES + 3


def test_the_rate_of_one_listener_is_no_other_ones() -> None:
    own = {"listener.name.outside.max.connection.creation.rate": "1"}
    doors = Doors(None, **TWO_LISTENERS, **own)
    while not doors.is_shut("OUTSIDE"):
        doors.come("OUTSIDE")
    assert all(doors.is_in(doors.come("INSIDE")) for _ in range(100))


def test_an_address_that_comes_too_fast_is_let_go_after_a_while_and_does_not_count() -> None:
    doors = Doors(lambda host: 1.0 if host == "hasty" else None)
    links = [doors.come(host="hasty") for _ in range(SAMPLES + 5)]
    kept = [link for link in links if not doors.is_in(link)]
    assert kept
    assert not any(link.is_ended for link in kept)
    assert doors.quotas.total == len(doors.inside) == len(links) - len(kept)
    assert doors.is_in(doors.come(host="calm"))
    doors.clock.advance(1_000)
    assert all(link.is_ended for link in kept)
    doors.clock.advance(SAMPLES * SAMPLE_MS)
    assert doors.is_in(doors.come(host="hasty"))


def test_closing_ends_whoever_waits() -> None:
    doors = Doors(lambda host: 1.0 if host == "hasty" else None, max_connections="11")
    kept = [doors.come(host="hasty") for _ in range(SAMPLES + 1)][-1]
    waiting = doors.come()
    assert not doors.is_in(kept)
    doors.doors["PLAINTEXT"].close()
    assert kept.is_ended
    assert waiting.is_ended or doors.is_in(waiting)
    doors.clock.advance(5_000)


def test_who_is_refused_by_its_address_does_not_count_for_its_listener() -> None:
    doors = Doors(lambda host: 1.0 if host == "hasty" else None, max_connection_creation_rate="3")
    for _ in range(200):
        doors.come(host="hasty")
    assert not doors.is_shut()
    assert doors.is_in(doors.come(host="calm"))


def test_settings_say_what_the_rate_is_reckoned_over() -> None:
    doors = Doors(
        max_connection_creation_rate="2", quota_window_num="3", quota_window_size_seconds="5"
    )
    came = [doors.come() for _ in range(20)]
    assert all(map(doors.is_in, came)), "two a second, for ten seconds"
    late = doors.come()
    assert doors.is_shut()
    doors.clock.advance(499)
    assert not doors.is_in(late)
    doors.clock.advance(251)
    assert doors.is_in(late)


def test_another_rate_holds_from_the_next_connection_on() -> None:
    doors = Doors(max_connection_creation_rate="1")
    while not doors.is_shut():
        doors.come()
    doors.clock.advance(1_000)
    doors.config.set_dynamic({"max.connection.creation.rate": "100"}, {})
    assert all(doors.is_in(doors.come()) for _ in range(50))


def test_hosts_that_come_again_and_again_keep_no_other_from_being_forgotten() -> None:
    doors = Doors(lambda host: 1e9)
    for number in range(2_000):
        doors.quotas.enter("PLAINTEXT", f"steady-{number % 2}")
        doors.quotas.enter("PLAINTEXT", f"host-{number}")
        doors.clock.advance(SAMPLE_MS)
    assert len(doors.quotas._host_rates) < 100


def test_rates_are_known_of_so_many_hosts_at_most() -> None:
    doors = Doors(lambda host: 1e9)
    for number in range(MOST_HOSTS + 100):
        doors.quotas.enter("PLAINTEXT", f"host-{number}")
    assert len(doors.quotas._host_rates) <= MOST_HOSTS


def test_a_link_that_is_taken_over_counts_whatever_its_address_may_have() -> None:
    clock = ManualClock()
    server = Server(
        SilentNetwork(), clock, Slices(clock),
        config_of(listeners="PLAINTEXT://127.0.0.1:0", max_connections_per_ip="1"),
        lambda info: Terms(FakeService()), LimitedLog(clock), lambda host: 1.0,
    )  # fmt: skip
    server.start()
    links = [FakeLink(peer_address=("10.0.0.7", port)) for port in range(50)]
    for link in links:
        server.take_over("PLAINTEXT", link)
    assert server._quotas.total == len(links)
    for link in links:
        link.abort()
    assert server._quotas.total == 0
    assert server._quotas._by_host == {}
