"""DescribeProducers: what a leader knows of those who write to its partition."""

from __future__ import annotations

from typing import Any

from kafkalite.env.slicing import ELEMENTS_PER_STEP
from kafkalite.handlers.call import Call
from kafkalite.handlers.describe_producers import describe_producers
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeProducersRequest
from tests.unit.handlers.whole_broker import WholeBroker, records
from tests.unit.handlers.writer import writer


def describe(broker: WholeBroker, topic: str = "t", index: int = 0) -> Any:
    asked = DescribeProducersRequest.Topic(name=topic, partition_indexes=[index])
    (answer,) = broker.ask(DescribeProducersRequest(topics=[asked]), 0).topics
    assert (answer.name, answer.partitions[0].partition_index) == (topic, index)
    return answer.partitions[0]


def test_producers_without_an_id_leave_no_trace(broker: WholeBroker) -> None:
    broker.append(b"a")
    assert (describe(broker).error_code, describe(broker).active_producers) == (0, [])


def test_an_idempotent_producer(broker: WholeBroker) -> None:
    batch = records(
        [b"a", b"b"], timestamp=123, producer_id=9, producer_epoch=4, base_sequence=7
    )
    broker.partition().append(batch, broker.now_ms)
    (one,) = describe(broker).active_producers
    assert (one.producer_id, one.producer_epoch, one.last_sequence) == (9, 4, 8)
    assert (one.last_timestamp, one.current_txn_start_offset) == (123, -1)
    assert one.coordinator_epoch == -1


def test_an_open_transaction_shows_where_it_began(broker: WholeBroker) -> None:
    broker.append(b"before")
    who = writer(broker)
    who.write(b"a")
    who.write(b"b")
    (one,) = describe(broker).active_producers
    assert (one.producer_id, one.producer_epoch) == (who.producer_id, who.epoch)
    assert (one.current_txn_start_offset, one.last_sequence) == (1, 1)


def test_an_ended_transaction_shows_its_coordinator(broker: WholeBroker) -> None:
    who = writer(broker)
    who.transact(b"a", commit=True)
    (one,) = describe(broker).active_producers
    assert (one.current_txn_start_offset, one.coordinator_epoch) == (-1, 0)
    assert one.producer_epoch == who.epoch, "the marker had the next one"
    assert one.last_sequence == -1


def test_all_of_them_come(broker: WholeBroker) -> None:
    names = [writer(broker, name) for name in ("a", "b", "c")]
    for who in names:
        who.write(b"v")
    found = {one.producer_id for one in describe(broker).active_producers}
    assert found == {who.producer_id for who in names}


def test_the_silent_are_forgotten(broker: WholeBroker) -> None:
    batch = records([b"a"], timestamp=broker.now_ms, producer_id=9_999, producer_epoch=0,
                    base_sequence=0)  # fmt: skip
    broker.partition().append(batch, broker.now_ms)
    broker.clock.advance(86_400_000 + 600_000)
    assert describe(broker).active_producers == []


def test_what_is_not_there(broker: WholeBroker) -> None:
    """A partition of a topic that is there is told in a code alone, as Apache Kafka does."""
    for answer, is_in_words in ((describe(broker, "no"), True), (describe(broker, "t", 9), False)):
        assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert bool(answer.error_message) is is_in_words
        assert answer.active_producers == []
    broker.stop_leading()
    found = describe(broker)
    assert (found.error_code, found.error_message) == (Error.NOT_LEADER_OR_FOLLOWER, None)


def test_many_producers_of_a_partition_are_told_a_slice_per_turn(broker: WholeBroker) -> None:
    for producer_id in range(100):
        batch = records(
            [b"a"], timestamp=1, producer_id=producer_id, producer_epoch=0, base_sequence=0
        )
        broker.partition().append(batch, broker.now_ms)
    asked = DescribeProducersRequest.Topic(name="t", partition_indexes=[0])
    call = Call(DescribeProducersRequest.API_KEY, 0, 1, "a-client", broker.connection)
    answer = describe_producers(broker.context, call, DescribeProducersRequest(topics=[asked]))
    assert len(list(answer.steps)) > 100 / ELEMENTS_PER_STEP
    assert len(describe(broker).active_producers) == 100
