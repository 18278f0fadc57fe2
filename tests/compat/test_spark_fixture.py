"""The fixture that users take: a broker in this process, and a job of theirs that is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkalite.pipelines.common.running import Batch
from kafkalite.testing.spark import (
    COMMIT,
    MID_BATCH,
    SINK,
    CrashAfter,
    SparkKafka,
    assert_exactly_once,
    crash_after,
    spark_kafka,
)
from tests.compat.spark_connector import SPARK_MARKS, numbers, spark, values
from tests.compat.spark_users_job import PER_BATCH, job

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


@pytest.fixture
def deaths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would have happened to the driver."""
    found: list[str] = []
    for name in ("_die", "_die_among_tasks"):
        monkeypatch.setattr(CrashAfter, name, lambda self, name=name: found.append(name))
    return found


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (MID_BATCH, ["_die_among_tasks", "_die"]),
        (SINK, ["_die"]),
        (COMMIT, ["_die"]),
    ],
)
def test_the_driver_dies_in_its_batch_only(
    deaths: list[str], where: str, expected: list[str]
) -> None:
    written: list[int] = []

    def write(df: Any, batch_id: int) -> None:
        written.append(batch_id)

    crashing = crash_after(1, where).wrap(write)
    crashing(None, 0)
    assert (written, deaths) == ([0], [])
    crashing(None, 1)
    assert written == [0, 1]
    assert deaths == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (MID_BATCH, {"planned": ["_die_among_tasks"], "written": ["_die"], "noted": []}),
        (SINK, {"planned": [], "written": ["_die"], "noted": []}),
        (COMMIT, {"planned": [], "written": [], "noted": ["_die"]}),
    ],
)
def test_the_driver_of_a_pipeline_dies_at_its_point(
    deaths: list[str], where: str, expected: dict[str, list[str]]
) -> None:
    observe = crash_after(1, where)
    for step, died in expected.items():
        deaths.clear()
        observe(step, Batch(0, "query", ()))
        assert deaths == []
        observe(step, Batch(1, "query", ()))
        assert deaths == died


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(900)
@pytest.mark.parametrize("where", [MID_BATCH, SINK])
def test_a_job_that_was_killed_goes_on(spark_kafka: SparkKafka, tmp_path: Path, where: str) -> None:
    """As on the page about pipelines: in a process of its own, Python and JVM."""
    _fill(spark_kafka, 3 * PER_BATCH)
    address = (spark_kafka.bootstrap_servers, "orders", str(tmp_path))
    call = [sys.executable, "-m", "tests.compat.spark_users_job", *address, "1", where]
    root = Path(__file__).parents[2]
    paths = f"{root / 'src'}{os.pathsep}{root}"
    killed = subprocess.run(call, cwd=root, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert killed.returncode == -signal.SIGKILL
    commits = {path.name for path in Path(tmp_path, "checkpoint/commits").glob("[0-9]*")}
    assert commits == {"0"}
    job(spark_kafka.spark, *address)
    table = spark_kafka.spark.read.parquet(str(tmp_path / "table"))
    assert_exactly_once(table, spark_kafka.topic("orders"))
    assert table.count() == 3 * PER_BATCH
