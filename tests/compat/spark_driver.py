"""A driver in a process of its own, which tests kill: one pipeline, run as its JSON argument says.

`{"pipeline": …, "bootstrap": …, "folder": …, "topic": …, "crash": [batch, where], …}`
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kafkalite import spark as kafkalite_spark
from kafkalite.pipelines import (
    Audit,
    CommitOffsetsListener,
    DeadLetters,
    KafkaSource,
    Mirror,
    Replay,
    Snapshot,
    ToLake,
    reporting,
)
from kafkalite.pipelines.common.interceptor import RATE_OPTION
from kafkalite.pipelines.common.running import Batch, Observe
from kafkalite.pipelines.lag import Lag
from kafkalite.testing.spark import crash_after
from tests.compat.spark_connector import SETTINGS

# Small fetches, so that tasks take long enough to be caught in the middle.
SLOWLY = {"kafka.max.partition.fetch.bytes": "4000", "kafka.fetch.max.bytes": "4000"}
UNDER_WAY = "under-way"

Task = dict[str, Any]
Run = Callable[[Observe], Any]


def run(spark: SparkSession, task: Task, observe: Observe = lambda step, batch: None) -> Any:
    """Runs the pipeline of a task to its end; gives what it gives."""
    (Path(task["folder"]) / UNDER_WAY).touch()
    return RUNS[task["pipeline"]](spark, task, observe)


def source(task: Task) -> KafkaSource:
    """The topic of a task, in batches of the size that it says."""
    options = {"maxOffsetsPerTrigger": str(task["per_batch"]), **task.get("options", {})}
    return KafkaSource(task["bootstrap"], (task["topic"],), options=options)


def lake(spark: SparkSession, task: Task) -> ToLake:
    table_format = "parquet" if task["pipeline"] == "to-lake-parquet" else "delta"
    return ToLake(spark, source(task), f"{task['folder']}/lake", table_format)


def audit(spark: SparkSession, task: Task) -> Audit:
    return Audit(spark, source(task), f"{task['folder']}/lake", lake(spark, task).format)


def _target(task: Task, topic: str) -> KafkaSource:
    """A topic that is written to, at the rate that the task says."""
    rate = {RATE_OPTION: str(task["rate"])} if "rate" in task else {}
    return KafkaSource(task["bootstrap"], (topic,), options=rate)


def _run_lake(spark: SparkSession, task: Task, observe: Observe) -> Any:
    return lake(spark, task).run(observe=observe)


def _run_dead_letters(spark: SparkSession, task: Task, observe: Observe) -> Any:
    topic, checkpoint = f"{task['topic']}-dead", f"{task['folder']}/dlq"
    rules = {"even": "CAST(CAST(value AS STRING) AS INT) % 2 = 0"}
    pipeline = DeadLetters(spark, source(task), topic, checkpoint, rules=rules)
    pipeline.target = _target(task, topic)
    return pipeline.run(observe=observe)


def _run_mirror(spark: SparkSession, task: Task, observe: Observe) -> Any:
    folder = f"{task['folder']}/mirror"
    mirror = Mirror(spark, source(task), _target(task, "*"), folder, "copy-{topic}")
    return mirror.run(observe=observe)


def _run_snapshot(spark: SparkSession, task: Task, observe: Observe) -> Any:
    return Snapshot(spark, source(task), f"{task['folder']}/snapshot").follow(observe=observe)


def _run_replay(spark: SparkSession, task: Task, observe: Observe) -> Any:
    target, state = _target(task, f"{task['topic']}-again"), f"{task['folder']}/replay"
    replay = Replay(spark, target, state, source=source(task), rate=task.get("rate"))
    return _as_one_batch(observe, replay.run)


def _run_lag(spark: SparkSession, task: Task, observe: Observe) -> Any:
    """As the command does with `--commit-group`."""
    pipeline, group = lake(spark, task), f"{task['topic']}-group"
    listener = CommitOffsetsListener(spark, pipeline.source, group, f"to-lake {pipeline.path}")
    spark.streams.addListener(listener)
    try:
        pipeline.run(observe=observe)
        return Lag(spark, pipeline.source, pipeline.checkpoint, group).commit()
    finally:
        spark.streams.removeListener(listener)
        listener.close()


def _run_audit(spark: SparkSession, task: Task, observe: Observe) -> Any:
    """Its sink is the table of reports; the topic comes after."""
    pipeline = audit(spark, task)

    def report() -> Any:
        found = pipeline.run()
        reporting.to_table(spark, found, f"{task['folder']}/report")
        return found

    found = _as_one_batch(observe, report)
    reporting.to_topic(spark, found, pipeline.source, f"{task['topic']}-report")
    return found


def _as_one_batch(observe: Observe, work: Callable[[], Any]) -> Any:
    """For a pipeline that is no stream: all that it does is batch 0."""
    batch = Batch(0, "", ())
    observe("planned", batch)
    found = work()
    observe("written", batch)
    observe("noted", batch)
    return found


RUNS: dict[str, Callable[[SparkSession, Task, Observe], Any]] = {
    "to-lake": _run_lake,
    "to-lake-parquet": _run_lake,
    "dlq": _run_dead_letters,
    "mirror": _run_mirror,
    "snapshot": _run_snapshot,
    "replay": _run_replay,
    "lag": _run_lag,
    "audit": _run_audit,
}


def main() -> None:
    task = json.loads(sys.argv[1])
    spark = kafkalite_spark.session(master="local[2]", config=SETTINGS)
    task["options"] = SLOWLY
    observe = crash_after(*task["crash"]) if task["crash"] else lambda step, batch: None
    run(spark, task, observe)


if __name__ == "__main__":
    main()
