"""Drivers and brokers that are killed: after a restart nothing is missing and nothing is twice.

The driver is killed at three points one after another, each time in the batch that it is at; then
it runs to the end, and the audit compares offset by offset.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from kafkalite.pipelines import Audit, KafkaSource
from kafkalite.testing.spark import COMMIT, MID_BATCH, SINK, assert_exactly_once
from tests.compat import spark_driver
from tests.compat.conftest import StartBroker
from tests.compat.spark_connector import (
    SPARK_MARKS,
    WAIT_S,
    Connector,
    connector,
    numbers,
    spark,
    wait_for,
)

__all__ = ["connector", "spark"]
pytestmark = [*SPARK_MARKS, pytest.mark.crash, pytest.mark.timeout(600)]

PARTITIONS = 4
RECORDS = 1_500  # of each partition
START_S = 180  # a driver on a busy machine
ROOT = Path(__file__).parents[2]


def _fill(connector: Connector, topic: str, keys: int = 0) -> None:
    connector.create(topic, PARTITIONS)
    for partition in range(PARTITIONS):
        rows: list[Any] = numbers(partition * RECORDS, (partition + 1) * RECORDS)
        if keys:
            rows = [(f"k{number % keys}", value) for number, value in enumerate(rows)]
        connector.produce(topic, rows, partition)


def _task(connector: Connector, topic: str, pipeline: str, **more: Any) -> dict[str, Any]:
    return {
        "pipeline": pipeline,
        "bootstrap": connector.broker.bootstrap,
        "topic": topic,
        "folder": str(connector.folder),
        "per_batch": PARTITIONS * RECORDS // 3,
        "crash": None,
        **more,
    }


def _start_driver(task: dict[str, Any]) -> subprocess.Popen[bytes]:
    """In a process group of its own, so that its JVM goes with it."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.compat.spark_driver", json.dumps(task)],
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )


def _crash(task: dict[str, Any], batch: int, where: str) -> None:
    """Runs the driver until it dies by its own hand, and only so."""
    with _start_driver({**task, "crash": [batch, where]}) as driver:
        try:
            assert driver.wait(START_S) == -signal.SIGKILL, "the driver did not crash"
        finally:
            _kill_group(driver)


def _kill_group(driver: subprocess.Popen[Any]) -> None:
    try:
        os.killpg(driver.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _crash_three_times_and_finish(connector: Connector, task: dict[str, Any]) -> Any:
    _crash(task, 0, MID_BATCH)
    _crash(task, 0, SINK)
    _crash(task, 1, COMMIT)
    pipeline = spark_driver.build(connector.spark, task, task["bootstrap"])
    spark_driver.run(pipeline)
    return pipeline


@pytest.mark.parametrize("table_format", ["delta", pytest.param("parquet", marks=pytest.mark.slow)])
def test_lake_has_every_record_once(connector: Connector, topic: str, table_format: str) -> None:
    _fill(connector, topic)
    task = _task(connector, topic, "to-lake", format=table_format)
    pipeline = _crash_three_times_and_finish(connector, task)
    report = Audit(connector.spark, pipeline.source, pipeline.path, table_format).run()
    assert report.faults == []
    assert sum(each.lake for each in report.buckets) == PARTITIONS * RECORDS
    assert_exactly_once(pipeline.table().read(), connector.batch({"subscribe": topic}))


@pytest.mark.slow
def test_mirror_copies_every_record_once(connector: Connector, topic: str) -> None:
    _fill(connector, topic)
    task = _task(connector, topic, "mirror")
    _crash_three_times_and_finish(connector, task)
    original = connector.batch({"subscribe": topic, "includeHeaders": "true"})
    copy = connector.batch({"subscribe": f"copy-{topic}", "includeHeaders": "true"})
    assert _ordered(copy) == _ordered(original)


def _ordered(df: DataFrame) -> list[tuple[Any, ...]]:
    columns = ["partition", "offset", "key", "value", "timestamp", "headers"]
    return [tuple(row) for row in df.select(*columns).orderBy("partition", "offset").collect()]


@pytest.mark.slow
def test_dead_letters_are_there_once(connector: Connector, topic: str) -> None:
    _fill(connector, topic)
    connector.create(f"{topic}-dead")
    _crash_three_times_and_finish(connector, _task(connector, topic, "dlq"))
    rows = connector.batch({"subscribe": f"{topic}-dead"}).select("value").collect()
    expected = [value for value in numbers(0, PARTITIONS * RECORDS) if int(value) % 2]
    assert sorted(row["value"].decode() for row in rows) == expected


@pytest.mark.slow
def test_snapshot_is_what_the_topic_says(connector: Connector, topic: str) -> None:
    _fill(connector, topic, keys=7)
    pipeline = _crash_three_times_and_finish(connector, _task(connector, topic, "snapshot"))
    table = connector.spark.read.format("delta").load(pipeline.path)
    latest = connector.batch({"subscribe": topic}).groupBy("partition", "key")
    expected = latest.agg(sf.max_by("value", "offset").alias("value")).collect()
    found = table.select("partition", "key", "value").collect()
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))


@pytest.mark.slow
def test_lake_has_every_record_once_though_the_broker_dies(
    connector: Connector, topic: str, start_broker: StartBroker
) -> None:
    broker = start_broker()
    connector.broker = broker
    _fill(connector, topic)
    task = _task(connector, topic, "to-lake", format="delta", trigger="continuous", per_batch=500)
    lake = Path(task["folder"], "lake")
    with _start_driver(task) as driver:
        try:
            commits = "_checkpoint/commits/[0-9]*"
            wait_for(lambda: len(list(lake.glob(commits))) >= 2, timeout_s=START_S)
            broker.kill()
        finally:
            _kill_group(driver)
            driver.wait(WAIT_S)
    connector.broker = start_broker(folder=broker.folder)
    connector.produce(topic, numbers(0, 10))
    task = _task(connector, topic, "to-lake", format="delta")
    pipeline = spark_driver.build(connector.spark, task, connector.broker.bootstrap)
    pipeline.run()
    report = Audit(connector.spark, pipeline.source, pipeline.path).run()
    assert report.faults == []
    assert sum(each.lake for each in report.buckets) == PARTITIONS * RECORDS + 10


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_command_stops_cleanly_on_a_signal(
    connector: Connector, topic: str, number: signal.Signals
) -> None:
    _fill(connector, topic)
    lake = connector.folder / "lake"
    call = [sys.executable, "-m", "kafkalite", "pipeline", "to-lake", topic, "--path", str(lake)]
    call += ["-b", connector.broker.bootstrap, "--format", "parquet", "--trigger", "continuous"]
    call += ["--option", "maxOffsetsPerTrigger=400", "--master", "local[2]"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(
        call, env=environment, start_new_session=True, stdout=subprocess.PIPE, text=True
    ) as command:
        try:
            wait_for(lambda: (lake / "_checkpoint/commits/0").exists(), timeout_s=START_S)
            command.send_signal(number)
            said, _ = command.communicate(timeout=START_S)
        finally:
            _kill_group(command)
    assert command.returncode == 0
    assert "to-lake: " in said
    # Nothing is left half done: every batch that was planned and written is committed.
    batches = {path.name.removeprefix("batch=") for path in lake.glob("batch=*")}
    commits = {path.name for path in (lake / "_checkpoint/commits").glob("[0-9]*")}
    assert batches == commits


def test_audit_names_what_is_missing_and_what_is_twice(connector: Connector, topic: str) -> None:
    """The proof above can fail: a table with a hole and a doubled range is told as such."""
    connector.create(topic)
    connector.produce(topic, numbers(0, 100))
    source = KafkaSource(connector.broker.bootstrap, (topic,))
    rows = source.batch(connector.spark)
    holed = rows.where("offset NOT BETWEEN 10 AND 19 AND offset != 42")
    twice = holed.union(rows.where("offset BETWEEN 60 AND 64"))
    path = str(connector.folder / "table")
    twice.write.format("delta").save(path)
    report = Audit(connector.spark, source, path).run()
    assert report.faults == [
        f"{topic}-0 offsets 10..19 missing (10 rows)",
        f"{topic}-0 offsets 42 missing (1 rows)",
        f"{topic}-0 offsets 60..64 duplicated (10 rows)",
    ]
    with pytest.raises(AssertionError, match=r"offsets 10\.\.19 missing"):
        assert_exactly_once(connector.spark.read.format("delta").load(path), rows)
