"""Batches that hold a lot: looked at in slices, and appended in the order in which they came."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite.env.later import Later
from kafkalite.handlers import long_work
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ProduceRequest
from kafkalite.records.batch import Compression
from kafkalite.records.record import BatchBuilder
from kafkalite.replication.partition import Partition
from tests.unit.handlers.producing import (
    PartitionData,
    TopicData,
    batch_of,
    only,
    request,
    with_checksum,
)
from tests.unit.handlers.whole_broker import WholeBroker, records

MANY = 20_000


def many(broker: WholeBroker, compression: Compression = Compression.NONE) -> Any:
    """A batch whose records cannot be looked at in one go, nor by columns."""
    values = [b"x" * (number % 3) for number in range(MANY)]
    return records(values, timestamp=broker.now_ms, compression=compression)


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD, Compression.GZIP])
def test_many_records_are_looked_at_in_slices(
    broker: WholeBroker, compression: Compression
) -> None:
    came = broker.send(request(many(broker, compression)), 9)
    assert not came.is_resolved
    assert broker.partition().log.log_end_offset == 0
    broker.clock.advance(0)
    assert (only(came.value).error_code, only(came.value).base_offset) == (0, 0)
    assert broker.partition().log.log_end_offset == MANY


def test_many_records_alike_are_looked_at_at_once(broker: WholeBroker) -> None:
    alike = records([b"alike"] * MANY, timestamp=broker.now_ms)
    assert produce_now(broker) == 0
    came = broker.send(request(alike), 9)
    assert only(came.value).base_offset == 1


def test_one_long_value_is_stepped_over_in_slices(broker: WholeBroker) -> None:
    bomb = records([bytes(50 << 20)], timestamp=broker.now_ms, compression=Compression.ZSTD)
    came = broker.send(request(bomb), 9)
    assert not came.is_resolved
    broker.clock.advance(0)
    assert only(came.value).error_code == 0


def test_many_headers_are_looked_at_in_slices(broker: WholeBroker) -> None:
    builder = BatchBuilder()
    for _ in range(100):
        builder.append(broker.now_ms, None, b"", [("h", None)] * 1_000)
    batch = memoryview(builder.build(compression=Compression.ZSTD))
    came = broker.send(request(batch), 9)
    assert not came.is_resolved
    broker.clock.advance(0)
    assert only(came.value).error_code == 0


def test_what_comes_later_is_appended_later(broker: WholeBroker) -> None:
    broker.create("elsewhere")
    sent = [many(broker), batch_of(broker), many(broker, Compression.ZSTD), batch_of(broker)]
    came = [broker.send(request(batch), 9) for batch in sent]
    assert produce_now(broker, topic="elsewhere") == 0, "another partition need not wait"
    assert not any(one.is_resolved for one in came)
    broker.clock.advance(0)
    offsets = [only(one.value).base_offset for one in came]
    assert offsets == [0, MANY, MANY + 1, 2 * MANY + 1]
    assert produce_now(broker) == 2 * MANY + 2


def produce_now(broker: WholeBroker, **fields: Any) -> int:
    came = broker.send(request(batch_of(broker), **fields), 9)
    offset: int = only(came.value).base_offset
    return offset


def test_a_batch_that_is_bad_at_its_end_is_refused_alone(broker: WholeBroker) -> None:
    bad = many(broker)
    bad[-1] ^= 2  # the last record says it has a header
    came = [broker.send(request(batch), 9) for batch in (with_checksum(bad), batch_of(broker))]
    broker.clock.advance(0)
    assert [only(one.value).error_code for one in came] == [Error.INVALID_RECORD, 0]
    assert broker.partition().log.log_end_offset == 1


def test_siblings_in_a_request_are_answered_together(broker: WholeBroker) -> None:
    broker.create("two", partitions=2)
    data = TopicData(
        name="two",
        partition_data=[
            PartitionData(index=0, records=many(broker)),
            PartitionData(index=1, records=batch_of(broker)),
        ],
    )
    came = broker.send(ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[data]), 9)
    assert broker.partition("two", 1).log.log_end_offset == 1
    assert not came.is_resolved
    broker.clock.advance(0)
    (topic,) = came.value.responses
    assert [one.error_code for one in topic.partition_responses] == [0, 0]


def test_without_acks_a_long_look_is_not_answered_either(broker: WholeBroker) -> None:
    answer = broker.broker.dispatcher.answer(
        broker.frame(request(many(broker), acks=0), 9), broker.connection
    )
    assert isinstance(answer, Later)
    broker.clock.advance(0)
    assert answer.value == [], "the place of the reply stays empty"
    assert broker.partition().log.log_end_offset == MANY


def test_nobody_is_refused_because_others_are_looked_at(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "MAX_HELD_BYTES", 200_000)
    came = [broker.send(request(many(broker)), 9) for _ in range(5)]
    broker.clock.advance(0)
    assert [only(one.value).error_code for one in came] == [0] * 5
    assert broker.partition().log.log_end_offset == 5 * MANY


def test_a_topic_that_goes_while_its_records_are_looked_at(broker: WholeBroker) -> None:
    came = broker.send(request(many(broker)), 9)
    broker.delete("t")
    broker.clock.advance(0)
    assert only(came.value).error_code == Error.NOT_LEADER_OR_FOLLOWER


@pytest.mark.pure  # it takes the place of something compiled
def test_a_request_for_many_partitions_goes_on_in_later_turns(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.create("wide", partitions=40)
    real = Partition.write

    def slow(self: Partition, *args: Any, **fields: Any) -> Any:
        broker.clock.spend(1)
        return real(self, *args, **fields)

    monkeypatch.setattr(Partition, "write", slow)
    data = TopicData(
        name="wide",
        partition_data=[PartitionData(index=i, records=batch_of(broker)) for i in range(40)],
    )
    came = broker.send(ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[data]), 9)
    behind = TopicData(
        name="wide", partition_data=[PartitionData(index=39, records=batch_of(broker))]
    )
    came_behind = broker.send(ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[behind]), 9)
    ends = [broker.partition("wide", i).log.log_end_offset for i in range(40)]
    assert 0 < sum(ends) < 10
    broker.clock.advance(200)
    (topic,) = came.value.responses
    assert [one.error_code for one in topic.partition_responses] == [0] * 40
    assert only(came_behind.value).base_offset == 1, "what comes later is appended later"
