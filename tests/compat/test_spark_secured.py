"""Spark's Kafka connector over SASL_SSL, on both brokers, with what `client_config` tells it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tests.compat.secured_broker import SecuredBroker, secured_broker
from tests.compat.spark_connector import SPARK_MARKS, numbers, spark, values

__all__ = ["spark"]
pytestmark = [*SPARK_MARKS, pytest.mark.theirs_in_full]


@pytest.fixture(scope="module", params=["PLAIN", "SCRAM-SHA-512"])
def secured(request, broker_kind: str, tmp_path_factory) -> Iterator[SecuredBroker]:
    with secured_broker(
        broker_kind, tmp_path_factory.mktemp("secured"), "SASL_SSL", request.param
    ) as found:
        yield found


@dataclass(frozen=True)
class Job:
    """A session, and what it is told of the broker."""

    spark: SparkSession
    options: dict[str, str]


@pytest.fixture
def job(spark: SparkSession, secured: SecuredBroker) -> Job:
    return Job(spark, secured.client_config("spark"))


def test_what_a_batch_wrote_a_batch_and_a_stream_read(job: Job, topic: str, tmp_path) -> None:
    rows = job.spark.range(50).select(sf.format_string("%05d", sf.col("id")).alias("value"))
    rows.write.format("kafka").options(**job.options, topic=topic).save()
    reading = {**job.options, "subscribe": topic, "startingOffsets": "earliest"}
    found = job.spark.read.format("kafka").options(**reading).load().collect()
    assert values(found) == numbers(0, 50)
    streamed: list = []
    query = (
        job.spark.readStream.format("kafka").options(**reading).load()
        .writeStream.option("checkpointLocation", str(tmp_path))
        .foreachBatch(lambda batch, _: streamed.extend(batch.collect()))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(60)
    assert values(streamed) == numbers(0, 50)
