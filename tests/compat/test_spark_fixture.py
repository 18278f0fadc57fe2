"""The fixture that users take: a broker in this process, and a job of theirs that is killed."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkalite.testing.spark import (
    COMMIT,
    MID_BATCH,
    SINK,
    SparkKafka,
    assert_exactly_once,
    crash_after,
    spark_kafka,
)
from tests.compat.spark_connector import SPARK_MARKS, numbers, spark, values

__all__ = ["spark", "spark_kafka"]
pytestmark = SPARK_MARKS


@pytest.fixture
def spark_kafka_session(spark: SparkSession) -> SparkSession:
    return spark


def _fill(spark_kafka: SparkKafka, count: int) -> None:
    rows = spark_kafka.spark.range(count).selectExpr("format_string('%05d', id) AS value")
    spark_kafka.write(rows, "orders")


def test_records_go_in_and_come_out(spark_kafka: SparkKafka) -> None:
    _fill(spark_kafka, 100)
    assert values(spark_kafka.topic("orders").collect()) == numbers(0, 100)


def test_each_test_has_a_broker_of_its_own(spark_kafka: SparkKafka) -> None:
    _fill(spark_kafka, 3)
    assert spark_kafka.topic("orders").count() == 3


def test_a_job_of_ones_own_is_held_against_its_topic(
    spark_kafka: SparkKafka, tmp_path: Path
) -> None:
    _fill(spark_kafka, 50)
    writer = spark_kafka.stream("orders").writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "table"))
    assert query.awaitTermination(60)
    table = spark_kafka.spark.read.parquet(str(tmp_path / "table"))
    assert_exactly_once(table, spark_kafka.topic("orders"))
    with pytest.raises(AssertionError, match=r"orders-0 offsets 7 missing"):
        assert_exactly_once(table.where("offset != 7"), spark_kafka.topic("orders"))


def test_unknown_point_is_refused() -> None:
    with pytest.raises(ValueError, match="no point 'later'"):
        crash_after(0, "later")


@pytest.mark.parametrize("where", [MID_BATCH, SINK, COMMIT])
def test_the_driver_dies_in_its_batch_only(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    deaths: list[str] = []
    monkeypatch.setattr("kafkalite.testing.spark.CrashAfter._die", lambda self: deaths.append("x"))
    written: list[int] = []

    def write(df: Any, batch_id: int) -> None:
        written.append(batch_id)

    crashing = crash_after(1, where).wrap(write)
    crashing(None, 0)
    assert (written, deaths) == ([0], [])
    crashing(None, 1)
    assert written == [0, 1]
    assert deaths
