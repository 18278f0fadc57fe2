"""Spark's Kafka source over time: limits, restarts, growth, loss, and the modes of low latency."""

import json
from functools import partial
from typing import Any

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from tests.compat.spark_connector import (
    SPARK_MARKS,
    Connector,
    connector,
    numbers,
    spark,
    values,
    wait_for,
)
from tests.compat.test_spark_read import delete_before

__all__ = ["connector", "spark"]
pytestmark = SPARK_MARKS


def _batches(connector: Connector, options: dict[str, Any]) -> list[int]:
    """The sizes of the batches of an available-now query."""
    sizes: list[int] = []
    df = connector.stream({"startingOffsets": "earliest", **options})
    writer = df.writeStream.option("checkpointLocation", str(connector.checkpoint()))
    writer = writer.foreachBatch(lambda batch, _: sizes.append(batch.count()))
    assert writer.trigger(availableNow=True).start().awaitTermination(60)
    return [size for size in sizes if size]


def test_batches_are_bounded(connector: Connector, topic: str) -> None:
    connector.create(topic, 2)
    connector.produce(topic, numbers(0, 50), 0)
    connector.produce(topic, numbers(0, 50), 1)
    sizes = _batches(connector, {"subscribe": topic, "maxOffsetsPerTrigger": 40})
    assert sum(sizes) == 100
    assert max(sizes) <= 40


def test_small_batches_wait(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    options = {"minOffsetsPerTrigger": 20, "maxTriggerDelay": "10m"}
    query, rows = _start(connector, {"subscribe": topic, **options})
    wait_for(lambda: len(rows) == 5, query)  # the first batch never waits
    connector.produce(topic, numbers(5, 10))
    query.processAllAvailable()
    assert len(rows) == 5
    connector.produce(topic, numbers(10, 30))
    wait_for(lambda: len(rows) == 30, query)
    query.stop()


def _start(
    connector: Connector, options: dict[str, Any], **trigger: Any
) -> tuple[StreamingQuery, list[str]]:
    """A query that goes on, and the growing list of the values that it saw."""
    seen: list[str] = []
    df = connector.stream({"startingOffsets": "earliest", **options})
    writer = df.writeStream.option("checkpointLocation", str(connector.checkpoint()))
    writer = writer.foreachBatch(lambda batch, _: seen.extend(values(batch.collect())))
    return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start(), seen


def test_running_stream_sees_new_records(connector: Connector, topic: str) -> None:
    connector.create(topic)
    query, seen = _start(connector, {"subscribe": topic})
    for start in (0, 10, 20):
        connector.produce(topic, numbers(start, start + 10))
        wait_for(partial(_equal, seen, numbers(0, start + 10)), query)
    query.stop()


def test_running_stream_sees_new_partitions(connector: Connector, topic: str) -> None:
    connector.create(topic)
    query, seen = _start(connector, {"subscribe": topic, "kafka.metadata.max.age.ms": 200})
    connector.produce(topic, numbers(0, 5))
    wait_for(lambda: len(seen) == 5, query)
    connector.add_partitions(topic, 3)
    connector.produce(topic, numbers(5, 10), 2)
    wait_for(lambda: sorted(seen) == numbers(0, 10), query)
    query.stop()


def test_running_stream_sees_new_topics_of_its_pattern(connector: Connector, topic: str) -> None:
    connector.create(f"{topic}-1")
    connector.produce(f"{topic}-1", numbers(0, 5))
    options = {"subscribePattern": f"{topic}-.*", "kafka.metadata.max.age.ms": 200}
    query, seen = _start(connector, options)
    wait_for(lambda: len(seen) == 5, query)
    connector.create(f"{topic}-2")
    connector.produce(f"{topic}-2", numbers(5, 10))
    wait_for(lambda: sorted(seen) == numbers(0, 10), query)
    query.stop()


def test_restart_goes_on_where_it_was(connector: Connector, topic: str) -> None:
    connector.create(topic)
    checkpoint = connector.checkpoint()
    found = []
    for start in (0, 7, 20):
        connector.produce(topic, numbers(start, {0: 7, 7: 20, 20: 21}[start]))
        df = connector.stream({"subscribe": topic, "startingOffsets": "earliest"})
        found += values(connector.run(df, checkpoint))
    assert found == numbers(0, 21)


def test_read_committed_stream_over_growing_transactions(connector: Connector, topic: str) -> None:
    connector.create(topic)
    checkpoint = connector.checkpoint()
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    df = connector.stream({**options, "startingOffsets": "earliest"})
    found = []
    for number, ending in enumerate(["commit", "abort", "commit"]):
        start = number * 4
        connector.transaction(topic, numbers(start, start + 4), ending, f"{topic}-{number}")
        found += values(connector.run(df, checkpoint))
    assert found == numbers(0, 4) + numbers(8, 12)


def test_expired_records_stop_the_stream(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    checkpoint = connector.checkpoint()
    df = connector.stream({"subscribe": topic, "startingOffsets": "earliest"})
    connector.run(df, checkpoint)
    connector.produce(topic, numbers(5, 20))
    delete_before(connector, topic, 12)
    with pytest.raises(Exception, match=r"(?i)data.?loss|out of range|aged out|missing"):
        connector.run(df, checkpoint)


def test_expired_records_may_be_passed_over(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 5))
    checkpoint = connector.checkpoint()
    options = {"subscribe": topic, "failOnDataLoss": "false", "startingOffsets": "earliest"}
    connector.run(connector.stream(options), checkpoint)
    connector.produce(topic, numbers(5, 20))
    delete_before(connector, topic, 12)
    rows = connector.run(connector.stream(options), checkpoint)
    assert values(rows) == numbers(12, 20)


def test_recreated_topic_with_fewer_records_stops_the_stream(
    connector: Connector, topic: str
) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 10))
    checkpoint = connector.checkpoint()
    df = connector.stream({"subscribe": topic, "startingOffsets": "earliest"})
    connector.run(df, checkpoint)
    connector.delete(topic)
    connector.create(topic)
    connector.produce(topic, numbers(0, 3))
    with pytest.raises(Exception, match=r"(?i)data.?loss|offset was changed|missing"):
        connector.run(df, checkpoint)


def test_deleted_topic_stops_the_stream(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 10))
    checkpoint = connector.checkpoint()
    options = {"subscribe": topic, "startingOffsets": "earliest", "fetchOffset.numRetries": 1}
    connector.run(connector.stream(options), checkpoint)
    connector.delete(topic)
    with pytest.raises(Exception, match=topic):
        connector.run(connector.stream(options), checkpoint)


def test_progress_tells_the_lag(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 30))
    df = connector.stream(
        {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 10}
    )
    writer = df.writeStream.format("noop").option("checkpointLocation", str(connector.checkpoint()))
    query = writer.trigger(processingTime="0 seconds").start()
    wait_for(lambda: any(_rows(each) for each in query.recentProgress), query)
    first = next(each for each in query.recentProgress if _rows(each))
    assert float(first["sources"][0]["metrics"]["maxOffsetsBehindLatest"]) == 20
    query.stop()


def _rows(progress: Any) -> int:
    return int(progress["numInputRows"])


@pytest.mark.parametrize("mode", ["continuous", "realTime"])
def test_low_latency_modes_pass_records_on(connector: Connector, topic: str, mode: str) -> None:
    """Topic to topic without batches in between: parked fetches have to wake at once."""
    connector.create(f"{topic}-in")
    connector.create(f"{topic}-out")
    df = connector.stream({"subscribe": f"{topic}-in", "startingOffsets": "earliest"})
    writer = df.select("key", "value").writeStream.format("kafka").outputMode("update")
    writer = writer.options(**connector.options({"topic": f"{topic}-out"}))
    writer = writer.option("checkpointLocation", str(connector.checkpoint()))
    length = "1 second" if mode == "continuous" else "5 seconds"
    query = writer.trigger(**{mode: length}).start()
    for start in (0, 10):
        connector.produce(f"{topic}-in", numbers(start, start + 10))
        wait_for(partial(_arrived, connector, f"{topic}-out", start + 10), query)
    query.stop()
    rows = connector.read("batch", {"subscribe": f"{topic}-out"})
    assert values(rows) == numbers(0, 20)


def _equal(seen: list[str], expected: list[str]) -> bool:
    return seen == expected


def _arrived(connector: Connector, topic: str, count: int) -> bool:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": connector.broker.bootstrap, "group.id": "watch"})
    try:
        return bool(consumer.get_watermark_offsets(TopicPartition(topic, 0), 60)[1] == count)
    finally:
        consumer.close()


def test_two_streams_read_one_topic(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, numbers(0, 10))
    first, one = _start(connector, {"subscribe": topic})
    second, two = _start(connector, {"subscribe": topic})
    wait_for(lambda: one == two == numbers(0, 10), first)
    first.stop()
    second.stop()


def test_offsets_in_the_checkpoint_are_the_brokers(connector: Connector, topic: str) -> None:
    connector.create(topic, 2)
    connector.produce(topic, numbers(0, 10), 1)
    checkpoint = connector.checkpoint()
    connector.run(connector.stream({"subscribe": topic, "startingOffsets": "earliest"}), checkpoint)
    last = (checkpoint / "offsets" / "0").read_text().splitlines()[-1]
    assert json.loads(last) == {topic: {"0": 0, "1": 10}}
