"""Drivers and brokers that are killed: after a restart nothing is missing and nothing is twice.

All pipelines run in one driver, which is killed when each of them is at the same point of its
batch, at three points one after another; then under a broker that is killed and comes back. Those
that write to topics are killed in the middle of writing, too. In the end each runs whole, and what
it wrote is held against its topic offset by offset, as the audit does.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from kafkalite.pipelines import Audit, KafkaSource
from kafkalite.pipelines.common.checkpoint import Checkpoint
from kafkalite.pipelines.common.running import Batch
from kafkalite.pipelines.dlq import PREFIX
from kafkalite.pipelines.replay import ORIGIN
from kafkalite.testing.spark import COMMIT, MID_BATCH, SINK, assert_exactly_once
from tests.compat import brokers, spark_driver
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
from tests.compat.spark_driver import Task

__all__ = ["connector", "spark"]
pytestmark = [
    *(mark for mark in SPARK_MARKS if mark.name != "timeout"),
    pytest.mark.crash,
    pytest.mark.theirs_in_full,
    pytest.mark.timeout(1_800),
]

PARTITIONS = 4
RECORDS = 1_500  # of each partition
KEYS = 7
START_S = 600  # a driver with all pipelines, on a busy machine
ATTEMPTS, PAUSE_S = 100, 0.2
ROOT = Path(__file__).parents[2]

# What each pipeline writes records to, if that is a topic.
TARGETS = {"dlq": "{topic}-dead", "replay": "{topic}-again", "mirror": "copy-{topic}"}
# These have one batch, which is all that they do.
BATCH_JOBS = {"replay", "audit"}
CHECKPOINTS = {"dlq": "dlq", "mirror": "mirror", "snapshot": "snapshot/_checkpoint"}


@dataclass(slots=True)
class Case:
    """One pipeline over one filled topic, and what is asked of it."""

    connector: Connector
    topic: str
    task: Task

    @property
    def name(self) -> str:
        return str(self.task["pipeline"])

    @property
    def target(self) -> str:
        return TARGETS[self.name].format(topic=self.topic)

    def landed(self) -> int:
        """Records in the topic that it writes to."""
        admin = self.connector.admin()
        topics = admin.list_topics(timeout=WAIT_S).topics
        numbers = topics[self.target].partitions if self.target in topics else []
        if not numbers:
            return 0
        asked = {TopicPartition(self.target, number): OffsetSpec.latest() for number in numbers}
        return sum(end.result(WAIT_S).offset for end in admin.list_offsets(asked).values())

    def checkpoint(self) -> Checkpoint:
        folder = CHECKPOINTS.get(self.name, "lake/_checkpoint")
        return Checkpoint(self.connector.spark, f"{self.task['folder']}/{folder}")

    def finish(self) -> None:
        """Runs it once more, to the end, in this process."""
        task = {key: value for key, value in self.task.items() if key != "rate"}
        spark_driver.run(self.connector.spark, task)

    def records(self, topic: str) -> DataFrame:
        return self.connector.batch({"subscribe": topic, "includeHeaders": "true"})


def _fill(connector: Connector, topic: str) -> None:
    connector.create(topic, PARTITIONS)
    for partition in range(PARTITIONS):
        values = numbers(partition * RECORDS, (partition + 1) * RECORDS)
        rows = [(f"k{number % KEYS}", value) for number, value in enumerate(values)]
        connector.produce(topic, rows, partition)


def _case(connector: Connector, topic: str, pipeline: str, **more: Any) -> Case:
    """A pipeline over the topic, in a folder of its own, with the topics that it writes to."""
    task = {
        "pipeline": pipeline,
        "bootstrap": connector.broker.bootstrap,
        "topic": topic,
        "folder": str(connector.folder / pipeline),
        "per_batch": PARTITIONS * RECORDS // 3,
        "crash": None,
        **more,
    }
    case = Case(connector, topic, task)
    if pipeline in TARGETS and pipeline != "mirror":
        connector.create(case.target)
    if pipeline == "audit":
        connector.create(f"{topic}-report")
        spark_driver.run(connector.spark, {**task, "pipeline": "to-lake"})
        Path(task["folder"], spark_driver.UNDER_WAY).unlink()
    return case


def _start_driver(cases: list[Case]) -> subprocess.Popen[bytes]:
    """In a process group of its own, so that its JVM goes with it."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.compat.spark_driver", json.dumps([x.task for x in cases])],
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )


def _crash(cases: list[Case], batch: int, where: str) -> None:
    """Runs the driver until it dies by its own hand, and only so."""
    for case in cases:
        case.task["crash"] = [0 if case.name in BATCH_JOBS else batch, where]
    with _start_driver(cases) as driver:
        try:
            assert driver.wait(START_S) == -signal.SIGKILL, "the driver did not crash"
        finally:
            _kill_group(driver)


def _kill_group(driver: subprocess.Popen[Any]) -> None:
    try:
        os.killpg(driver.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _prove_lake(case: Case) -> None:
    connector, task = case.connector, case.task
    pipeline = spark_driver.lake(connector.spark, task)
    report = Audit(connector.spark, pipeline.source, pipeline.path, pipeline.format).run()
    assert report.faults == []
    assert report.not_yet_loaded == 0
    assert sum(each.lake for each in report.buckets) == PARTITIONS * RECORDS
    assert_exactly_once(pipeline.table().read(), case.records(case.topic))


def _prove_dead_letters(case: Case) -> None:
    """By the origin that each dead letter names."""
    said = sf.map_from_entries("headers")
    origins = case.records(case.target).select(
        said[f"{PREFIX}topic"].cast("string").alias("topic"),
        said[f"{PREFIX}partition"].cast("string").cast("int").alias("partition"),
        said[f"{PREFIX}offset"].cast("string").cast("long").alias("offset"),
        "value",
    )
    bad = case.records(case.topic).where("CAST(CAST(value AS STRING) AS INT) % 2 = 1")
    assert_exactly_once(origins, bad)
    columns = ["topic", "partition", "offset", "value"]
    found, expected = (df.select(*columns).orderBy(*columns).collect() for df in (origins, bad))
    assert found == expected


def _prove_replay(case: Case) -> None:
    records = case.records(case.target)
    place = sf.split(sf.map_from_entries("headers")[ORIGIN].cast("string"), "/")
    origins = records.select(
        place[0].alias("topic"),
        place[1].cast("int").alias("partition"),
        place[2].cast("long").alias("offset"),
    )
    assert_exactly_once(origins, case.records(case.topic))


def _prove_mirror(case: Case) -> None:
    """Nothing expired or was aborted, so each copy has the very offset of its original."""
    columns = ["partition", "offset", "key", "value", "timestamp", "headers"]
    copy, original = case.records(case.target), case.records(case.topic)
    assert_exactly_once(copy.withColumn("topic", sf.lit(case.topic)), original)
    both = [df.select(*columns).orderBy("partition", "offset").collect() for df in (copy, original)]
    assert both[0] == both[1]


def _prove_snapshot(case: Case) -> None:
    table = case.connector.spark.read.format("delta").load(f"{case.task['folder']}/snapshot")
    latest = case.records(case.topic).groupBy("partition", "key")
    expected = latest.agg(sf.max_by("value", "offset").alias("value")).collect()
    found = table.select("partition", "key", "value").collect()
    assert len(found) == PARTITIONS * KEYS
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))


def _prove_lag(case: Case) -> None:
    _prove_lake(case)
    assert _committed(case) == dict.fromkeys(range(PARTITIONS), RECORDS)


def _prove_audit(case: Case) -> None:
    """Each report that was written is whole, and an audit changes nothing."""
    _prove_lake(case)
    folder = case.task["folder"]
    reports = case.connector.spark.read.format("delta").load(f"{folder}/report")
    sums = reports.groupBy("audited_at").agg(sf.sum("broker"), sf.sum("lake")).collect()
    assert [tuple(row)[1:] for row in sums] == [(PARTITIONS * RECORDS,) * 2] * len(sums)
    assert case.records(f"{case.topic}-report").count() > 0


PROOFS: dict[str, Callable[[Case], None]] = {
    "to-lake": _prove_lake,
    "to-lake-parquet": _prove_lake,
    "dlq": _prove_dead_letters,
    "replay": _prove_replay,
    "snapshot": _prove_snapshot,
    "mirror": _prove_mirror,
    "lag": _prove_lag,
    "audit": _prove_audit,
}


def _committed(case: Case) -> dict[int, int]:
    """Offsets of the group as which `lag` commits; -1001 where nothing is committed."""
    settings = {
        "bootstrap.servers": case.connector.broker.bootstrap,
        "group.id": f"{case.topic}-group",
    }
    asked = [TopicPartition(case.topic, partition) for partition in range(PARTITIONS)]
    consumer = Consumer(settings)
    try:
        for _ in range(ATTEMPTS):
            try:
                return {each.partition: each.offset for each in consumer.committed(asked, WAIT_S)}
            except KafkaException as error:
                # The first group of a broker: its coordinator is still being made.
                if error.args[0].code() != KafkaError.NOT_COORDINATOR:
                    raise
                time.sleep(PAUSE_S)
        raise AssertionError("no coordinator")
    finally:
        consumer.close()


def _never_ahead(case: Case) -> None:
    """What `lag` tells while a job is down: perhaps less than is done, never more."""
    done = case.checkpoint().done()
    for partition, offset in _committed(case).items():
        assert offset <= done.get((case.topic, partition), 0)


def _finish_and_prove(cases: list[Case]) -> None:
    """Each pipeline for itself, so that one that fails hides no other."""
    failed: dict[str, str] = {}
    for case in cases:
        try:
            case.finish()
            PROOFS[case.name](case)
        except Exception as error:  # noqa: BLE001
            failed[case.name] = f"{type(error).__name__}: {error}"
    assert failed == {}


class Stumbled(Exception):
    """Instead of a kill: the batch is in the sink, and Spark takes it for failed."""


def _stumble(step: str, batch: Batch) -> None:
    if (step, batch.id) == ("written", 0):
        raise Stumbled


@pytest.mark.parametrize(
    "pipeline",
    ["to-lake", *(pytest.param(name, marks=pytest.mark.full) for name in ("dlq", "mirror"))],
)
def test_a_batch_that_comes_again_is_there_once(
    connector: Connector, topic: str, pipeline: str
) -> None:
    """The short one: no process dies, but its one batch is written a second time."""
    _fill(connector, topic)
    case = _case(connector, topic, pipeline, per_batch=PARTITIONS * RECORDS)
    with pytest.raises(Stumbled):
        spark_driver.run(connector.spark, case.task, _stumble)
    _finish_and_prove([case])


@pytest.mark.slow
def test_once_though_the_driver_dies_three_times(connector: Connector, topic: str) -> None:
    _fill(connector, topic)
    cases = [_case(connector, topic, pipeline) for pipeline in PROOFS]
    for batch, where in [(0, MID_BATCH), (0, SINK), (1, COMMIT)]:
        _crash(cases, batch, where)
        _never_ahead(next(case for case in cases if case.name == "lag"))
    _finish_and_prove(cases)


@pytest.mark.slow
def test_once_though_a_part_of_a_batch_has_landed(connector: Connector, topic: str) -> None:
    """The sinks are slowed down, so that the driver is killed while their topics grow."""
    _fill(connector, topic)
    cases = [_case(connector, topic, pipeline, rate=100) for pipeline in TARGETS]
    with _start_driver(cases) as driver:
        try:
            wait_for(lambda: all(case.landed() >= 50 for case in cases), timeout_s=START_S)
            assert driver.poll() is None
        finally:
            _kill_group(driver)
            driver.wait(WAIT_S)
    for case in cases:
        assert 0 < case.landed() < PARTITIONS * RECORDS, "not in the middle"
    _finish_and_prove(cases)


@pytest.mark.slow
def test_once_though_the_broker_dies(
    connector: Connector, topic: str, start_broker: StartBroker
) -> None:
    """It comes back under its address while the driver runs, which goes on or fails by itself."""
    connector.broker = start_broker()
    _fill(connector, topic)
    cases = [_case(connector, topic, pipeline, per_batch=1_000) for pipeline in PROOFS]
    for case in cases:
        if case.name == "replay":
            case.task["rate"] = 100
    with _start_driver(cases) as driver:
        try:
            wait_for(lambda: _are_in_the_middle(cases), timeout_s=START_S)
            connector.broker.kill()
            assert driver.poll() is None, "it was done before the broker died"
            broker = connector.broker
            connector.broker = brokers.start(broker.kind, broker.folder, port=broker.port)
            assert driver.wait(START_S) in (0, 1)
        finally:
            _kill_group(driver)
            driver.wait(WAIT_S)
    _finish_and_prove(cases)


def _are_in_the_middle(cases: list[Case]) -> bool:
    """All have begun, and each stream has done a batch and has some to do."""
    if not all(Path(case.task["folder"], spark_driver.UNDER_WAY).exists() for case in cases):
        return False
    streams = [case.checkpoint().last_done() for case in cases if case.name not in BATCH_JOBS]
    return all(done is not None for done in streams)


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
