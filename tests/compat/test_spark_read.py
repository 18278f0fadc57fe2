"""Spark's Kafka source, unchanged: what it reads, by a batch and by an available-now stream."""

import json
import time
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from tests.compat.spark_connector import (
    SPARK_MARKS,
    WAIT_S,
    Connector,
    connector,
    numbers,
    spark,
    values,
)

__all__ = ["connector", "spark"]
pytestmark = SPARK_MARKS

BOTH = pytest.mark.parametrize("how", ["batch", "stream"])
START_MS = 1_700_000_000_000


@BOTH
def test_subscribe_reads_one_topic(connector: Connector, topic: str, how: str) -> None:
    connector.create(topic, 2)
    connector.produce(topic, numbers(0, 10), 0)
    connector.produce(topic, numbers(10, 20), 1)
    assert values(connector.read(how, {"subscribe": topic})) == numbers(0, 20)


@BOTH
def test_subscribe_reads_several_topics(connector: Connector, topic: str, how: str) -> None:
    for number, name in enumerate([f"{topic}-a", f"{topic}-b"]):
        connector.create(name)
        connector.produce(name, numbers(number * 5, number * 5 + 5))
    rows = connector.read(how, {"subscribe": f"{topic}-a,{topic}-b"})
    assert values(rows) == numbers(0, 10)
    assert {row["topic"] for row in rows} == {f"{topic}-a", f"{topic}-b"}


@BOTH
def test_pattern_reads_matching_topics(connector: Connector, topic: str, how: str) -> None:
    for name in (f"{topic}-1", f"{topic}-2", f"{topic}-x"):
        connector.create(name)
        connector.produce(name, [name])
    rows = connector.read(how, {"subscribePattern": rf"{topic}-\d"})
    assert values(rows) == [f"{topic}-1", f"{topic}-2"]


def test_pattern_hides_internal_topics(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.transaction(topic, ["one"], "commit", topic)
    rows = (
        connector.batch({"subscribePattern": f"{topic}|__.*"}).select("topic").distinct().collect()
    )
    names = {row["topic"] for row in rows}
    assert names == {topic}


@BOTH
def test_assign_reads_only_these_partitions(connector: Connector, topic: str, how: str) -> None:
    connector.create(topic, 3)
    for partition in range(3):
        connector.produce(topic, numbers(partition, partition + 1), partition)
    rows = connector.read(how, {"assign": json.dumps({topic: [0, 2]})})
    assert sorted(row["partition"] for row in rows) == [0, 2]


@pytest.mark.parametrize(
    ("how", "start"),
    [(how, start) for how in ("batch", "stream") for start in (0, 4, 9, 10, -2)] + [("stream", -1)],
)
def test_reading_starts_at_an_offset(
    connector: Connector, topic: str, how: str, start: int
) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 10))
    options = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": start}})}
    first = {-1: 10, -2: 0}.get(start, start)
    assert values(connector.read(how, options)) == numbers(first, 10)


def test_stream_from_latest_sees_only_what_follows(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    checkpoint = connector.checkpoint()
    df = connector.stream({"subscribe": topic, "startingOffsets": "latest"})
    assert connector.run(df, checkpoint) == []
    connector.produce(topic, numbers(5, 8))
    assert values(connector.run(df, checkpoint)) == numbers(5, 8)


@pytest.mark.parametrize("end", [1, 7, 10, -1])
def test_batch_ends_before_an_offset(connector: Connector, topic: str, end: int) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 10))
    options = {"subscribe": topic, "endingOffsets": json.dumps({topic: {"0": end}})}
    assert values(connector.read("batch", options)) == numbers(0, 10 if end == -1 else end)


def _timed(connector: Connector, topic: str) -> None:
    """Ten records, a second apart, in one batch: the search must go into the batch."""
    connector.create(topic)
    records = [
        {"value": value, "timestamp": START_MS + number * 1000}
        for number, value in enumerate(numbers(0, 10))
    ]
    connector.produce(topic, records, **{"linger.ms": 200})


@BOTH
@pytest.mark.parametrize(
    "option", ["startingTimestamp", "startingOffsetsByTimestamp"], ids=["global", "per-partition"]
)
@pytest.mark.parametrize(("at", "first"), [(0, 0), (3000, 3), (3001, 4), (9000, 9)])
def test_reading_starts_at_a_timestamp(
    connector: Connector, topic: str, how: str, option: str, at: int, first: int
) -> None:
    _timed(connector, topic)
    rows = connector.read(how, {"subscribe": topic, option: _timestamp(topic, option, at)})
    assert values(rows) == numbers(first, 10)


@pytest.mark.parametrize("option", ["endingTimestamp", "endingOffsetsByTimestamp"])
def test_batch_ends_before_a_timestamp(connector: Connector, topic: str, option: str) -> None:
    _timed(connector, topic)
    options = {"subscribe": topic, option: _timestamp(topic, option, 3500)}
    assert values(connector.read("batch", options)) == numbers(0, 4)


def _timestamp(topic: str, option: str, at: int) -> str:
    if option.endswith("Timestamp") and "Offsets" not in option:
        return str(START_MS + at)
    return json.dumps({topic: {"0": START_MS + at}})


@BOTH
def test_timestamp_past_the_end_is_an_error(connector: Connector, topic: str, how: str) -> None:
    _timed(connector, topic)
    with pytest.raises(Exception, match=r"(?i)no offset"):
        connector.read(how, {"subscribe": topic, "startingTimestamp": START_MS + 60_000})


@BOTH
def test_timestamp_past_the_end_may_mean_latest(connector: Connector, topic: str, how: str) -> None:
    _timed(connector, topic)
    options = {
        "subscribe": topic,
        "startingTimestamp": START_MS + 60_000,
        "startingOffsetsByTimestampStrategy": "latest",
    }
    assert connector.read(how, options) == []


@BOTH
def test_one_partition_is_read_by_several_tasks(connector: Connector, topic: str, how: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 120))
    options = {"subscribe": topic, "minPartitions": 6}
    assert values(connector.read(how, options)) == numbers(0, 120)
    if how == "batch":
        assert connector.batch(options).rdd.getNumPartitions() == 6


def test_tasks_of_a_stream_are_bounded(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 120))
    tasks: list[int] = []
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxRecordsPerPartition": 20}
    writer = connector.stream(options).writeStream.foreachBatch(
        lambda batch, _: tasks.append(batch.rdd.getNumPartitions())
    )
    writer = writer.option("checkpointLocation", str(connector.checkpoint()))
    assert writer.trigger(availableNow=True).start().awaitTermination(60)
    assert tasks == [6]


@BOTH
def test_headers_come_as_they_were_written(connector: Connector, topic: str, how: str) -> None:
    connector.create(topic)
    headers = [("a", b"1"), ("a", b"2"), ("", b""), ("none", None), ("ü", b"\x00\xff")]
    connector.produce(topic, [{"value": "with", "headers": headers}, {"value": "without"}])
    rows = connector.read(how, {"subscribe": topic, "includeHeaders": "true"})
    found = {row["value"].decode(): row["headers"] for row in rows}
    assert [(each["key"], each["value"]) for each in found["with"]] == headers
    assert not found["without"]


@BOTH
def test_null_keys_and_values_stay_null(connector: Connector, topic: str, how: str) -> None:
    connector.create(topic)
    records = [(b"k", b"v"), (b"k", None), (None, b"v"), (b"", b"")]
    connector.produce(topic, records)
    rows = connector.read(how, {"subscribe": topic})
    rows.sort(key=lambda row: row["offset"])
    assert [_pair(row) for row in rows] == records


def _pair(row: Any) -> tuple[bytes | None, bytes | None]:
    key, value = row["key"], row["value"]
    return (None if key is None else bytes(key), None if value is None else bytes(value))


@pytest.mark.parametrize(
    ("kind", "number"), [("CreateTime", 0), ("LogAppendTime", 1)], ids=["create", "append"]
)
def test_timestamps_and_their_type(
    connector: Connector, topic: str, kind: str, number: int
) -> None:
    connector.create(topic, config={"message.timestamp.type": kind})
    connector.produce(topic, [{"value": "x", "timestamp": START_MS}])
    df = connector.batch({"subscribe": topic})
    (row,) = df.selectExpr("unix_millis(timestamp) AS at", "timestampType").collect()
    assert row["timestampType"] == number
    assert (row["at"] == START_MS) == (kind == "CreateTime")


@BOTH
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read(
    connector: Connector, topic: str, how: str, codec: str
) -> None:
    connector.create(topic)
    settings: dict[str, Any] = {"compression.type": codec, "linger.ms": 50}
    connector.produce(topic, numbers(0, 200), **settings)
    options = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 150}})}
    assert values(connector.read(how, options)) == numbers(150, 200)


@BOTH
def test_records_near_the_limit_are_read(connector: Connector, topic: str, how: str) -> None:
    connector.create(topic)
    connector.produce(topic, ["x" * 900_000, "y" * 900_000])
    rows = connector.read(how, {"subscribe": topic})
    assert sorted(len(row["value"]) for row in rows) == [900_000, 900_000]


@BOTH
def test_small_fetches_still_read_all(connector: Connector, topic: str, how: str) -> None:
    connector.create(topic)
    settings: dict[str, Any] = {"batch.num.messages": 7}
    connector.produce(topic, numbers(0, 300), **settings)
    options = {
        "subscribe": topic,
        "kafka.max.partition.fetch.bytes": 200,
        "kafka.fetch.max.bytes": 200,
        "kafka.max.poll.records": 5,
    }
    assert values(connector.read(how, options)) == numbers(0, 300)


@BOTH
@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_isolation_over_transactions(
    connector: Connector, topic: str, how: str, isolation: str
) -> None:
    connector.create(topic)
    connector.transaction(topic, numbers(0, 3), "commit", f"{topic}-1")
    connector.transaction(topic, numbers(3, 6), "abort", f"{topic}-2")
    connector.transaction(topic, numbers(6, 9), "commit", f"{topic}-3")
    options = {"subscribe": topic, "kafka.isolation.level": isolation}
    committed = numbers(0, 3) + numbers(6, 9)
    expected = committed if isolation == "read_committed" else numbers(0, 9)
    assert values(connector.read(how, options)) == expected


@BOTH
def test_open_transaction_is_not_read_as_committed(
    connector: Connector, topic: str, how: str
) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 2))
    producer = connector.transaction(topic, numbers(2, 4), "open", topic)
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    assert values(connector.read(how, options)) == numbers(0, 2)
    producer.commit_transaction(60)
    assert values(connector.read(how, options)) == numbers(0, 4)


@BOTH
def test_only_markers_at_the_end_are_passed_over(
    connector: Connector, topic: str, how: str
) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 2))
    connector.transaction(topic, numbers(2, 5), "abort", topic)
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    assert values(connector.read(how, options)) == numbers(0, 2)


@BOTH
def test_gaps_of_compaction_are_no_data_loss(connector: Connector, topic: str, how: str) -> None:
    """Ranges and whole batches that begin, end and lie in holes, with failOnDataLoss."""
    end = _compacted(connector, topic)
    options = {"subscribe": topic, "failOnDataLoss": "true", "minPartitions": "7"}
    bounded = {"maxOffsetsPerTrigger": "40"} if how == "stream" else {}
    rows = connector.read(how, {**options, **bounded})
    offsets = [row["offset"] for row in rows]
    assert len(offsets) == len(set(offsets)) < end
    latest = {bytes(row["key"]): row for row in sorted(rows, key=lambda row: row["offset"])}
    for number in range(KEYS):
        assert latest[f"k{number}".encode()]["value"] == f"last {number}".encode()


KEYS = 10


def _compacted(connector: Connector, topic: str) -> int:
    """A log of which compaction has left holes; gives its end."""
    rules = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    connector.create(topic, config=rules)
    connector.produce(topic, [(f"k{number % KEYS}", "early") for number in range(150)])
    connector.produce(topic, [(f"k{number}", f"last {number}") for number in range(KEYS)])
    end = 150 + KEYS
    deadline = time.monotonic() + WAIT_S
    while connector.batch({"subscribe": topic}).count() >= end - 100:
        assert time.monotonic() < deadline, "nothing was compacted"
        # A segment is closed by the first record after its time, and only closed ones are cleaned.
        time.sleep(0.2)
        connector.produce(topic, [("roll", "x")])
        end += 1
    return end


@BOTH
def test_reading_starts_where_the_log_starts_now(
    connector: Connector, topic: str, how: str
) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 10))
    delete_before(connector, topic, 6)
    assert values(connector.read(how, {"subscribe": topic})) == numbers(6, 10)


def test_deleted_records_are_a_data_loss(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 10))
    delete_before(connector, topic, 6)
    options = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 2}})}
    with pytest.raises(Exception, match=r"(?i)data.?loss|out of range"):
        connector.read("batch", {**options, "failOnDataLoss": "true"})
    rows = connector.read("batch", {**options, "failOnDataLoss": "false"})
    assert values(rows) == numbers(6, 10)


def delete_before(connector: Connector, topic: str, offset: int) -> None:
    futures = connector.admin().delete_records([TopicPartition(topic, 0, offset)])
    for future in futures.values():
        future.result(60)


@BOTH
def test_empty_topic_gives_no_rows(connector: Connector, topic: str, how: str) -> None:
    connector.create(topic, 3)
    assert connector.read(how, {"subscribe": topic}) == []


@BOTH
def test_unknown_topic_is_an_error_and_is_not_created(
    connector: Connector, topic: str, how: str
) -> None:
    with pytest.raises(Exception, match=r"UnknownTopicOrPartition|does not host"):
        connector.read(how, {"subscribe": topic, "fetchOffset.numRetries": "1"})
    assert topic not in connector.admin().list_topics(timeout=60).topics


@BOTH
def test_columns_and_counts_are_pushed_through(connector: Connector, topic: str, how: str) -> None:
    connector.create(topic, 2)
    connector.produce(topic, numbers(0, 30), 0)
    connector.produce(topic, numbers(0, 12), 1)
    if how == "batch":
        df = connector.batch({"subscribe": topic})
        assert df.count() == 42
        assert dict(df.groupBy("partition").count().collect()) == {0: 30, 1: 12}
    else:
        df = connector.stream({"subscribe": topic, "startingOffsets": "earliest"})
        rows = connector.run(df.where("partition = 1").select("offset"))
        assert sorted(row["offset"] for row in rows) == list(range(12))


@BOTH
@pytest.mark.parametrize("option", ["groupIdPrefix", "kafka.group.id"])
def test_group_ids_leave_no_group_behind(
    connector: Connector, topic: str, how: str, option: str
) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    rows = connector.read(how, {"subscribe": topic, option: f"{topic}-group"})
    assert values(rows) == numbers(0, 5)
    listed = connector.admin().list_consumer_groups(request_timeout=60).result()
    assert not [each for each in listed.valid if each.group_id.startswith(f"{topic}-group")]


def test_offsets_of_headless_batches_are_exact(connector: Connector, topic: str) -> None:
    """Ranges that begin and end inside of batches give exactly their offsets."""
    connector.create(topic)
    connector.produce(topic, numbers(0, 100), **{"linger.ms": 100})
    options = {
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {"0": 37}}),
        "endingOffsets": json.dumps({topic: {"0": 61}}),
        "minPartitions": "4",
    }
    rows = connector.batch(options).select("offset").collect()
    assert sorted(row["offset"] for row in rows) == list(range(37, 61))
