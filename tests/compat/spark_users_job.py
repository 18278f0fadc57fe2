"""A job as users write it, which a test kills: a topic to Parquet, by a `foreachBatch` of its own.

python -m tests.compat.spark_users_job BOOTSTRAP TOPIC FOLDER BATCH WHERE
"""

import sys
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kafkalite import spark as kafkalite_spark
from kafkalite.testing.spark import crash_after
from tests.compat.spark_connector import SETTINGS

PER_BATCH = 100

Write = Callable[[DataFrame, int], None]


def job(
    spark: SparkSession,
    bootstrap: str,
    topic: str,
    folder: str,
    around: Callable[[Write], Write] = lambda write: write,
) -> None:
    def write(df: DataFrame, batch_id: int) -> None:
        df.write.mode("overwrite").parquet(f"{folder}/table/batch={batch_id}")

    options: dict[str, Any] = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": PER_BATCH,
        "minPartitions": 8,
    }
    stream = spark.readStream.format("kafka").options(**options).load()
    writer = stream.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
    writer.trigger(availableNow=True).foreachBatch(around(write)).start().awaitTermination()


def main() -> None:
    bootstrap, topic, folder, batch, where = sys.argv[1:]
    spark = kafkalite_spark.session("kafka", master="local[2]", config=SETTINGS)
    job(spark, bootstrap, topic, folder, crash_after(int(batch), where).wrap)


if __name__ == "__main__":
    main()
