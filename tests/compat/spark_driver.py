"""A driver in a process of its own, which tests kill: pipelines, run as its JSON argument says.

`[{"pipeline": …, "bootstrap": …, "folder": …, "topic": …, "crash": [batch, where], …}, …]`: all at
once in one session. With `crash`, each waits at its point for the others, and all die together.
"""

import json
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
from kafkalite.testing.spark import MID_BATCH, STEPS, kill_among_tasks, kill_driver
from tests.compat.spark_connector import SETTINGS

# Small fetches, so that tasks take long enough to be caught in the middle.
SLOWLY = {"kafka.max.partition.fetch.bytes": "4000", "kafka.fetch.max.bytes": "4000"}
UNDER_WAY = "under-way"
MEETING_S = 300  # of all pipelines at their points, on a busy machine

Task = dict[str, Any]
Run = Callable[[Observe], Any]


def run(spark: SparkSession, task: Task, observe: Observe = lambda step, batch: None) -> Any:
    """Runs the pipeline of a task to its end; gives what it gives."""
    folder = Path(task["folder"])
    folder.mkdir(exist_ok=True)
    (folder / UNDER_WAY).touch()
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


class Together:
    """Lets each pipeline wait at its point until all are there; then the driver dies."""

    def __init__(self, spark: SparkSession, count: int, where: str) -> None:
        self._where = where
        self._barrier = threading.Barrier(count, lambda: _die(spark, where), MEETING_S)

    def observe(self, batch_id: int) -> Observe:
        def observe(step: str, batch: Batch) -> None:
            if batch.id == batch_id and STEPS[step] == self._where:
                self._barrier.wait()

        return observe

    def leave(self) -> None:
        """Nobody is to wait for one that failed."""
        self._barrier.abort()


def _die(spark: SparkSession, where: str) -> None:
    if where == MID_BATCH:
        watcher = threading.Thread(target=kill_among_tasks, args=(spark,), daemon=True)
        watcher.start()
    else:
        kill_driver(spark)


def run_all(spark: SparkSession, tasks: list[Task]) -> None:
    """Each in a thread of its own; what one raises is raised after all have ended."""
    crash = tasks[0]["crash"]
    together = Together(spark, len(tasks), crash[1]) if crash else None

    def run_one(task: Task) -> None:
        try:
            if together is None:
                run(spark, task)
            else:
                run(spark, task, together.observe(task["crash"][0]))
        except BaseException as error:
            print(f"{task['pipeline']}: {error!r}", file=sys.stderr, flush=True)
            if together is not None:
                together.leave()
            raise

    with ThreadPoolExecutor(len(tasks)) as pool:
        running = [pool.submit(run_one, {**task, "options": SLOWLY}) for task in tasks]
    for each in running:
        each.result()


def main() -> None:
    spark = kafkalite_spark.session(master="local[2]", config=SETTINGS)
    run_all(spark, json.loads(sys.argv[1]))


if __name__ == "__main__":
    main()
