"""For tests of your own Spark jobs: a broker and a session, a driver that dies, and the proof.

Owns the fixture `spark_kafka`, `crash_after` and `assert_exactly_once`. Put
`pytest_plugins = ["kafkalite.testing.spark"]` into your conftest.py.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MID_BATCH, SINK, COMMIT = "mid-batch", "sink", "commit"
# Steps of a batch as a pipeline tells of them, after which the driver dies.
STEPS = {"planned": MID_BATCH, "written": SINK, "noted": COMMIT}

_POLL_S = 0.005
_MID_BATCH_TIMEOUT_S = 60


@dataclass(slots=True)
class SparkKafka:
    """A broker, and a session that reads and writes it."""

    spark: "SparkSession"
    bootstrap_servers: str

    def topic(self, *names: str, **options: str) -> "DataFrame":
        """What is in these topics now."""
        reader = self.spark.read.format("kafka").options(**self._options(options))
        return reader.option("subscribe", ",".join(names)).load()

    def stream(self, *names: str, **options: str) -> "DataFrame":
        reader = self.spark.readStream.format("kafka").options(**self._options(options))
        reader = reader.option("startingOffsets", options.get("startingOffsets", "earliest"))
        return reader.option("subscribe", ",".join(names)).load()

    def write(self, df: "DataFrame", topic: str, **options: str) -> None:
        writer = df.write.format("kafka").options(**self._options(options))
        writer.option("topic", topic).save()

    def _options(self, options: dict[str, str]) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self.bootstrap_servers, **options}


@pytest.fixture(scope="session")
def spark_kafka_session() -> "SparkSession":
    """The one local session of a test run; it ends with the process."""
    from kafkalite import spark

    config = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    return spark.session(master="local[2]", app="spark_kafka", config=config)


@pytest.fixture
def spark_kafka(spark_kafka_session: "SparkSession") -> Iterator[SparkKafka]:
    """A broker of the test's own, in this process and in memory, and the session of the run."""
    from kafkalite.testing.embedded import EmbeddedKafka

    with EmbeddedKafka() as broker:
        yield SparkKafka(spark_kafka_session, broker.bootstrap_servers)
        for query in spark_kafka_session.streams.active:
            query.stop()


@dataclass(slots=True)
class CrashAfter:
    """Ends the driver, Python and JVM, as `kill -9` would, at one point of one batch.

    mid-batch: some tasks of the batch are done and others are not (a batch that is too quick to be
    caught at that dies after the sink); sink: the sink has the batch, nothing else knows; commit:
    all is done but Spark's own commit of the batch.
    """

    batch: int
    where: str

    def __post_init__(self) -> None:
        if self.where not in STEPS.values():
            raise ValueError(f"no point {self.where!r}; there are {', '.join(STEPS.values())}")

    def __call__(self, step: str, batch: Any) -> None:
        """As the `observe` of a pipeline."""
        if batch.id != self.batch:
            return
        if (step, self.where) == ("planned", MID_BATCH):
            self._die_among_tasks()
        elif STEPS[step] == self.where or (step, self.where) == ("written", MID_BATCH):
            self._die()

    def wrap(self, write: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
        """Around a function for `foreachBatch`; sink and commit are one point there."""

        def crashing(df: Any, batch_id: int) -> None:
            if batch_id == self.batch and self.where == MID_BATCH:
                self._die_among_tasks()
            write(df, batch_id)
            if batch_id == self.batch:
                self._die()

        return crashing

    def _die(self) -> None:
        kill_driver(_session())

    def _die_among_tasks(self) -> None:
        """Watches from beside; a batch that is through before any stage was caught dies then."""
        watcher = threading.Thread(target=kill_among_tasks, args=(_session(),), daemon=True)
        watcher.start()


def _session() -> "SparkSession":
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    assert spark is not None, "crash_after ends a driver that has a session"
    return spark


def crash_after(batch: int, where: str) -> CrashAfter:
    """For a driver in a process of its own; see `CrashAfter`."""
    return CrashAfter(batch, where)


def kill_driver(spark: "SparkSession") -> None:
    """No shutdown hook, no flush: what `kill -9` of driver and JVM does."""
    gateway: Any = spark.sparkContext._gateway
    os.kill(gateway.proc.pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def kill_among_tasks(spark: "SparkSession") -> None:
    """Waits for a stage of which a part is done."""
    tracker: Any = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + _MID_BATCH_TIMEOUT_S
    while time.monotonic() < deadline:
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info and 0 < info.numCompletedTasks < info.numTasks:
                kill_driver(spark)
        time.sleep(_POLL_S)


def assert_exactly_once(table: "DataFrame", topic: "DataFrame") -> None:
    """Every record of the topic is in the table once; otherwise the offset ranges are named.

    Both have the columns topic, partition and offset, as Spark's Kafka source gives them.
    """
    from kafkalite.pipelines.audit import Finding, differences

    wrong = [Finding(**row.asDict()) for row in differences(topic, table).collect()]
    assert not wrong, "not exactly once:\n" + "\n".join(f"  {each}" for each in wrong)
