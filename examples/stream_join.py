"""Payments joined to their orders as both come, with records that come late, and too late.

    python examples/stream_join.py --orders orders --payments payments --path lake/paid

An order is paid by a payment of its id within an hour. Both streams may be late by ten minutes. An
order for which no payment can come any more is written without one; what comes later than that is
left out, and counted. Started again it goes on where it was.
"""

import argparse
import os
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite import spark as kafkalite_spark
from kafkalite.pipelines import KafkaSource

LATE_BY = "10 minutes"
PAID = "paid_id = order_id AND paid_at >= ordered_at AND paid_at <= ordered_at + INTERVAL 1 HOUR"


def events(records: DataFrame, what: str, number: str) -> DataFrame:
    """An id and an amount of each record; its time is the record's own."""
    schema = "id BIGINT, amount DOUBLE"
    parsed = sf.from_json(sf.col("value").cast("string"), schema)
    rows = records.select(parsed.alias("data"), sf.col("timestamp").alias(f"{what}_at"))
    return rows.select(
        sf.col("data.id").alias(number), sf.col("data.amount").alias(f"{what}_amount"), f"{what}_at"
    ).withWatermark(f"{what}_at", LATE_BY)


def joined(orders: DataFrame, payments: DataFrame) -> DataFrame:
    """Each order with its payment, or without one when none can come any more."""
    ordered = events(orders, "ordered", "order_id")
    return ordered.join(events(payments, "paid", "paid_id"), sf.expr(PAID), "leftOuter")


def run(
    spark: SparkSession, servers: str, orders: str, payments: str, path: str, per_batch: int
) -> int:
    """Over all that is there; gives how many records came too late."""
    options = {"maxOffsetsPerTrigger": str(per_batch)}
    streams = (KafkaSource(servers, (topic,), options=options) for topic in (orders, payments))
    rows = joined(*(source.stream(spark) for source in streams))
    writer = rows.writeStream.format("parquet").option("checkpointLocation", f"{path}/_checkpoint")
    query = writer.outputMode("append").trigger(availableNow=True).start(path)
    query.awaitTermination()
    states = [state for each in query.recentProgress for state in each["stateOperators"]]
    return sum(state["numRowsDroppedByWatermark"] for state in states)


def main(words: list[str]) -> int:
    said = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    said.add_argument("--orders", required=True)
    said.add_argument("--payments", required=True)
    said.add_argument("--path", required=True)
    said.add_argument("--per-batch", type=int, default=100_000)
    given = said.parse_args(words)
    servers = os.environ.get("KAFKALITE_BOOTSTRAP_SERVERS", "localhost:9092")
    spark = kafkalite_spark.session("kafka")
    late = run(spark, servers, given.orders, given.payments, given.path, given.per_batch)
    print(f"{late} records came too late")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
