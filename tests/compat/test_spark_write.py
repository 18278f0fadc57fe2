"""Spark's Kafka sink, unchanged: what it writes, by batches and by streams."""

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from tests.compat.spark_connector import (
    SPARK_MARKS,
    Connector,
    connector,
    numbers,
    spark,
    values,
)

__all__ = ["connector", "spark"]
pytestmark = SPARK_MARKS


def _rows(connector: Connector, count: int) -> DataFrame:
    value = sf.format_string("%05d", sf.col("id"))
    return connector.spark.range(count).select(value.alias("value"))


def test_written_values_are_read_back(connector: Connector, topic: str) -> None:
    connector.create(topic, 2)
    connector.write(_rows(connector, 50), topic=topic)
    assert values(connector.read("batch", {"subscribe": topic})) == numbers(0, 50)


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_keys_and_values_of_both_types(connector: Connector, topic: str, kind: str) -> None:
    connector.create(topic)
    df = _rows(connector, 3).select(
        sf.lit("k").cast(kind).alias("key"), sf.col("value").cast(kind).alias("value")
    )
    connector.write(df, topic=topic)
    rows = connector.read("batch", {"subscribe": topic})
    assert values(rows) == numbers(0, 3)
    assert {bytes(row["key"]) for row in rows} == {b"k"}


def test_topic_column_spreads_over_topics(connector: Connector, topic: str) -> None:
    for parity in (0, 1):
        connector.create(f"{topic}-{parity}")
    df = connector.spark.range(10).select(
        sf.concat(sf.lit(f"{topic}-"), sf.col("id") % 2).alias("topic"),
        sf.format_string("%05d", "id").alias("value"),
    )
    connector.write(df)
    rows = connector.read("batch", {"subscribe": f"{topic}-1"})
    assert values(rows) == [f"{number:05d}" for number in (1, 3, 5, 7, 9)]


def test_topic_option_wins_over_the_column(connector: Connector, topic: str) -> None:
    connector.create(topic)
    df = _rows(connector, 2).withColumn("topic", sf.lit("no-such-topic"))
    connector.write(df, topic=topic)
    assert values(connector.read("batch", {"subscribe": topic})) == numbers(0, 2)


def test_partition_column_places_records(connector: Connector, topic: str) -> None:
    connector.create(topic, 4)
    df = connector.spark.range(12).select(
        sf.format_string("%05d", "id").alias("value"),
        (sf.col("id") % 4).cast("int").alias("partition"),
    )
    connector.write(df, topic=topic)
    for row in connector.read("batch", {"subscribe": topic}):
        assert row["partition"] == int(row["value"]) % 4


def test_keys_place_records_as_the_java_client_does(connector: Connector, topic: str) -> None:
    connector.create(topic, 3)
    df = connector.spark.range(60).select(
        (sf.col("id") % 6).cast("string").alias("key"), sf.lit("v").alias("value")
    )
    connector.write(df, topic=topic)
    rows = connector.read("batch", {"subscribe": topic})
    places: dict[bytes, set[int]] = {}
    for row in rows:
        places.setdefault(bytes(row["key"]), set()).add(row["partition"])
    assert all(len(partitions) == 1 for partitions in places.values())
    assert len(set.union(*places.values())) > 1


def test_headers_are_written(connector: Connector, topic: str) -> None:
    connector.create(topic)
    kind = "array<struct<key:string,value:binary>>"
    headers = sf.expr(f"CAST(array(struct('a', '1'), struct('b', NULL)) AS {kind})")
    connector.write(_rows(connector, 1).withColumn("headers", headers), topic=topic)
    options = {"subscribe": topic, "includeHeaders": "true"}
    (row,) = connector.read("batch", options)
    assert [(each["key"], each["value"]) for each in row["headers"]] == [("a", b"1"), ("b", None)]


@pytest.mark.parametrize("column", ["key", "value"])
def test_null_keys_and_tombstones_are_written(
    connector: Connector, topic: str, column: str
) -> None:
    connector.create(topic)
    both = {"key": sf.lit("k"), "value": sf.lit("v"), column: sf.lit(None).cast("string")}
    df = connector.spark.range(1).select(*[each.alias(name) for name, each in both.items()])
    connector.write(df, topic=topic)
    (row,) = connector.read("batch", {"subscribe": topic})
    assert row[column] is None


def test_tombstones_go_to_a_compacted_topic(connector: Connector, topic: str) -> None:
    connector.create(topic, config={"cleanup.policy": "compact"})
    connector.write(
        connector.spark.sql("SELECT 'k' AS key, CAST(NULL AS BINARY) AS value"), topic=topic
    )
    assert len(connector.read("batch", {"subscribe": topic})) == 1


def test_keyless_record_is_refused_by_a_compacted_topic(connector: Connector, topic: str) -> None:
    connector.create(topic, config={"cleanup.policy": "compact"})
    with pytest.raises(Exception, match=r"InvalidRecord|one or more records have been rejected"):
        connector.write(_rows(connector, 1), topic=topic)


def test_null_topic_is_refused(connector: Connector, topic: str) -> None:
    df = _rows(connector, 1).withColumn("topic", sf.lit(None).cast("string"))
    with pytest.raises(Exception, match=r"(?i)null topic"):
        connector.write(df)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_compressed_writing(connector: Connector, topic: str, codec: str) -> None:
    connector.create(topic)
    options = {"topic": topic, "kafka.compression.type": codec, "kafka.linger.ms": 50}
    connector.write(_rows(connector, 300), **options)
    assert values(connector.read("batch", {"subscribe": topic})) == numbers(0, 300)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("idempotent", ["true", "false"])
def test_acks_and_idempotence(connector: Connector, topic: str, acks: str, idempotent: str) -> None:
    connector.create(topic)
    options = {"kafka.acks": acks, "kafka.enable.idempotence": idempotent}
    if idempotent == "true" and acks != "all":
        with pytest.raises(Exception, match=r"(?i)idempoten"):
            connector.write(_rows(connector, 1), topic=topic, **options)
    else:
        connector.write(_rows(connector, 100), topic=topic, **options)
        assert values(connector.read("batch", {"subscribe": topic})) == numbers(0, 100)


def test_order_within_a_task_is_kept(connector: Connector, topic: str) -> None:
    connector.create(topic)
    df = _rows(connector, 20_000).coalesce(1)
    connector.write(df, topic=topic, **{"kafka.batch.size": 500})
    rows = connector.batch({"subscribe": topic}).orderBy("offset").select("value").collect()
    assert [row["value"].decode() for row in rows] == numbers(0, 20_000)


def test_too_large_a_record_is_refused(connector: Connector, topic: str) -> None:
    connector.create(topic, config={"max.message.bytes": "2000"})
    df = connector.spark.range(1).select(sf.lit("x" * 5000).alias("value"))
    with pytest.raises(Exception, match=r"RecordTooLarge|larger than the max"):
        connector.write(df, topic=topic)


def test_missing_topic_is_created_by_writing(connector: Connector, topic: str) -> None:
    connector.write(_rows(connector, 5), topic=topic)
    assert values(connector.read("batch", {"subscribe": topic})) == numbers(0, 5)


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_streams_write_in_each_output_mode(connector: Connector, topic: str, mode: str) -> None:
    connector.create(f"{topic}-in")
    connector.create(f"{topic}-out")
    connector.produce(f"{topic}-in", numbers(0, 30))
    df = connector.stream({"subscribe": f"{topic}-in", "startingOffsets": "earliest"})
    if mode != "append":
        df = df.groupBy((sf.col("offset") % 3).alias("k")).count()
        df = df.select(sf.col("k").cast("string").alias("key"), sf.col("count").alias("n"))
        df = df.withColumn("value", sf.format_string("%05d", "n")).drop("n")
    writer = df.writeStream.format("kafka").outputMode(mode)
    options = connector.options({"topic": f"{topic}-out"})
    writer = writer.options(**options).option("checkpointLocation", str(connector.checkpoint()))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    expected = numbers(0, 30) if mode == "append" else ["00010"] * 3
    assert values(connector.read("batch", {"subscribe": f"{topic}-out"})) == expected


def test_stream_goes_on_after_a_stop(connector: Connector, topic: str) -> None:
    connector.create(f"{topic}-in")
    connector.create(f"{topic}-out")
    checkpoint = str(connector.checkpoint())
    for start in (0, 10):
        connector.produce(f"{topic}-in", numbers(start, start + 10))
        df = connector.stream({"subscribe": f"{topic}-in", "startingOffsets": "earliest"})
        writer = df.writeStream.format("kafka").option("checkpointLocation", checkpoint)
        writer = writer.options(**connector.options({"topic": f"{topic}-out"}))
        assert writer.trigger(availableNow=True).start().awaitTermination(60)
    assert values(connector.read("batch", {"subscribe": f"{topic}-out"})) == numbers(0, 20)
