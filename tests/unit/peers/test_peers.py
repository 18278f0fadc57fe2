"""The ways from one broker to the others: of their own for each verb, and none after the stop."""

from __future__ import annotations

from kafkalite.coordinators.effects import Producer
from kafkalite.coordinators.transactions.markers import Marker
from kafkalite.coordinators.transactions.peer import Admission
from kafkalite.env.clock import ManualClock
from kafkalite.env.later import Later
from kafkalite.env.slicing import Slices
from kafkalite.peers.peers import Peers
from kafkalite.protocol.errors import Error
from tests.unit.peers.world import FakeNetwork

PLACES = {1: ("10.0.0.1", 9092), 2: ("10.0.0.2", 9092)}
WHERE = (("t", 0),)
ADMISSION = Admission("mine", 1, 0, WHERE, is_adding=True)
MARKER = Marker(Producer(1, 0), 0, True, 0, WHERE)


class Network:
    """Counts who is being connected to."""

    def __init__(self) -> None:
        self.attempts: list[FakeNetwork] = []

    def connect(self, host: str, port: int, done: object) -> FakeNetwork:
        self.attempts.append(FakeNetwork())
        return self.attempts[-1].connect(host, port, done)  # type: ignore[arg-type]


def peers_of(network: Network) -> Peers:
    clock = ManualClock()
    return Peers(
        network, clock, Slices(clock), node_id=1, address_of=PLACES.get, timeout_ms=1_000  # type: ignore[arg-type]
    )  # fmt: skip


def test_no_question_waits_for_one_of_the_other_kind() -> None:
    network = Network()
    other = peers_of(network).get(2)
    assert other is not None
    admitted, written = other.admit(ADMISSION), other.write_markers(MARKER)
    assert len(network.attempts) == 2
    network.attempts[1].fail()
    assert written.is_resolved
    assert not admitted.is_resolved


def test_nobody_is_asked_after_the_stop_also_by_who_hears_of_it() -> None:
    network = Network()
    peers = peers_of(network)
    other = peers.get(2)
    assert other is not None
    found = []
    asked = other.admit(ADMISSION)
    asked.then(lambda _: found.append(peers.get(2)))
    peers.stop()
    assert asked.value[WHERE[0]].code == Error.NETWORK_EXCEPTION
    assert found == [None]
    assert peers.get(2) is None
    assert peers.get(1) is None
    assert peers.get(3) is None
    assert network.attempts[0].done is None
    late: Later[object] = other.write_markers(MARKER)  # type: ignore[assignment]
    assert late.is_resolved
    assert len(network.attempts) == 1
