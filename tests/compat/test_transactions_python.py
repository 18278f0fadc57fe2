"""The Python clients in transactions, on both brokers: one set of scenarios for each of them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.compat.brokers import Broker
from tests.compat.transactional_clients import CLIENTS, Client, Producer
from tests.compat.transactional_peer import GROUP_KEY, Peer

MakeProducer = Callable[..., Producer]
MORE_STEPS = ("abort", "offsets")
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


@pytest.fixture(params=list(CLIENTS))
def client_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(client_name: str) -> Client:
    return CLIENTS[client_name]


@pytest.fixture
def peer(broker: Broker, unique: Callable[[str], str]) -> Iterator[Peer]:
    """Looks behind the clients."""
    peer = Peer(broker, unique("id"))
    yield peer
    peer.close()


@pytest.fixture
def made(peer: Peer, topic: str) -> str:
    return peer.topic(topic)


@pytest.fixture
def make_producer(broker: Broker, client: Client, peer: Peer) -> Iterator[MakeProducer]:
    """Producers of one transactional id, initialized."""
    producers: list[Producer] = []

    def make(timeout_ms: int = 60_000) -> Producer:
        producers.append(client.producer(broker.bootstrap, peer.transactional_id, timeout_ms))
        producers[-1].init()
        return producers[-1]

    yield make
    for producer in producers:
        producer.close()


@pytest.fixture
def read(broker: Broker, client: Client, made: str) -> Callable[..., list[bytes]]:
    def reading(isolation: str, count: int) -> list[bytes]:
        return client.read(broker.bootstrap, made, isolation, count)

    return reading


def refusal(attempt: Callable[..., Any], *arguments: Any) -> str:
    """What the client raised: the class, or of librdkafka, which has but one, the error's name."""
    try:
        attempt(*arguments)
    except Exception as error:  # noqa: BLE001 - of which class is what is asked
        code = getattr(error.args[0], "name", None) if error.args else None
        return code() if callable(code) else type(error).__name__
    return "nothing"


def test_outcomes(make_producer: MakeProducer, read, made: str) -> None:
    producer = make_producer()
    for number in range(3):
        producer.begin()
        producer.send(made, b"aborted-%d" % number)
        producer.abort()
        producer.begin()
        producer.send(made, b"kept-%d" % number)
        producer.commit()
    assert read(COMMITTED, 3) == [b"kept-0", b"kept-1", b"kept-2"]
    assert len(read(UNCOMMITTED, 6)) == 6


def test_open_transaction_is_hidden(make_producer: MakeProducer, read, made, peer: Peer) -> None:
    producer = make_producer()
    producer.begin()
    producer.send(made, b"a")
    assert peer.end_offset(made, committed=True) == 0
    assert peer.end_offset(made, committed=False) == 1
    assert read(COMMITTED, 0) == []
    producer.commit()
    assert read(COMMITTED, 1) == [b"a"]


# What a zombie is told: the error's class, of librdkafka its name.
FENCED = {
    "confluent": "_FENCED",
    "kafka-python": "ProducerFencedError",
    "aiokafka": "ProducerFenced",
}
# Of what is sent, kafka-python tells the broker's own word, and librdkafka that or its own: the
# record's report and the producer's fatal error race each other.
FENCED_SEND = {
    "confluent": ("_FENCED", "INVALID_PRODUCER_EPOCH"),
    "kafka-python": ("InvalidProducerEpochError",),
    "aiokafka": ("ProducerFenced",),
}


@pytest.mark.parametrize(
    "step",
    ["send", "commit", *(pytest.param(each, marks=pytest.mark.full) for each in MORE_STEPS)],
)
def test_second_producer_fences_the_first(
    step: str, client_name: str, make_producer: MakeProducer, read, made: str, unique
) -> None:
    zombie = make_producer()
    zombie.begin()
    zombie.send(made, b"lost")
    heir = make_producer()
    heir.begin()
    heir.send(made, b"kept")
    heir.commit()
    steps: dict[str, tuple[Any, ...]] = {
        "send": (zombie.send, made, b"never"),
        "commit": (zombie.commit,),
        "abort": (zombie.abort,),
        "offsets": (zombie.send_offsets, made, 1, unique("group")),
    }
    expected = FENCED_SEND[client_name] if step == "send" else (FENCED[client_name],)
    assert refusal(*steps[step]) in expected
    assert read(COMMITTED, 1) == [b"kept"]


def test_transaction_that_lasts_too_long_is_aborted(
    client_name: str, make_producer: MakeProducer, read, made: str, peer: Peer
) -> None:
    producer = make_producer(timeout_ms=1_000)
    producer.begin()
    producer.send(made, b"late")
    peer.await_state("CompleteAbort")
    assert refusal(producer.commit) == FENCED[client_name]
    assert read(COMMITTED, 0) == []


@pytest.mark.parametrize("outcome", ["commit", "abort"])
def test_offsets_share_the_outcome(
    outcome: str, make_producer: MakeProducer, read, made: str, peer: Peer, unique
) -> None:
    group = unique("group")
    peer.find(group, GROUP_KEY)
    producer = make_producer()
    producer.begin()
    producer.send(made, b"value")
    producer.send_offsets(made, 7, group)
    assert peer.committed_offset(group, made) == -1
    getattr(producer, outcome)()
    peer.await_state("CompleteCommit" if outcome == "commit" else "CompleteAbort")
    is_kept = outcome == "commit"
    assert peer.committed_offset(group, made, stable=True) == (7 if is_kept else -1)
    assert read(COMMITTED, int(is_kept)) == ([b"value"] if is_kept else [])
