"""A Produce for thousands of partitions: a slice per turn, in order, each partition by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkalite.env.background import QueuedBackground
from kafkalite.env.later import Later
from kafkalite.env.slicing import Steps
from kafkalite.handlers import produce, produce_acknowledged
from kafkalite.handlers.call import CloseConnection
from kafkalite.handlers.produce import MANY
from kafkalite.handlers.produce_entry import Entry
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DeleteTopicsRequest, ProduceRequest
from kafkalite.protocol.runtime import ManyElements
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.dispatch import SMALL_RECORDS_BYTES
from kafkalite.sim.effort import MOST_CALLS, CountingClock
from tests.unit.handlers.counted import asked, begun
from tests.unit.handlers.producing import PartitionData, TopicData, batch_of, only, request
from tests.unit.handlers.whole_broker import Sometimes, WholeBroker, records
from tests.unit.handlers.writer import writer

PARTITIONS = 3_000
SOME = 3 * MANY  # in more than SMALL_RECORDS_BYTES
LARGE = "large"
VERSION, BY_ID_VERSION = 9, 13


@pytest.fixture(scope="module")
def counted() -> Iterator[WholeBroker]:
    broker = WholeBroker(clock=CountingClock())
    broker.create(LARGE, PARTITIONS)
    yield broker
    broker.close()


@pytest.fixture
def wide(broker: WholeBroker) -> WholeBroker:
    """A broker with a topic of many partitions."""
    broker.create(LARGE, SOME)
    return broker


def to_all(
    broker: WholeBroker, partitions: int = SOME, *, acks: int = -1,
    bad: dict[int, Any] | None = None, batch: Callable[[int], Any] | None = None, **fields: Any,
) -> ProduceRequest:  # fmt: skip
    """A record for each partition; something else for those that are to be bad."""
    one = batch_of(broker)
    data = [
        PartitionData(
            index=index, records=(bad or {}).get(index, batch(index) if batch else one)
        )
        for index in range(partitions)
    ]
    topics = [TopicData(name=LARGE, partition_data=data)]
    return ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=topics, **fields)


def answers(response: Any) -> list[tuple[int, int]]:
    (topic,) = response.responses
    found = sorted(topic.partition_responses, key=lambda one: one.index)
    return [(one.error_code, one.base_offset) for one in found]


def ends(broker: WholeBroker, partitions: int = SOME) -> list[int]:
    return [broker.partition(LARGE, index).log.log_end_offset for index in range(partitions)]


def elsewhere() -> ConnectionInfo:
    return ConnectionInfo("PLAINTEXT", ("10.0.0.1", 9092), ("10.0.0.8", 40_000))


def in_turn(broker: WholeBroker, turns: int, act: Callable[[], None]) -> None:
    """Has something done so many turns of the loop later."""
    again = in_turn if turns else lambda *_: act()
    broker.clock.call_later(0, lambda: again(broker, turns - 1, act))


def when_some_are_appended(broker: WholeBroker, act: Callable[[], Any]) -> None:
    def look() -> None:
        if broker.partition(LARGE, 0).log.log_end_offset:
            act()
        else:
            broker.clock.call_later(0, look)

    look()


# --- work per turn --------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_batch_for_each_of_many_partitions(counted: WholeBroker, acks: int) -> None:
    came = answers(asked(counted, to_all(counted, PARTITIONS, acks=acks), VERSION))
    assert {code for code, _ in came} == {0}


def test_batches_that_begin_a_segment_each(counted: WholeBroker) -> None:
    """Which makes some files: as much work as many appends."""
    topic, clock = "rolled", counted.clock
    assert isinstance(clock, CountingClock)
    counted.create(topic, SOME, segment_ms="1")
    for ages in range(4):
        clock.advance(10)
        one = batch_of(counted)
        data = [PartitionData(index=index, records=one) for index in range(SOME)]
        topics = [TopicData(name=topic, partition_data=data)]
        clock.begin()
        came = begun(counted, ProduceRequest(acks=1, timeout_ms=1_000, topic_data=topics), VERSION)
        clock.advance(0)
        assert {code for code, _ in answers(came())} == {0}
        assert counted.partition(topic, 5).log.log_end_offset == ages + 1
    assert len(counted.partition(topic, 5).log.segments) == 4
    assert 500 < clock.heaviest.calls < MOST_CALLS, clock.heaviest


def test_many_topics_that_are_not_there(counted: WholeBroker) -> None:
    one = batch_of(counted)
    topics = [
        TopicData(name=f"no-{number}", partition_data=[PartitionData(index=0, records=one)])
        for number in range(PARTITIONS)
    ]
    found = asked(counted, ProduceRequest(acks=1, timeout_ms=1_000, topic_data=topics), VERSION)
    codes = [topic.partition_responses[0].error_code for topic in found.responses]
    assert codes == [Error.UNKNOWN_TOPIC_OR_PARTITION] * PARTITIONS


def test_a_request_is_decoded_in_slices(counted: WholeBroker) -> None:
    sent = to_all(counted, 4 * PARTITIONS)
    sent.topic_data[0].name = "no"
    codes = [code for code, _ in answers(asked(counted, sent, VERSION))]
    assert codes == [Error.UNKNOWN_TOPIC_OR_PARTITION] * 4 * PARTITIONS


def test_many_that_nobody_leads(counted: WholeBroker) -> None:
    counted.stop_leading()
    counted.clock.advance(0)
    came = answers(asked(counted, to_all(counted, PARTITIONS), 10))
    assert {code for code, _ in came} == {Error.NOT_LEADER_OR_FOLLOWER}
    counted.next_epoch()
    counted.clock.advance(0)


def test_a_transaction_that_begins_in_many_partitions(counted: WholeBroker) -> None:
    who = writer(counted, version=1)
    who.add(LARGE, 0)
    batch = who.batch(b"v", topic=LARGE)
    data = [PartitionData(index=index, records=batch) for index in range(PARTITIONS)]
    sent = ProduceRequest(
        transactional_id=who.id, acks=-1, timeout_ms=1_000,
        topic_data=[TopicData(name=LARGE, partition_data=data)],
    )  # fmt: skip
    codes = [code for code, _ in answers(asked(counted, sent, 10))]
    assert codes == [Error.NONE, *[Error.INVALID_TXN_STATE] * (PARTITIONS - 1)]
    who.end()


def test_decoding_stops_where_there_are_many(counted: WholeBroker) -> None:
    decode = codec.few_decoder(ProduceRequest, VERSION)
    few = to_all(counted, MANY - 1)
    assert decode(codec.encode(few, VERSION)) == codec.decode_prefix(
        ProduceRequest, VERSION, codec.encode(few, VERSION)
    )
    with pytest.raises(ManyElements):
        decode(codec.encode(to_all(counted, MANY), VERSION))


# --- what comes of it -----------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [MANY, MANY + 1, SOME])
@pytest.mark.parametrize("version", [3, VERSION, BY_ID_VERSION])
def test_the_bytes_that_came_may_be_overwritten(
    wide: WholeBroker, partitions: int, version: int
) -> None:
    sent = to_all(wide, partitions, batch=lambda index: batch_of(wide, b"%d" % index))
    if version == BY_ID_VERSION:
        sent.topic_data[0].topic_id = wide.context.metadata.image.topic_id(LARGE) or b""
    frame = wide.frame(sent, version)
    assert (len(frame) > SMALL_RECORDS_BYTES) == (partitions == SOME)
    answer = wide.broker.dispatcher.answer(frame, wide.connection)
    frame[:] = bytes(len(frame))
    wide.clock.advance(0)
    assert not isinstance(answer, Later) or answer.is_resolved
    assert ends(wide) == [1] * partitions + [0] * (SOME - partitions)
    for index in range(partitions):
        (segment,) = wide.partition(LARGE, index).log.segments
        held = wide.partition(LARGE, index).log.read(0, 1 << 20, 1, True).range
        assert held is not None
        assert b"%d" % index in held.read(), segment


def test_a_bad_partition_is_refused_alone(wide: WholeBroker) -> None:
    torn = memoryview(bytearray(batch_of(wide)))
    torn[-1] ^= 1
    sent = to_all(wide, SOME + 1, bad={7: torn, SOME - 1: b"", 300: None})
    codes = dict(enumerate(code for code, _ in answers(wide.ask(sent, VERSION))))
    assert {index: code for index, code in codes.items() if code} == {
        7: Error.CORRUPT_MESSAGE,
        300: Error.INVALID_RECORD,
        SOME - 1: Error.INVALID_RECORD,
        SOME: Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert sum(ends(wide)) == SOME - 3


def test_a_partition_that_is_named_twice_is_written_to_once(wide: WholeBroker) -> None:
    sent = to_all(wide)
    sent.topic_data.append(
        TopicData(name=LARGE, partition_data=[PartitionData(index=5, records=batch_of(wide))])
    )
    assert answers(wide.ask(sent, VERSION)) == [(0, 0)] * SOME
    assert ends(wide) == [1] * SOME


def test_without_acks_there_is_no_reply(wide: WholeBroker) -> None:
    answer = wide.broker.dispatcher.answer(
        wide.frame(to_all(wide, acks=0), VERSION), wide.connection
    )
    assert isinstance(answer, Later)
    wide.clock.advance(0)
    assert answer.value == [], "the place of the reply stays empty"
    assert ends(wide) == [1] * SOME


def test_without_acks_an_error_ends_the_connection(wide: WholeBroker) -> None:
    came = wide.ask(to_all(wide, SOME + 1, acks=0), VERSION)
    assert isinstance(came, CloseConnection)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in came.reason
    assert ends(wide) == [1] * SOME


def test_large_batches_are_looked_at_in_slices_of_their_own(wide: WholeBroker) -> None:
    long = records([b"v"] * 5_000, timestamp=wide.now_ms, step_ms=1)
    sent = to_all(wide, bad={3: long, SOME - 1: long})
    assert answers(wide.ask(sent, VERSION)) == [(0, 0)] * SOME
    assert ends(wide)[2:4] == [1, 5_000]


# --- order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [0, SOME - 1])
def test_what_comes_later_on_a_connection_is_appended_later(wide: WholeBroker, index: int) -> None:
    large = wide.send(to_all(wide), VERSION)
    small = wide.send(request(batch_of(wide), topic=LARGE, index=index), VERSION)
    assert not small.is_resolved
    wide.clock.advance(0)
    assert answers(large.value) == [(0, 0)] * SOME
    assert only(small.value).base_offset == 1


def test_nobody_else_waits(wide: WholeBroker) -> None:
    large = wide.send(to_all(wide), VERSION)
    wide.connection = elsewhere()
    small = wide.send(request(batch_of(wide), topic=LARGE, index=SOME - 1), VERSION)
    assert only(small.value).base_offset == 0
    assert not large.is_resolved
    wide.clock.advance(0)
    assert answers(large.value) == [(0, 0)] * (SOME - 1) + [(0, 1)]


def test_an_idempotent_producer_goes_on_and_repeats(wide: WholeBroker) -> None:
    def sent(sequence: int) -> ProduceRequest:
        batch = batch_of(wide, producer_id=9, producer_epoch=0, base_sequence=sequence)
        return to_all(wide, batch=lambda _: batch)

    came = [wide.send(sent(sequence), VERSION) for sequence in (0, 1, 2, 1, 4)]
    wide.clock.advance(0)
    expected = [(0, 0), (0, 1), (0, 2), (0, 1), (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]
    assert [answers(one.value) for one in came] == [[each] * SOME for each in expected]


@pytest.mark.parametrize("is_held", [False, True])
def test_a_transaction_goes_on_in_order(is_held: bool) -> None:
    """What follows at once overtakes neither what waits for the coordinator nor its appends."""
    background = Sometimes()
    broker = WholeBroker({"kafkalite.durability": "fsync"}, background=background)
    broker.create(LARGE, SOME)
    who = writer(broker)

    def batch(index: int) -> Any:
        return who.batch(b"v", topic=LARGE, index=index)

    background.is_held = is_held
    large = broker.send(to_all(broker, batch=batch, transactional_id=who.id), 12)
    broker.clock.advance(0)
    assert ends(broker)[0] == (0 if is_held else 1)
    small = []
    for index in (0, SOME - 1):
        who.sequences[LARGE, index] = 1
        sent = request(batch(index), topic=LARGE, index=index, transactional_id=who.id)
        small.append(broker.send(sent, 12))
    background.is_held = False
    background.run_all()
    broker.clock.advance(0)
    assert answers(large.value) == [(0, 0)] * SOME
    found = [(only(one.value).error_code, only(one.value).base_offset) for one in small]
    assert found == [(0, 1)] * 2
    broker.close()


# --- what ends meanwhile --------------------------------------------------------------------------


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "APPENDED_PER_STEP", 1)


@pytest.mark.usefixtures("slowly")
def test_a_topic_that_goes_meanwhile(wide: WholeBroker) -> None:
    sent = to_all(wide)
    last = PartitionData(index=0, records=batch_of(wide))
    sent.topic_data.append(TopicData(name="t", partition_data=[last]))
    came = wide.send(sent, VERSION)
    wide.connection = elsewhere()
    deletion = DeleteTopicsRequest(topic_names=["t"])
    when_some_are_appended(wide, lambda: wide.send(deletion, 5))
    wide.clock.advance(0)
    large, gone = came.value.responses
    assert {one.error_code for one in large.partition_responses} == {Error.NONE}
    assert gone.partition_responses[0].error_code == Error.NOT_LEADER_OR_FOLLOWER


@pytest.mark.usefixtures("slowly")
def test_a_broker_that_stops_meanwhile_ends_the_wait(wide: WholeBroker) -> None:
    came = wide.send(to_all(wide), VERSION)
    when_some_are_appended(wide, wide.close)
    wide.clock.advance(0)
    assert isinstance(came.value, CloseConnection)
    assert len(wide.env.slices) == 0


def test_what_has_come_is_appended_when_its_client_goes(wide: WholeBroker) -> None:
    """As Apache Kafka does: a client that wants no acknowledgement may end once it has sent."""
    for acks in (0, 1):
        wide.broker.dispatcher.answer(wide.frame(to_all(wide, acks=acks), VERSION), wide.connection)
    wide.connection.has_ended = True
    wide.clock.advance(0)
    assert ends(wide) == [2] * SOME
    assert not wide.context.long_work.connections


# --- stable storage -------------------------------------------------------------------------------


@pytest.fixture
def careful() -> Iterator[WholeBroker]:
    """A broker that acknowledges what is on stable storage, which a test says when it is."""
    broker = WholeBroker({"kafkalite.durability": "fsync"}, background=QueuedBackground())
    settle(broker)
    created = broker.broker.create_topic(LARGE, SOME)
    settle(broker)
    assert created.value is None
    yield broker
    broker.broker.stop(0)
    broker.clock.advance(1_000)
    settle(broker)


def settle(broker: WholeBroker) -> None:
    background = broker.env.background
    assert isinstance(background, QueuedBackground)
    for _ in range(5):
        background.run_all()
        broker.clock.advance(0)


def test_it_is_acknowledged_when_all_is_on_stable_storage(
    careful: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    real = Entry.is_waiting

    def counting(self: Entry) -> bool:
        nonlocal looks
        looks += 1
        return real(self)

    monkeypatch.setattr(Entry, "is_waiting", counting)
    came = careful.send(to_all(careful), VERSION)
    careful.clock.advance(0)
    assert not came.is_resolved
    for index in range(SOME):  # one after the other, each in a turn of its own
        assert not came.is_resolved
        careful.partition(LARGE, index).advance(1)
        careful.clock.advance(0)
    assert answers(came.value) == [(0, 0)] * SOME
    assert looks < 5 * SOME


def test_nothing_is_acknowledged_before_all_are_waited_for(
    careful: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce_acknowledged, "_WATCHED_PER_STEP", 1)
    came = careful.send(to_all(careful), VERSION)

    all_of_it = [careful.partition(LARGE, index) for index in range(SOME)]

    def commit() -> Steps[None]:
        """The first half, each as soon as somebody waits for it; more steps than all take."""
        for _ in range(3 * SOME):
            for partition in all_of_it[: SOME // 2]:
                if partition._watchers:
                    partition.advance(1)
            yield

    careful.env.slices.run(commit(), lambda _: None)
    careful.clock.advance(0)
    assert not came.is_resolved
    for partition in all_of_it:
        partition.advance(1)
    careful.clock.advance(0)
    assert answers(came.value) == [(0, 0)] * SOME


@pytest.mark.parametrize("turns", [1, 4, 8, 30])
def test_the_wait_has_an_end_also_while_it_begins(careful: WholeBroker, turns: int) -> None:
    sent = to_all(careful)
    sent.timeout_ms = 0
    came = careful.send(sent, VERSION)
    in_turn(careful, turns, lambda: careful.clock.spend(1))
    careful.clock.advance(1)
    codes = {code for code, _ in answers(came.value)}
    assert codes == {Error.REQUEST_TIMED_OUT}


def test_who_stops_leading_tells_those_that_wait(careful: WholeBroker) -> None:
    came = careful.send(to_all(careful), VERSION)
    careful.clock.advance(0)
    careful.stop_leading()
    careful.clock.advance(0)
    assert {code for code, _ in answers(came.value)} == {Error.NOT_LEADER_OR_FOLLOWER}
