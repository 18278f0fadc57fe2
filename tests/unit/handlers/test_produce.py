"""Produce: what is refused and how it is said, who may repeat what, and when it is acknowledged."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from kafkalite.env.background import QueuedBackground
from kafkalite.handlers.call import CloseConnection
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ProduceRequest
from kafkalite.records.batch import Compression
from kafkalite.records.legacy import build_message
from kafkalite.records.record import Record
from kafkalite.replication.leader import Leader, Leadership
from tests.unit.handlers.producing import (
    PartitionData,
    TopicData,
    batch_of,
    by_producer,
    only,
    produce,
    request,
    with_checksum,
)
from tests.unit.handlers.whole_broker import WholeBroker, all_records, records
from tests.unit.records.building import build_message_set

HOUR_MS = 3_600_000
_COUNT_AT = 57  # of the records, in a batch v2


# --- what is taken --------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3, 13))
def test_a_batch_is_stored_and_its_place_answered(broker: WholeBroker, version: int) -> None:
    produce(broker, batch_of(broker, b"a", b"b"), version)
    answer = produce(broker, batch_of(broker, b"c"), version)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, 2, -1)
    assert answer.log_start_offset == (0 if version >= 5 else -1)
    stored = broker.partition().log.read(0, 1 << 20).range
    assert stored is not None
    assert [(one.offset, one.value) for one in all_records(stored.read())] == [
        (0, b"a"), (1, b"b"), (2, b"c"),
    ]  # fmt: skip


def test_topics_are_named_by_id_since_version_13(broker: WholeBroker) -> None:
    topic_id = broker.create("by-id")
    data = TopicData(
        topic_id=topic_id, partition_data=[PartitionData(index=0, records=batch_of(broker))]
    )
    response = broker.ask(ProduceRequest(acks=1, topic_data=[data]), 13)
    assert response.responses[0].topic_id == topic_id
    assert only(response).error_code == 0
    assert broker.partition("by-id").log.log_end_offset == 1


def test_log_append_time_is_stamped_and_told(broker: WholeBroker) -> None:
    broker.create("stamped", message_timestamp_type="LogAppendTime")
    answer = produce(broker, batch_of(broker, timestamp=5), topic="stamped")
    assert answer.log_append_time_ms == broker.now_ms
    stored = broker.partition("stamped").log.read(0, 1 << 20).range
    assert stored is not None
    assert [one.timestamp for one in all_records(stored.read())] == [broker.now_ms]


@pytest.mark.parametrize("version", range(3))
def test_old_formats_are_converted(broker: WholeBroker, version: int) -> None:
    sent = [Record(0, 1_000, b"k", b"a"), Record(1, 2_000, None, b"b")]
    answer = produce(broker, build_message_set(sent, 1 if version == 2 else 0), version)
    assert (answer.error_code, answer.base_offset) == (0, 0)
    stored = broker.partition().log.read(0, 1 << 20).range
    assert stored is not None
    found = all_records(stored.read())
    assert [(one.key, one.value) for one in found] == [(b"k", b"a"), (None, b"b")]
    times = [1_000, 2_000] if version == 2 else [-1, -1]
    assert [one.timestamp for one in found] == times


# --- what is refused ------------------------------------------------------------------------------


def corrupt(batch: Any) -> Any:
    batch[-1] ^= 1
    return batch


def miscounted(batch: Any) -> Any:
    """A batch whose header announces one record more than there is, with a right checksum."""
    struct.pack_into(">i", batch, _COUNT_AT, 2)
    return with_checksum(batch)



BAD: dict[str, tuple[Error, Any]] = {
    "a wrong checksum": (Error.CORRUPT_MESSAGE, lambda b: corrupt(batch_of(b))),
    "fewer records than announced": (Error.INVALID_RECORD, lambda b: miscounted(batch_of(b))),
    "two batches": (
        Error.INVALID_RECORD, lambda b: bytes(batch_of(b)) + bytes(batch_of(b)),
    ),
    "an old format": (Error.INVALID_RECORD, lambda b: build_message(1, 0, 1, None, b"v")),
    "a control batch": (Error.INVALID_RECORD, lambda b: batch_of(b, is_control=True)),
    "no batch": (Error.INVALID_RECORD, lambda b: b""),
    "a batch without records": (Error.INVALID_RECORD, lambda b: records([], timestamp=1)),
    "half a batch": (Error.INVALID_RECORD, lambda b: batch_of(b)[:50]),
    "a time far ahead": (
        Error.INVALID_TIMESTAMP, lambda b: batch_of(b, timestamp=b.now_ms + HOUR_MS + 1),
    ),
    "too many bytes": (Error.MESSAGE_TOO_LARGE, lambda b: batch_of(b, bytes(1_048_588))),
    "a producer without a sequence": (
        Error.INVALID_RECORD, lambda b: batch_of(b, producer_id=9, producer_epoch=0),
    ),
}  # fmt: skip


# What is only found when the records are looked at: the log's start is told, as Apache Kafka does.
FOUND_LATE = (
    "fewer records than announced", "a control batch", "a batch without records",
    "a time far ahead", "a producer without a sequence",
)  # fmt: skip


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("version", [7, 9])
def test_what_breaks_a_rule_is_refused(broker: WholeBroker, what: str, version: int) -> None:
    code, build = BAD[what]
    answer = produce(broker, build(broker), version)
    assert Error(answer.error_code) is code
    assert (answer.base_offset, answer.log_append_time_ms) == (-1, -1)
    assert answer.log_start_offset == (0 if what in FOUND_LATE else -1)
    assert broker.partition().log.log_end_offset == 0


def test_the_limits_themselves_are_allowed(broker: WholeBroker) -> None:
    assert produce(broker, batch_of(broker, timestamp=broker.now_ms + HOUR_MS)).error_code == 0
    assert produce(broker, batch_of(broker, timestamp=1)).error_code == 0
    largest = batch_of(broker, bytes(1_048_588 - 61 - 11))
    assert len(largest) == 1_048_588
    assert produce(broker, largest).error_code == 0


def test_acks_are_all_one_or_none(broker: WholeBroker) -> None:
    for acks in (5, -2):
        answer = produce(broker, batch_of(broker), acks=acks)
        assert (answer.error_code, answer.base_offset) == (Error.INVALID_REQUIRED_ACKS, -1)
    assert broker.partition().log.log_end_offset == 0
    answer = produce(broker, batch_of(broker), index=99, acks=5)
    assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION, "that is looked at first"


def test_a_partition_or_topic_that_is_not_there(broker: WholeBroker) -> None:
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(broker, batch_of(broker), index=99).error_code == unknown
    assert produce(broker, batch_of(broker), topic="nowhere").error_code == unknown
    data = TopicData(topic_id=b"?" * 16, partition_data=[PartitionData(records=batch_of(broker))])
    response = broker.ask(ProduceRequest(acks=1, topic_data=[data]), 13)
    assert only(response).error_code == Error.UNKNOWN_TOPIC_ID


def test_a_recreated_topic_does_not_take_what_was_meant_for_its_predecessor(
    broker: WholeBroker,
) -> None:
    topic_id = broker.create("again")
    broker.delete("again")
    broker.create("again")
    data = TopicData(topic_id=topic_id, partition_data=[PartitionData(records=batch_of(broker))])
    response = broker.ask(ProduceRequest(acks=1, topic_data=[data]), 13)
    assert only(response).error_code == Error.UNKNOWN_TOPIC_ID
    assert broker.partition("again").log.log_end_offset == 0


def test_internal_topics_are_written_to_by_their_owners_alone(broker: WholeBroker) -> None:
    broker.create("__transaction_state")
    answer = produce(broker, batch_of(broker), topic="__transaction_state")
    assert answer.error_code == Error.INVALID_TOPIC_EXCEPTION
    assert broker.partition("__transaction_state").log.log_end_offset == 0
    broker.client_id = "__admin_client"  # of Apache Kafka's own tools
    assert produce(broker, batch_of(broker), topic="__transaction_state").error_code == 0


def test_one_bad_partition_spares_its_siblings(broker: WholeBroker) -> None:
    broker.create("pair", partitions=2)
    bad, good = corrupt(batch_of(broker)), batch_of(broker)
    data = TopicData(
        name="pair",
        partition_data=[PartitionData(index=0, records=bad), PartitionData(index=1, records=good)],
    )
    (topic,) = broker.ask(ProduceRequest(acks=-1, topic_data=[data]), 9).responses
    assert [one.error_code for one in topic.partition_responses] == [Error.CORRUPT_MESSAGE, 0]
    assert broker.partition("pair", 1).log.log_end_offset == 1


def test_zstd_came_with_version_7(broker: WholeBroker) -> None:
    batch = batch_of(broker, compression=Compression.ZSTD)
    assert produce(broker, batch, 6).error_code == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(broker, batch, 7).error_code == 0


def test_an_unknown_codec(broker: WholeBroker) -> None:
    batch = batch_of(broker)
    batch[22] |= 6
    assert produce(broker, with_checksum(batch)).error_code == Error.UNKNOWN_SERVER_ERROR


def test_an_idempotent_producer_is_never_told_of_an_unknown_error(broker: WholeBroker) -> None:
    batch = by_producer(broker, 0)
    batch[22] |= 6
    assert produce(broker, with_checksum(batch)).error_code == Error.INVALID_RECORD
    assert produce(broker, by_producer(broker, 0)).base_offset == 0


def test_fewer_in_sync_than_needed_refuses_acks_all_alone(broker: WholeBroker) -> None:
    broker.create("careful", min_insync_replicas="2")
    partition = broker.partition("careful", 0)
    assert isinstance(partition.role, Leader)
    partition.role.replicas += (99,)  # another broker, which lags behind
    answer = produce(broker, batch_of(broker), topic="careful", acks=-1)
    assert answer.error_code == Error.NOT_ENOUGH_REPLICAS
    assert produce(broker, batch_of(broker), topic="careful", acks=1).error_code == 0


def test_fewer_in_sync_than_needed_commit_nothing(broker: WholeBroker) -> None:
    """Acks=1 is acknowledged by the leader alone, and nobody reads it before enough have it."""
    broker.create("careful", min_insync_replicas="2")
    partition = broker.partition("careful", 0)
    partition.take(Leadership(1, 1, 1, (1, 99), (1,)))
    partition.begin_epoch()
    assert produce(broker, batch_of(broker), topic="careful", acks=1).error_code == 0
    assert (partition.high_watermark, partition.log.log_end_offset) == (0, 1)
    partition.take(Leadership(1, 1, 2, (1, 99), (1, 99)))
    assert partition.high_watermark == 1


def test_each_bad_record_is_named(broker: WholeBroker) -> None:
    broker.create("keyed", cleanup_policy="compact")
    batch = records([b"a", b"b", b"c"], keys=[b"k", None, None], timestamp=broker.now_ms)
    answer = produce(broker, batch, topic="keyed")
    assert answer.error_code == Error.INVALID_RECORD
    assert [bad.batch_index for bad in answer.record_errors] == [1, 2]
    assert all("key" in bad.batch_index_error_message for bad in answer.record_errors)
    assert answer.error_message


def test_each_record_of_a_bad_time_is_named(broker: WholeBroker) -> None:
    step_ms = HOUR_MS + 1
    batch = records([b"a", b"b"], timestamp=broker.now_ms, step_ms=step_ms)
    answer = produce(broker, batch)
    assert answer.error_code == Error.INVALID_TIMESTAMP
    assert [bad.batch_index for bad in answer.record_errors] == [1]
    assert answer.error_message


# --- leaders --------------------------------------------------------------------------------------


def test_who_does_not_lead_says_who_does(broker: WholeBroker) -> None:
    broker.stop_leading()
    answer = produce(broker, batch_of(broker), 9)
    assert answer.error_code == Error.NOT_LEADER_OR_FOLLOWER
    answer = produce(broker, batch_of(broker), 10)
    assert answer.current_leader.leader_id == -1
    assert answer.current_leader.leader_epoch == broker.partition().leader_epoch == 1


def test_a_partition_of_other_brokers_is_named_with_its_leader(broker: WholeBroker) -> None:
    broker.add_peer(2)
    topic_id = broker.create_on("far", 2)
    response = broker.ask(request(batch_of(broker), topic="far"), 10)
    answer = only(response)
    assert answer.error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == 2
    assert [(one.node_id, one.host, one.port) for one in response.node_endpoints] == [
        (2, "host-2", 9093)
    ]
    data = TopicData(topic_id=topic_id, partition_data=[PartitionData(records=batch_of(broker))])
    response = broker.ask(ProduceRequest(acks=1, topic_data=[data]), 13)
    assert only(response).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_directory_that_failed(broker: WholeBroker) -> None:
    broker.partition().log.home.fail(OSError("gone"))
    assert produce(broker, batch_of(broker)).error_code == Error.KAFKA_STORAGE_ERROR


# --- producers with an id -------------------------------------------------------------------------


def test_the_last_five_batches_may_be_repeated(broker: WholeBroker) -> None:
    for number in range(6):
        assert produce(broker, by_producer(broker, 2 * number, 2)).base_offset == 2 * number
    for number in range(1, 6):
        answer = produce(broker, by_producer(broker, 2 * number, 2))
        assert (answer.error_code, answer.base_offset) == (0, 2 * number)
    answer = produce(broker, by_producer(broker, 0, 2))
    assert answer.error_code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert broker.partition().log.log_end_offset == 12


def test_a_part_of_a_batch_is_no_repetition(broker: WholeBroker) -> None:
    produce(broker, by_producer(broker, 0, 3))
    answer = produce(broker, by_producer(broker, 0, 2))
    assert answer.error_code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_gap_in_the_sequence_is_refused(broker: WholeBroker) -> None:
    produce(broker, by_producer(broker, 0))
    answer = produce(broker, by_producer(broker, 2))
    assert (answer.error_code, answer.base_offset) == (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert produce(broker, by_producer(broker, 1)).base_offset == 1


def test_an_unknown_producer_may_begin_anywhere(broker: WholeBroker) -> None:
    assert produce(broker, by_producer(broker, 17)).error_code == 0


def test_a_new_epoch_begins_at_zero_and_ends_the_old_one(broker: WholeBroker) -> None:
    produce(broker, by_producer(broker, 0))
    answer = produce(broker, by_producer(broker, 1, epoch=1))
    assert answer.error_code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(broker, by_producer(broker, 0, epoch=1)).error_code == 0
    answer = produce(broker, by_producer(broker, 1, epoch=0))
    assert answer.error_code == Error.INVALID_PRODUCER_EPOCH


# --- acknowledgements -----------------------------------------------------------------------------


def test_without_acks_there_is_no_reply(broker: WholeBroker) -> None:
    assert broker.ask(request(batch_of(broker), acks=0), 9) is None
    assert broker.partition().log.log_end_offset == 1


def test_without_acks_an_error_ends_the_connection(broker: WholeBroker) -> None:
    closed = broker.ask(request(batch_of(broker), topic="nowhere", acks=0), 9)
    assert isinstance(closed, CloseConnection)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in closed.reason


@pytest.fixture
def careful() -> Iterator[WholeBroker]:
    """A broker that acknowledges what is on stable storage, which a test says when it is."""
    broker = WholeBroker({"kafkalite.durability": "fsync"}, background=QueuedBackground())
    settle(broker)
    broker.create("t", partitions=2)
    settle(broker)
    yield broker
    broker.broker.stop(0)
    broker.clock.advance(1_000)
    settle(broker)


def settle(broker: WholeBroker) -> None:
    """Every fsync that waits is done, and whoever waited for it told."""
    background = broker.env.background
    assert isinstance(background, QueuedBackground)
    background.run_all()
    broker.clock.advance(0)


def test_acks_all_waits_for_stable_storage(careful: WholeBroker) -> None:
    came = careful.send(request(batch_of(careful)), 9)
    careful.clock.advance(999)
    assert not came.is_resolved
    settle(careful)
    assert (only(came.value).error_code, only(came.value).base_offset) == (0, 0)


def test_acks_one_waits_as_well_where_nothing_else_would_be_safe(careful: WholeBroker) -> None:
    came = careful.send(request(batch_of(careful), acks=1), 9)
    assert not came.is_resolved
    settle(careful)
    assert only(came.value).error_code == 0


def test_acks_one_waits_for_no_other_replica(careful: WholeBroker) -> None:
    careful.create("few", min_insync_replicas="2")
    settle(careful)
    partition = careful.partition("few", 0)
    partition.take(Leadership(1, 1, 1, (1, 99), (1,)))
    partition.begin_epoch()
    came = careful.send(request(batch_of(careful), topic="few", acks=1), 9)
    assert not came.is_resolved
    settle(careful)
    assert (only(came.value).error_code, partition.high_watermark) == (0, 0)


def test_waiting_has_an_end(careful: WholeBroker) -> None:
    came = careful.send(request(batch_of(careful)), 9)
    careful.clock.advance(1_000)
    answer = only(came.value)
    assert answer.error_code == Error.REQUEST_TIMED_OUT
    settle(careful)
    assert careful.partition().high_watermark == 1, "a record that timed out may still be there"


def test_a_refusal_waits_with_its_siblings_and_stays_one(careful: WholeBroker) -> None:
    data = TopicData(
        name="t",
        partition_data=[
            PartitionData(index=0, records=corrupt(batch_of(careful))),
            PartitionData(index=1, records=batch_of(careful)),
        ],
    )
    came = careful.send(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[data]), 9)
    assert not came.is_resolved
    settle(careful)
    (topic,) = came.value.responses
    assert [one.error_code for one in topic.partition_responses] == [Error.CORRUPT_MESSAGE, 0]


def test_a_repeated_batch_is_acknowledged_no_sooner_than_the_first(careful: WholeBroker) -> None:
    batches = [by_producer(careful, 0) for _ in range(2)]
    first, again = (careful.send(request(batch), 9) for batch in batches)
    assert not again.is_resolved
    settle(careful)
    assert only(first.value).base_offset == only(again.value).base_offset == 0


def test_who_stops_leading_tells_those_that_wait(careful: WholeBroker) -> None:
    came = careful.send(request(batch_of(careful)), 9)
    careful.stop_leading()
    careful.clock.advance(0)
    assert only(came.value).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_a_topic_without_partitions_is_not_answered(broker: WholeBroker) -> None:
    topics = [TopicData(name="t"), TopicData(name="nix")]
    assert broker.ask(ProduceRequest(acks=-1, topic_data=topics), 9).responses == []
