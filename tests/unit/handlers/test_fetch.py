"""Fetch: what comes, how much of it, how long it waits, and what is not shown to whom."""

from __future__ import annotations

import tracemalloc
from struct import pack_into
from typing import Any

import pytest
from crc32c import crc32c

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchRequest
from kafkalite.records.batch import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_BYTES,
    LOG_OVERHEAD,
    Compression,
    iterate_headers,
)
from tests.unit.handlers.whole_broker import WholeBroker, all_records, records
from tests.unit.handlers.writer import writer

READ_COMMITTED = 1
LARGE = 1 << 20
LARGE_RECORD = 16 << 20


def request(
    offset: int = 0,
    *,
    topics: list[str] | None = None,
    topic_id: bytes | None = None,
    index: int = 0,
    partition_max_bytes: int = LARGE,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    epochs: tuple[int, int] = (-1, -1),
    **fields: Any,
) -> FetchRequest:
    """One partition of each topic; `epochs` are the current leader's and the last fetched."""
    partition = FetchRequest.Partition(
        partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes,
        current_leader_epoch=epochs[0], last_fetched_epoch=epochs[1],
    )  # fmt: skip
    if topic_id is not None:
        asked = [FetchRequest.Topic(topic_id=topic_id, partitions=[partition])]
    else:
        names = topics or ["t"]
        asked = [FetchRequest.Topic(topic=name, partitions=[partition]) for name in names]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=asked, **fields)


def only(response: Any) -> Any:
    (topic,) = response.responses
    (partition,) = topic.partitions
    return partition


def fetch(broker: WholeBroker, offset: int = 0, version: int = 12, **fields: Any) -> Any:
    return only(broker.ask(request(offset, **fields), version))


def values(answer: Any) -> list[bytes | None]:
    return [record.value for record in all_records(bytes(answer.records))]


def offsets(answer: Any) -> list[int]:
    return [header.base_offset for header in iterate_headers(bytes(answer.records))]


# --- what comes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4, 13))
def test_records_come_with_the_offsets_around_them(broker: WholeBroker, version: int) -> None:
    broker.append(b"a", b"b")
    broker.append(b"c")
    answer = fetch(broker, version=version)
    assert values(answer) == [b"a", b"b", b"c"]
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 3, 3)
    assert answer.log_start_offset == (0 if version >= 5 else -1)


def test_an_offset_inside_a_batch_brings_the_whole_batch(broker: WholeBroker) -> None:
    broker.append(b"a", b"b", b"c")
    broker.append(b"d")
    assert offsets(fetch(broker, 2)) == [0, 3]
    assert offsets(fetch(broker, 3)) == [3]


def test_the_end_brings_nothing_and_no_error(broker: WholeBroker) -> None:
    broker.append(b"a")
    answer = fetch(broker, 1)
    assert (answer.error_code, values(answer), answer.high_watermark) == (0, [], 1)


@pytest.mark.parametrize("offset", [-1, 2])
def test_an_offset_out_of_range(broker: WholeBroker, offset: int) -> None:
    broker.append(b"a")
    answer = fetch(broker, offset)
    assert answer.error_code == Error.OFFSET_OUT_OF_RANGE
    assert (answer.high_watermark, bytes(answer.records)) == (-1, b"")


def test_what_was_deleted_is_out_of_range(broker: WholeBroker) -> None:
    broker.append(b"a")
    broker.append(b"b")
    broker.partition().delete_records_before(1)
    assert fetch(broker, 0).error_code == Error.OFFSET_OUT_OF_RANGE
    answer = fetch(broker, 1)
    assert (values(answer), answer.log_start_offset) == ([b"b"], 1)


def test_what_is_not_there(broker: WholeBroker) -> None:
    assert fetch(broker, topics=["no"]).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(broker, index=7).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    answer = fetch(broker, version=13, topic_id=b"?" * 16)
    assert answer.error_code == Error.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize("version", range(13, 19))
def test_topics_are_named_by_id_since_version_13(broker: WholeBroker, version: int) -> None:
    topic_id = broker.create("by-id")
    broker.append(b"a", topic="by-id")
    response = broker.ask(request(topic_id=topic_id), version)
    assert response.responses[0].topic_id == topic_id
    assert values(only(response)) == [b"a"]
    broker.delete("by-id")
    broker.create("by-id")
    answer = fetch(broker, version=version, topic_id=topic_id)
    assert answer.error_code == Error.UNKNOWN_TOPIC_ID


def test_an_offline_partition_is_an_error_of_storage(broker: WholeBroker) -> None:
    broker.append(b"a")
    broker.context.partitions.remove("t", 0)
    broker.context.partitions.offline.add(("t", 0))
    assert fetch(broker).error_code == Error.KAFKA_STORAGE_ERROR


# --- how much -------------------------------------------------------------------------------------


def test_at_least_one_batch_comes_however_small_the_limits(broker: WholeBroker) -> None:
    broker.append(b"a" * 1_000)
    broker.append(b"b")
    for limits in ({"partition_max_bytes": 1}, {"max_bytes": 1}, {"max_bytes": 0}):
        assert values(fetch(broker, **limits)) == [b"a" * 1_000]


@pytest.mark.parametrize("version", [0, 2, 4, 12])
def test_only_the_first_partition_may_exceed_the_limits(broker: WholeBroker, version: int) -> None:
    broker.create("u")
    broker.append(b"a" * 1_000)
    broker.append(b"b" * 1_000, topic="u")
    response = broker.ask(request(topics=["t", "u"], partition_max_bytes=10), version)
    sizes = [len(topic.partitions[0].records) for topic in response.responses]
    assert sizes[0] > 1_000
    assert sizes[1] <= 10, "the second gets no more than a part of a batch"


def test_max_bytes_counts_over_all_partitions(broker: WholeBroker) -> None:
    for name in ("u", "v"):
        broker.create(name)
    for name in ("t", "u", "v"):
        broker.append(b"x" * 1_000, topic=name)
    size = len(fetch(broker).records)
    response = broker.ask(request(topics=["t", "u", "v"], max_bytes=2 * size), 12)
    assert [len(topic.partitions[0].records) for topic in response.responses] == [size, size, 0]


def test_the_broker_has_a_limit_of_its_own() -> None:
    broker = WholeBroker({"fetch.max.bytes": "1024"})
    broker.create("t")
    for _ in range(3):
        broker.append(b"x" * 900)
    size = len(fetch(broker).records)
    assert 900 < size <= 1_024
    broker.close()


# --- isolation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [4, 11, 12])
def test_read_committed_ends_before_an_open_transaction(broker: WholeBroker, version: int) -> None:
    broker.append(b"before")
    who = writer(broker)
    who.write(b"open")
    broker.append(b"after")
    answer = fetch(broker, version=version, isolation_level=READ_COMMITTED)
    assert values(answer) == [b"before"]
    assert (answer.high_watermark, answer.last_stable_offset) == (3, 1)
    assert answer.aborted_transactions == []
    answer = fetch(broker, version=version)
    assert values(answer) == [b"before", b"open", b"after"]
    assert answer.aborted_transactions is None


def test_a_commit_wakes_who_reads_committed(broker: WholeBroker) -> None:
    who = writer(broker)
    who.write(b"a")
    came = broker.send(request(max_wait_ms=500, isolation_level=READ_COMMITTED), 12)
    broker.append(b"b")
    broker.clock.advance(0)
    assert not came.is_resolved
    who.end(commit=True)
    broker.clock.advance(0)
    assert values(only(came.value))[:2] == [b"a", b"b"]


def test_aborted_transactions_are_listed_where_their_records_come(broker: WholeBroker) -> None:
    who = writer(broker)
    who.transact(b"gone", commit=False)
    who.transact(b"kept", commit=True)
    other = writer(broker, "other")
    other.transact(b"gone too", commit=False)

    def listed(offset: int, max_bytes: int = LARGE) -> list[tuple[int, int]]:
        answer = fetch(
            broker, offset, partition_max_bytes=max_bytes, isolation_level=READ_COMMITTED
        )
        return [(one.producer_id, one.first_offset) for one in answer.aborted_transactions]

    assert sorted(listed(0)) == [(who.producer_id, 0), (other.producer_id, 4)]
    assert listed(1) == [(who.producer_id, 0), (other.producer_id, 4)], "its marker comes with it"
    assert listed(2) == [(other.producer_id, 4)]


# --- leaders and epochs ---------------------------------------------------------------------------


def test_the_epoch_of_the_reader_must_be_the_leaders(broker: WholeBroker) -> None:
    broker.append(b"a")
    broker.next_epoch()
    assert values(fetch(broker, epochs=(1, -1))) == [b"a"]
    answer = fetch(broker, epochs=(0, -1))
    assert answer.error_code == Error.FENCED_LEADER_EPOCH
    assert answer.current_leader.leader_id == -1, "it is told since version 16"
    answer = fetch(broker, epochs=(0, -1), version=16, topic_id=broker.partition().topic_id)
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 1)
    assert fetch(broker, epochs=(2, -1)).error_code == Error.UNKNOWN_LEADER_EPOCH


def test_another_brokers_partition_is_named_with_its_leader(broker: WholeBroker) -> None:
    broker.add_peer(2)
    topic_id = broker.create_on("far", 2)
    response = broker.ask(request(topic_id=topic_id, max_wait_ms=500), 16)
    answer = only(response)
    assert answer.error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == 2
    assert [(one.node_id, one.host) for one in response.node_endpoints] == [(2, "host-2")]


def test_a_reader_with_another_history_is_told_where_it_parts(broker: WholeBroker) -> None:
    broker.append(b"a")
    broker.next_epoch()
    broker.append(b"b")
    for offset in (2, 50):  # also out of range: it must truncate, not start over
        answer = fetch(broker, offset, epochs=(1, 0), max_wait_ms=500)
        assert answer.error_code == 0
        assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)
        assert bytes(answer.records) == b""
    answer = fetch(broker, 1, epochs=(1, 0))
    assert (values(answer), answer.diverging_epoch.end_offset) == ([b"b"], -1)


# --- old formats ----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
def test_old_clients_get_the_format_they_know(broker: WholeBroker, version: int) -> None:
    broker.append(b"a", b"b", timestamp=1_000)
    answer = fetch(broker, version=version)
    found = list(iterate_headers(bytes(answer.records)))
    assert [header.magic for header in found] == [0 if version <= 1 else 1] * 2
    read = all_records(bytes(answer.records))
    assert [(one.offset, one.value) for one in read] == [(0, b"a"), (1, b"b")]
    assert [one.timestamp for one in read] == ([-1, -1] if version <= 1 else [1_000, 1_000])


def test_old_clients_read_on_over_markers(broker: WholeBroker) -> None:
    who = writer(broker)
    who.transact(b"a", commit=True)
    who.transact(b"b", commit=True)
    answer = fetch(broker, 1, version=2)
    assert [(one.offset, one.value) for one in all_records(bytes(answer.records))] == [(2, b"b")]
    answer = fetch(broker, 3, version=2)
    assert (answer.error_code, bytes(answer.records)) == (0, b""), "markers to the end"
    broker.append(b"c")
    answer = fetch(broker, 3, version=2)
    assert [(one.offset, one.value) for one in all_records(bytes(answer.records))] == [(4, b"c")]


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("left", [[], [b"a"]])
def test_old_clients_wait_behind_what_compaction_took(
    broker: WholeBroker, version: int, left: list[bytes]
) -> None:
    """The last batch has no record for them any more: neither an answer at once, which they would
    ask for again and again, nor one that they cannot read."""
    append_compacted(broker, left, last_offset=2)
    came = broker.send(request(2, max_wait_ms=500), version)
    broker.clock.advance(499)
    assert not came.is_resolved
    broker.clock.advance(1)
    answer = only(came.value)
    assert (answer.error_code, answer.high_watermark, bytes(answer.records)) == (0, 3, b"")
    came = broker.send(request(2, max_wait_ms=500), version)
    broker.append(b"behind")
    broker.clock.advance(0)
    read = all_records(bytes(only(came.value).records))
    assert [(one.offset, one.value) for one in read] == [(3, b"behind")]


def append_compacted(broker: WholeBroker, left: list[bytes], last_offset: int) -> None:
    """A batch whose last records are gone, as compaction leaves it."""
    batch = bytearray(records(left or [b"gone"], timestamp=broker.now_ms))
    if not left:
        del batch[HEADER_BYTES:]
        pack_into(">i", batch, 8, HEADER_BYTES - LOG_OVERHEAD)
        pack_into(">i", batch, 57, 0)
    pack_into(">i", batch, 23, last_offset)
    pack_into(">I", batch, CRC_POSITION, crc32c(bytes(batch[ATTRIBUTES_POSITION:])))
    partition = broker.partition()
    partition.log.append_as_follower(memoryview(batch))
    partition.log.replicated(partition.log.log_end_offset)


def test_formats_without_zstd_are_refused_a_log_of_it(broker: WholeBroker) -> None:
    broker.create("packed", compression_type="zstd")
    broker.append(b"a", topic="packed")
    answer = fetch(broker, version=3, topics=["packed"])
    assert answer.error_code == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert values(fetch(broker, version=4, topics=["packed"])) == [b"a"], "as in Apache Kafka 4"


def test_old_formats_have_no_zstd(broker: WholeBroker) -> None:
    batch = records([b"a"], timestamp=broker.now_ms, compression=Compression.ZSTD)
    broker.partition().append(batch, broker.now_ms)
    assert fetch(broker, version=3).error_code == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert values(fetch(broker, version=4)) == [b"a"], "the codec was the producer's choice"


def test_old_formats_keep_other_codecs(broker: WholeBroker) -> None:
    batch = records([b"a", b"b"], timestamp=5, compression=Compression.GZIP)
    broker.partition().append(batch, broker.now_ms)
    answer = fetch(broker, version=3)
    (header,) = iterate_headers(bytes(answer.records))
    assert (header.magic, header.compression) == (1, Compression.GZIP)
    assert values(answer) == [b"a", b"b"]


def test_many_records_are_converted_in_slices(broker: WholeBroker) -> None:
    """And as they were when they were asked for, whatever becomes of the log."""
    many = [b"%d" % number for number in range(20_000)]
    broker.append(*many)
    broker.append(b"behind")
    came = [broker.send(request(0, max_wait_ms=0), version) for version in (1, 2)]
    assert not any(one.is_resolved for one in came)
    assert values(fetch(broker, 20_000)) == [b"behind"], "others need not wait"
    broker.partition().log.truncate_to(0)
    broker.clock.advance(0)
    assert [values(only(one.value)) for one in came] == [[*many, b"behind"]] * 2


@pytest.mark.parametrize("compression", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4])
def test_a_large_record_is_converted_in_slices_and_little_memory(
    broker: WholeBroker, compression: Compression
) -> None:
    batch = records([bytes(LARGE_RECORD)], timestamp=broker.now_ms, compression=compression)
    broker.partition().append(batch, broker.now_ms)
    broker.append(b"behind")
    tracemalloc.start()
    came = [broker.send(request(0), version) for version in (1, 2)]
    assert not any(one.is_resolved for one in came)
    assert values(fetch(broker, 1)) == [b"behind"], "others need not wait"
    broker.clock.advance(0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < LARGE_RECORD / 2
    for one in came:
        assert values(only(one.value)) == [bytes(LARGE_RECORD), b"behind"]


def test_a_session_keeps_the_name_of_a_topic_that_goes(broker: WholeBroker) -> None:
    topic_id = broker.context.metadata.image.topic_id("t")
    begun = broker.ask(request(topic_id=topic_id, session_epoch=0), 13)
    going_on = FetchRequest(session_id=begun.session_id, session_epoch=1, min_bytes=0)
    broker.delete("t")
    assert only(broker.ask(going_on, 13)).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    broker.create("t")
    going_on.session_epoch = 2
    assert only(broker.ask(going_on, 13)).error_code == Error.INCONSISTENT_TOPIC_ID
    assert fetch(broker, version=13, topic_id=topic_id).error_code == Error.UNKNOWN_TOPIC_ID
