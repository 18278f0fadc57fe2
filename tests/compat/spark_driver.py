"""A driver in a process of its own, which tests kill: one pipeline, run as its JSON argument says.

`{"pipeline": …, "bootstrap": …, "folder": …, "topic": …, "crash": [batch, where], …}`
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

from kafkalite import spark as kafkalite_spark
from kafkalite.pipelines import DeadLetters, KafkaSource, Mirror, Snapshot, ToLake
from kafkalite.pipelines.common.decode import Decoding
from kafkalite.pipelines.common.running import Trigger
from kafkalite.testing.spark import crash_after
from tests.compat.spark_connector import SETTINGS

# Small fetches, so that tasks take long enough to be caught in the middle.
SLOWLY = {"kafka.max.partition.fetch.bytes": "4000", "kafka.fetch.max.bytes": "4000"}


def build(spark: SparkSession, task: dict[str, Any], bootstrap: str) -> Any:
    """The pipeline of a task, with three batches of its topic."""
    folder, topic = task["folder"], task["topic"]
    options = {"maxOffsetsPerTrigger": str(task["per_batch"]), **task.get("options", {})}
    source = KafkaSource(bootstrap, (topic,), options=options)
    trigger = Trigger(task.get("trigger", "available-now"))
    match task["pipeline"]:
        case "to-lake":
            return ToLake(spark, source, f"{folder}/lake", task["format"], trigger=trigger)
        case "mirror":
            target = KafkaSource(task.get("to_bootstrap", bootstrap), ("*",))
            return Mirror(spark, source, target, f"{folder}/mirror", "copy-{topic}")
        case "dlq":
            rules = {"even": "CAST(CAST(value AS STRING) AS INT) % 2 = 0"}
            return DeadLetters(
                spark, source, f"{topic}-dead", f"{folder}/dlq", Decoding("raw"), rules
            )
        case "snapshot":
            return Snapshot(spark, source, f"{folder}/snapshot")
        case name:
            raise ValueError(name)


def run(pipeline: Any, **how: Any) -> Any:
    start = pipeline.follow if isinstance(pipeline, Snapshot) else pipeline.run
    return start(**how)


def main() -> None:
    task = json.loads(sys.argv[1])
    spark = kafkalite_spark.session(master="local[2]", config=SETTINGS)
    pipeline = build(spark, {**task, "options": SLOWLY}, task["bootstrap"])
    how = {"observe": crash_after(*task["crash"])} if task["crash"] else {}
    run(pipeline, **how)


if __name__ == "__main__":
    main()
