"""ListOffsets: named offsets, moments, isolation, and the lists of version 0."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from typing import Any

import pytest

from kafkalite.env import slicing
from kafkalite.env.later import Later
from kafkalite.handlers import long_work
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ListOffsetsRequest
from kafkalite.records.batch import Compression
from kafkalite.replication.leader import Leadership
from tests.unit.handlers.whole_broker import WholeBroker, records
from tests.unit.handlers.writer import writer

Topic, Partition = ListOffsetsRequest.Topic, ListOffsetsRequest.Partition
READ_COMMITTED = 1
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, WAITING = range(-1, -7, -1)


def ask(
    broker: WholeBroker, timestamp: int, version: int = 11, *, isolation: int = 0,
    topic: str = "t", **fields: Any,
) -> Any:  # fmt: skip
    asked = Partition(timestamp=timestamp, **fields)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=[Topic(name=topic, partitions=[asked])]
    )
    (answer,) = broker.ask(request, version).topics
    return answer.partitions[0]


def found(broker: WholeBroker, timestamp: int, version: int = 11, **fields: Any) -> Any:
    """(timestamp, offset, leader epoch)"""
    answer = ask(broker, timestamp, version, **fields)
    assert answer.error_code == 0, Error(answer.error_code)
    return answer.timestamp, answer.offset, answer.leader_epoch


def append_times(broker: WholeBroker, *times: int, **fields: Any) -> None:
    """One batch of records with these times, which are evenly apart."""
    assert len({after - before for before, after in pairwise(times)}) <= 1
    step_ms = times[1] - times[0] if len(times) > 1 else 0
    batch = records([b"v"] * len(times), timestamp=times[0], step_ms=step_ms, **fields)
    broker.partition().append(batch, broker.now_ms)


def test_a_new_leader_names_no_end_before_it_knows_what_is_committed(broker: WholeBroker) -> None:
    """Its high watermark is as old as its last fetch as a follower; KIP-207."""
    append_times(broker, 100, 200)
    partition = broker.partition()
    append_times(broker, 300)
    partition.take(Leadership(99, 1, 1, (1, 99), (1, 99), (1, 99)))
    partition.log.watermark.lower_to(2)
    partition.take(Leadership(1, 2, 2, (1, 99), (1, 99), (1, 99)))
    partition.begin_epoch()
    for timestamp in (LATEST, 300, 400, MAX_TIMESTAMP):
        assert ask(broker, timestamp).error_code == Error.OFFSET_NOT_AVAILABLE
    assert ask(broker, LATEST, 4).error_code == Error.LEADER_NOT_AVAILABLE
    assert found(broker, 200)[1] == 1
    assert found(broker, EARLIEST)[1] == 0
    assert found(broker, LATEST_TIERED) == (-1, -1, -1)
    partition.advance(3)
    assert found(broker, LATEST)[1] == 3


# --- names ----------------------------------------------------------------------------------------


def test_the_ends_of_a_log(broker: WholeBroker) -> None:
    assert found(broker, EARLIEST)[:2] == found(broker, LATEST)[:2] == (-1, 0)
    append_times(broker, 100, 200, 300)
    broker.partition().delete_records_before(1)
    assert found(broker, EARLIEST) == (-1, 1, 0)
    assert found(broker, EARLIEST_LOCAL) == (-1, 1, 0)
    assert found(broker, LATEST) == (-1, 3, 0)


def test_the_largest_timestamp_is_that_of_its_first_record(broker: WholeBroker) -> None:
    assert found(broker, MAX_TIMESTAMP) == (-1, -1, -1)
    append_times(broker, 100, 300)
    append_times(broker, 300)
    append_times(broker, 200)
    assert found(broker, MAX_TIMESTAMP) == (300, 1, 0)


def test_nothing_is_tiered(broker: WholeBroker) -> None:
    append_times(broker, 100)
    assert found(broker, LATEST_TIERED) == (-1, -1, -1)
    assert found(broker, WAITING) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(LATEST, 1), (EARLIEST, 1), (MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9),
     (WAITING, 11)],
)  # fmt: skip
def test_names_are_for_the_versions_that_know_them(
    broker: WholeBroker, timestamp: int, since: int
) -> None:
    append_times(broker, 100)
    for version in range(1, 12):
        expected = Error.NONE if version >= since else Error.UNSUPPORTED_VERSION
        assert ask(broker, timestamp, version).error_code == expected, version


def test_a_name_that_nobody_knows(broker: WholeBroker) -> None:
    assert ask(broker, -7).error_code == Error.UNSUPPORTED_VERSION


# --- moments --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_a_moment_is_the_first_record_at_or_after_it(
    broker: WholeBroker, version: int, compression: Compression
) -> None:
    append_times(broker, 100, 200, 300, compression=compression)
    append_times(broker, 400, compression=compression)
    for moment, expected in (
        (0, (100, 0)), (100, (100, 0)), (101, (200, 1)), (300, (300, 2)), (301, (400, 3)),
    ):  # fmt: skip
        assert found(broker, moment, version)[:2] == expected
    assert found(broker, 401, version) == (-1, -1, -1), "no record, no error"


def test_times_need_not_rise(broker: WholeBroker) -> None:
    append_times(broker, 500)
    append_times(broker, 100)
    append_times(broker, 600)
    assert found(broker, 100)[:2] == (500, 0)
    assert found(broker, 501)[:2] == (600, 2)


def test_a_moment_before_the_start_of_the_log_is_its_start(broker: WholeBroker) -> None:
    append_times(broker, 100, 200, 300)
    broker.partition().delete_records_before(1)
    assert found(broker, 0)[:2] == (200, 1)


def test_a_record_is_found_over_segments(broker: WholeBroker) -> None:
    broker.create("small", segment_bytes="1048576")
    partition = broker.partition("small")
    for number in range(3):
        batch = records([bytes(600_000)], timestamp=100 * (number + 1))
        partition.append(batch, broker.now_ms)
    assert len(partition.log.segments) == 3
    assert found(broker, 250, topic="small")[:2] == (300, 2)


def test_the_leader_epoch_is_that_of_the_record(broker: WholeBroker) -> None:
    append_times(broker, 100)
    broker.next_epoch()
    append_times(broker, 200)
    assert found(broker, 0) == (100, 0, 0)
    assert found(broker, 150) == (200, 1, 1)
    assert found(broker, EARLIEST) == (-1, 0, 0)
    assert found(broker, LATEST) == (-1, 2, 1)


# --- isolation ------------------------------------------------------------------------------------


def test_read_committed_sees_the_log_up_to_the_last_stable_offset(broker: WholeBroker) -> None:
    append_times(broker, 100)
    who = writer(broker)
    who.write(b"open")
    open_ms = broker.now_ms
    assert found(broker, LATEST)[1] == 2
    assert found(broker, LATEST, isolation=READ_COMMITTED)[1] == 1
    assert found(broker, open_ms)[1] == 1
    assert found(broker, open_ms, isolation=READ_COMMITTED) == (-1, -1, -1)
    assert found(broker, MAX_TIMESTAMP, isolation=READ_COMMITTED) == (-1, -1, -1)
    who.end(commit=True)
    assert found(broker, LATEST, isolation=READ_COMMITTED)[1] == 3
    assert found(broker, open_ms, isolation=READ_COMMITTED)[1] == 1


# --- refusals -------------------------------------------------------------------------------------


def test_what_is_not_there(broker: WholeBroker) -> None:
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    for answer in (ask(broker, LATEST, topic="no"), ask(broker, LATEST, partition_index=9)):
        assert (answer.error_code, answer.offset, answer.timestamp) == (unknown, -1, -1)


def test_who_does_not_lead(broker: WholeBroker) -> None:
    broker.add_peer(2)
    broker.create_on("far", 2)
    assert ask(broker, LATEST, topic="far").error_code == Error.NOT_LEADER_OR_FOLLOWER
    broker.stop_leading()
    assert ask(broker, LATEST).error_code == Error.NOT_LEADER_OR_FOLLOWER


def test_the_epoch_of_the_asker_must_be_the_leaders(broker: WholeBroker) -> None:
    broker.next_epoch()
    fenced = ask(broker, LATEST, current_leader_epoch=0)
    assert (fenced.error_code, fenced.offset) == (Error.FENCED_LEADER_EPOCH, -1)
    ahead = ask(broker, LATEST, current_leader_epoch=2)
    assert ahead.error_code == Error.UNKNOWN_LEADER_EPOCH
    assert ask(broker, LATEST, current_leader_epoch=1).error_code == 0


def test_a_partition_asked_for_twice_is_refused_alone(broker: WholeBroker) -> None:
    broker.create("pair", partitions=2)
    asked = [Partition(partition_index=index, timestamp=LATEST) for index in (0, 1, 0)]
    request = ListOffsetsRequest(replica_id=-1, topics=[Topic(name="pair", partitions=asked)])
    (topic,) = broker.ask(request, 5).topics
    codes = {one.partition_index: one.error_code for one in topic.partitions}
    assert codes == {0: Error.INVALID_REQUEST, 1: 0}


# --- version 0 ------------------------------------------------------------------------------------


def test_version_0_lists_starts_of_segments_latest_first(broker: WholeBroker) -> None:
    partition = broker.partition()
    for _ in range(2):
        broker.append(b"a", b"b")
        broker.clock.advance(1_000)
        partition.log.roll()
    broker.append(b"c")

    def listed(timestamp: int, most: int) -> list[int]:
        offsets: list[int] = ask(broker, timestamp, 0, max_num_offsets=most).old_style_offsets
        return offsets

    assert listed(LATEST, 10) == [5, 4, 2, 0]
    assert listed(LATEST, 1) == [5]
    assert listed(EARLIEST, 10) == [0]
    assert listed(broker.now_ms - 1, 10) == [2, 0]
    assert listed(1, 10) == []


# --- batches that hold a lot ----------------------------------------------------------------------

MANY = 20_000
LARGE_BYTES = 16 << 20


def ask_for(broker: WholeBroker, timestamp: int) -> Later[Any]:
    asked = Partition(timestamp=timestamp)
    return broker.send(ListOffsetsRequest(topics=[Topic(name="t", partitions=[asked])]), 11)


def offset_in(came: Later[Any]) -> int:
    offset: int = came.value.topics[0].partitions[0].offset
    return offset


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_a_moment_among_many_records_is_looked_up_in_slices(
    broker: WholeBroker, compression: Compression
) -> None:
    append_times(broker, *range(MANY), compression=compression)
    came = [ask_for(broker, moment) for moment in (MANY - 1, MANY // 2, 3)]
    assert [one.is_resolved for one in came] == [False, False, True]
    assert found(broker, LATEST)[1] == MANY, "others need not wait"
    broker.clock.advance(0)
    assert [offset_in(one) for one in came] == [MANY - 1, MANY // 2, 3]


@pytest.mark.parametrize(
    "compression", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
)
def test_a_moment_behind_a_large_record_is_looked_up_in_slices_and_little_memory(
    broker: WholeBroker, compression: Compression
) -> None:
    values = [bytes(LARGE_BYTES), b"behind"]
    batch = records(values, timestamp=1_000, step_ms=1, compression=compression)
    broker.partition().append(batch, broker.now_ms)
    del values
    tracemalloc.start()
    came = [ask_for(broker, moment) for moment in (1_000, 1_001)]
    assert not any(one.is_resolved for one in came)
    assert found(broker, LATEST)[1] == 2, "others need not wait"
    broker.clock.advance(0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [offset_in(one) for one in came] == [0, 1]
    assert peak < LARGE_BYTES / 2


def test_what_is_looked_through_may_go_meanwhile(broker: WholeBroker) -> None:
    append_times(broker, *range(MANY))
    append_times(broker, MANY)
    came = [ask_for(broker, MANY - 1), ask_for(broker, MANY)]
    broker.partition().delete_records_before(MANY)
    broker.delete("t")
    broker.clock.advance(0)
    assert [offset_in(one) for one in came] == [MANY - 1, MANY]


def looked_for_in_vain(broker: WholeBroker) -> Later[Any]:
    """A time of which all records were deleted: the search goes on behind their batch."""
    append_times(broker, *range(MANY, 0, -1))
    broker.partition().delete_records_before(MANY - 1)
    came = ask_for(broker, MANY)
    assert not came.is_resolved
    return came


def refusal_in(came: Later[Any]) -> Error:
    return Error(came.value.topics[0].partitions[0].error_code)


def test_a_topic_that_is_deleted_while_it_is_looked_through_is_no_failed_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slicing, "STEPS_PER_SLICE", 1)
    broker = WholeBroker()
    broker.create("t", file_delete_delay_ms="0")
    came = looked_for_in_vain(broker)
    broker.delete("t")
    broker.clock.advance(1_000)
    assert refusal_in(came) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.broker.failure is None
    broker.create("t")
    broker.append(b"value")
    broker.close()


def test_a_log_that_moves_while_it_is_looked_through_is_no_failed_disk() -> None:
    broker = WholeBroker({"log.dirs": "/data,/more"})
    broker.create("t", file_delete_delay_ms="0")
    came = looked_for_in_vain(broker)
    log = broker.partition().log
    log.end(KafkaError(Error.NOT_LEADER_OR_FOLLOWER))  # as when a copy elsewhere took its place
    broker.env.disk.remove_tree(log.directory)
    log.release()
    broker.clock.advance(1_000)
    assert refusal_in(came) == Error.NOT_LEADER_OR_FOLLOWER
    assert broker.broker.failure is None


def test_who_looks_things_up_is_bounded(
    broker: WholeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "MAX_HELD_BYTES", 3 << 20)
    append_times(broker, *range(MANY))
    came = [ask_for(broker, MANY - 1) for _ in range(4)]
    assert [one.is_resolved for one in came] == [False, False, False, True]
    assert came[3].value.topics[0].partitions[0].error_code == Error.REQUEST_TIMED_OUT
    broker.clock.advance(0)
    assert [offset_in(one) for one in came[:3]] == [MANY - 1] * 3
