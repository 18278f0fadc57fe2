"""One hour of log time of a topic into a folder, as loads into Hadoop went, and its audit.

    python examples/hourly_load.py --topic events --hour 2026-01-01T05 --path lake

writes `lake/events/hour=2026-01-01T05`. Started again it replaces the hour, so that records that
came late are taken up. `_AUDITED` lies in the folder once it was held against the topic, with what
was counted: jobs that wait for an hour wait for that. Exits with 3 when both are not alike.
"""

import argparse
import json
import os
import sys
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafkalite import spark as kafkalite_spark
from kafkalite.pipelines import KafkaSource
from kafkalite.pipelines.audit import differences
from kafkalite.pipelines.common.admin import KafkaAdmin
from kafkalite.pipelines.common.files import Folder
from kafkalite.pipelines.common.offsets import dump
from kafkalite.pipelines.to_lake import bronze

HOUR = timedelta(hours=1)
DIFFERENT = 3


def records_of(spark: SparkSession, servers: str, topic: str, hour: datetime) -> DataFrame:
    """The records of an hour, as far as the topic goes now.

    Records come late: one of this hour may lie anywhere behind the first that is as old.
    """
    options = {
        "startingTimestamp": str(int(hour.timestamp() * 1000)),
        "startingOffsetsByTimestampStrategy": "latest",
    }
    source = KafkaSource(servers, (topic,), options=options)
    with KafkaAdmin(spark, source.client_options) as admin:
        ends = admin.ends(admin.all_partitions([topic]))
    rows = source.with_options(endingOffsets=dump(ends)).batch(spark)
    start, end = (sf.lit(at.isoformat()).cast("timestamp") for at in (hour, hour + HOUR))
    return rows.where((sf.col("timestamp") >= start) & (sf.col("timestamp") < end))


def load(spark: SparkSession, servers: str, topic: str, hour: datetime, path: str) -> list[str]:
    """Replaces the folder of an hour; gives what differs from the topic."""
    folder = Folder(spark, f"{path}/{topic}/hour={hour:%Y-%m-%dT%H}")
    records = records_of(spark, servers, topic, hour)
    bronze(records).write.mode("overwrite").parquet(folder.path)
    written = spark.read.parquet(folder.path)
    places = ["topic", "partition", "offset"]
    found = differences(records.select(*places), written.select(*places)).collect()
    if not found:
        counts = {"rows": written.count(), "audited_at": datetime.now(UTC).isoformat()}
        folder.write("_AUDITED", json.dumps(counts))
    return [f"{x.topic}-{x.partition} offsets {x.first}..{x['last']} {x.what}" for x in found]


def main(words: list[str]) -> int:
    said = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    said.add_argument("--topic", required=True)
    said.add_argument("--hour", required=True, help="Such as 2026-01-01T05, in UTC.")
    said.add_argument("--path", required=True)
    given = said.parse_args(words)
    hour = datetime.strptime(given.hour, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    servers = os.environ.get("KAFKALITE_BOOTSTRAP_SERVERS", "localhost:9092")
    spark = kafkalite_spark.session("kafka")
    faults = load(spark, servers, given.topic, hour, given.path)
    for fault in faults:
        print(fault, file=sys.stderr)
    return DIFFERENT if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
