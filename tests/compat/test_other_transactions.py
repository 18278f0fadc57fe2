"""Clients of other languages: transactions, on both brokers.

One set of scenarios for franz-go, sarama, KafkaJS, rdkafka, aiokafka and confluent-kafka; what a
fenced producer is told is each library's own word.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.compat.brokers import Broker
from tests.compat.conftest import StartProgram
from tests.compat.other_clients import Program, Record, Refused
from tests.compat.transactional_peer import GROUP_KEY, Peer

COUNT = 40
# librdkafka 1 takes a second before it sends the first record, and lets none outlive a transaction.
SHORT_TIMEOUT_MS = 3_000


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
def make_producer(start_program: StartProgram, peer: Peer) -> Callable[..., Program]:
    """Producers of one transactional id, initialized."""

    def make(timeout_ms: int = 60_000) -> Program:
        program = start_program()
        program.ask("init", id=peer.transactional_id, timeout_ms=timeout_ms)
        return program

    return make


def write(producer: Program, topic: str, *written: bytes) -> None:
    records = [Record(value) for value in written]
    producer.ask("send", topic=topic, partition=0, records=records)


def read(program: Program, topic: str, count: int, *, committed: bool = True) -> list[bytes | None]:
    """The values that come, and a moment longer for those that should not."""
    asked = {"topic": topic, "partition": 0, "committed": committed}
    found = program.records("read", count=count, **asked)
    after = found[-1].offset + 1 if found else 0
    found += program.records("read", count=1, offset=after, wait_ms=500, **asked)
    return [record.value for record in found]


@pytest.mark.clients_with("transactions")
def test_outcomes(make_producer, start_program: StartProgram, made: str) -> None:
    producer = make_producer()
    for number in range(3):
        for outcome, word in (("abort", b"aborted"), ("end", b"kept")):
            producer.ask("begin")
            write(producer, made, b"%s-%d" % (word, number))
            producer.ask(outcome)
    reader = start_program()
    assert read(reader, made, 3) == [b"kept-0", b"kept-1", b"kept-2"]
    assert len(read(reader, made, 6, committed=False)) == 6


@pytest.mark.full
@pytest.mark.clients_with("transactions")
def test_open_transaction_is_hidden(
    make_producer, start_program: StartProgram, made: str, peer: Peer
) -> None:
    producer, reader = make_producer(), start_program()
    producer.ask("begin")
    write(producer, made, b"a")
    assert peer.end_offset(made, committed=True) == 0
    assert peer.end_offset(made, committed=False) == 1
    assert read(reader, made, 0) == []
    producer.ask("end")
    peer.await_state("CompleteCommit")
    assert read(reader, made, 1) == [b"a"]


@pytest.mark.full
@pytest.mark.clients_with("transactions", "read_committed look up")
def test_ends_by_isolation_level(
    make_producer, start_program: StartProgram, made: str, peer: Peer
) -> None:
    producer, admin = make_producer(), start_program()
    producer.ask("begin")
    write(producer, made, b"a", b"b")

    def end(*, committed: bool) -> int:
        asked = {"topic": made, "partition": 0, "timestamp": -1, "committed": committed}
        return int(admin.ask("look_up", **asked))

    assert (end(committed=True), end(committed=False)) == (0, 2)
    producer.ask("end")
    peer.await_state("CompleteCommit")
    assert (end(committed=True), end(committed=False)) == (3, 3)


def refusal(program: Program, do: str, **fields: Any) -> str:
    with pytest.raises(Refused) as refused:
        program.ask(do, **fields)
    return str(refused.value)


# How each library says that somebody else has its transactional id by now. Sarama has no name for
# PRODUCER_FENCED, which is 90.
FENCED = re.compile(
    r"PRODUCER_FENCED|INVALID_PRODUCER_EPOCH|newer producer|old epoch|fenced|code = 90$",
    re.IGNORECASE,
)


@pytest.mark.clients_with("transactions")
@pytest.mark.parametrize(
    "step", ["send", *(pytest.param(each, marks=pytest.mark.full) for each in ("end", "abort"))]
)
def test_second_producer_fences_the_first(
    step: str, make_producer, start_program: StartProgram, made: str
) -> None:
    zombie = make_producer()
    zombie.ask("begin")
    write(zombie, made, b"lost")
    heir = make_producer()
    heir.ask("begin")
    write(heir, made, b"kept")
    heir.ask("end")
    more = {"topic": made, "partition": 0, "records": [Record(b"never")]} if step == "send" else {}
    assert FENCED.search(refusal(zombie, step, **more))
    assert read(start_program(), made, 1) == [b"kept"]


@pytest.mark.full
@pytest.mark.clients_with("transactions")
def test_transaction_that_lasts_too_long_is_aborted(
    make_producer, start_program: StartProgram, made: str, peer: Peer
) -> None:
    producer = make_producer(timeout_ms=SHORT_TIMEOUT_MS)
    producer.ask("begin")
    write(producer, made, b"late")
    peer.await_state("CompleteAbort")
    assert refusal(producer, "end")
    assert read(start_program(), made, 0) == []


@pytest.mark.clients_with("transactional offsets")
@pytest.mark.parametrize("outcome", ["end", pytest.param("abort", marks=pytest.mark.full)])
def test_offsets_share_the_outcome(
    outcome: str, make_producer, start_program: StartProgram, made: str, peer: Peer, unique
) -> None:
    group = unique("group")
    peer.find(group, GROUP_KEY)
    producer = make_producer()
    producer.ask("begin")
    write(producer, made, b"value")
    producer.ask("offsets", group=group, topic=made, partition=0, offset=7)
    producer.ask(outcome)
    is_kept = outcome == "end"
    peer.await_state("CompleteCommit" if is_kept else "CompleteAbort")
    assert peer.committed_offset(group, made, stable=True) == (7 if is_kept else -1)
    assert read(start_program(), made, int(is_kept)) == ([b"value"] if is_kept else [])


def expected(count: int = COUNT) -> list[bytes]:
    return [b"r%d!" % number for number in range(count)]


@pytest.fixture
def source(start_program: StartProgram, peer: Peer, unique: Callable[[str], str]) -> str:
    name = peer.topic(unique("source"))
    records = [Record(b"r%d" % number) for number in range(COUNT)]
    start_program().ask("produce", topic=name, partition=0, records=records)
    return name


@pytest.mark.clients_with("transactional offsets", "groups")
def test_consume_transform_produce(
    make_producer, start_program: StartProgram, source: str, made: str, peer: Peer, unique
) -> None:
    producer, group = make_producer(), unique("group")
    producer.ask("join", topic=source, group=group, committed=True)
    done = 0
    while done < COUNT:
        taken = producer.records("poll", count=min(13, COUNT - done))
        assert taken, f"{done} of {COUNT} records came"
        for outcome in ("abort", "end"):
            producer.ask("begin")
            write(producer, made, *(b"%s!" % (each.value or b"") for each in taken))
            after = taken[-1].offset + 1
            producer.ask("offsets", group=group, topic=source, partition=0, offset=after)
            producer.ask(outcome)
        done += len(taken)
    peer.await_state("CompleteCommit")
    assert read(start_program(), made, COUNT) == expected()
    assert peer.committed_offset(group, source, stable=True) == COUNT


@pytest.fixture
def transform(
    start_program: StartProgram, source: str, made: str, peer: Peer, unique: Callable[[str], str]
) -> Callable[[str], None]:
    """Moves all records by the library's own sessions; every second transaction is given up."""
    group = unique("group")

    def move(strategy: str) -> None:
        done = start_program().ask(
            "transform", topic=source, target=made, group=group, id=peer.transactional_id,
            strategy=strategy, count=COUNT,
        )
        assert done == COUNT
        peer.await_state("CompleteCommit")
        assert read(start_program(), made, COUNT) == expected()
        assert peer.committed_offset(group, source, stable=True) == COUNT

    return move


@pytest.mark.clients_with("transform")
def test_session_of_a_group_transforms(transform: Callable[[str], None]) -> None:
    transform("cooperative")


@pytest.mark.full
@pytest.mark.clients_with("transform", "server")
def test_session_of_a_group_that_the_coordinator_assigns(transform: Callable[[str], None]) -> None:
    transform("server")
