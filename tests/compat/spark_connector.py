"""Fixtures of the Spark tests: one small session for all, and topics filled by a plain client.

The session belongs to the worker process; its tests all run in the worker of the `spark` group.
"""

import functools
import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyspark.sql import DataFrame, Row, SparkSession

from kafkalite import spark as kafkalite_spark
from tests.compat.brokers import Broker

# Marks of every module that takes the session.
SPARK_MARKS = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(300),
]
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.log.level": "OFF",
}
WAIT_S = 60

_names = itertools.count()

Record = tuple[bytes | None, bytes | None]


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One session for the whole worker; it ends with the process."""
    session = kafkalite_spark.session(master="local[2]", app="tests", config=SETTINGS)
    session.sparkContext.setLogLevel("OFF")
    return session


@functools.cache
def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


@dataclass(slots=True)
class Connector:
    """Spark and a broker, and what tests do with both."""

    spark: SparkSession
    broker: Broker
    folder: Path

    def create(
        self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        # Records of long ago are not to expire while a test looks at them.
        settings = {"retention.ms": "-1", **(config or {})}
        new = NewTopic(topic, partitions, 1, config=settings)
        self.admin().create_topics([new])[topic].result(WAIT_S)
        return topic

    def add_partitions(self, topic: str, count: int) -> None:
        self.admin().create_partitions([NewPartitions(topic, count)])[topic].result(WAIT_S)

    def delete(self, topic: str) -> None:
        self.admin().delete_topics([topic])[topic].result(WAIT_S)

    def admin(self) -> AdminClient:
        # Kept, because dropping a client cancels what it was asked.
        return _admin(self.broker.bootstrap)

    def produce(
        self, topic: str, values: Sequence[Any], partition: int = 0, **settings: Any
    ) -> None:
        """Values as text; a tuple is key and value, a dict goes to `produce` as it is."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, **settings})
        for value in values:
            producer.produce(topic, partition=partition, **_as_record(value))
        assert producer.flush(WAIT_S) == 0

    def transaction(self, topic: str, values: Sequence[Any], ending: str, name: str) -> Producer:
        """Values in one transaction that is committed, aborted or left open."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "transactional.id": name})
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, partition=0, **_as_record(value))
        producer.flush(WAIT_S)
        if ending == "commit":
            producer.commit_transaction(WAIT_S)
        if ending == "abort":
            producer.abort_transaction(WAIT_S)
        return producer

    def options(self, options: Mapping[str, Any]) -> dict[str, str]:
        given = {name: str(value) for name, value in options.items()}
        return {"kafka.bootstrap.servers": self.broker.bootstrap, **given}

    def batch(self, options: Mapping[str, Any]) -> DataFrame:
        return self.spark.read.format("kafka").options(**self.options(options)).load()

    def stream(self, options: Mapping[str, Any]) -> DataFrame:
        return self.spark.readStream.format("kafka").options(**self.options(options)).load()

    def read(self, how: str, options: Mapping[str, Any]) -> list[Row]:
        """All rows by a batch read, or by a stream that runs once over what is there."""
        if how == "batch":
            return self.batch(options).collect()
        started = {name.lower() for name in options}
        start = {} if any(name.startswith("starting") for name in started) else _EARLIEST
        return self.run(self.stream({**start, **options}))

    def run(self, df: DataFrame, checkpoint: Path | None = None) -> list[Row]:
        """The rows of an available-now query."""
        name = f"q{next(_names)}"
        folder = checkpoint or self.checkpoint()
        rows: list[Row] = []
        writer = df.writeStream.queryName(name).option("checkpointLocation", str(folder))
        writer = writer.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        query = writer.trigger(availableNow=True).start()
        try:
            assert query.awaitTermination(WAIT_S)
        finally:
            query.stop()
        return rows

    def checkpoint(self) -> Path:
        return self.folder / f"checkpoint-{next(_names)}"

    def write(self, df: DataFrame, **options: Any) -> None:
        df.write.format("kafka").options(**self.options(options)).save()


_EARLIEST = {"startingOffsets": "earliest"}


@pytest.fixture
def connector(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Connector]:
    yield Connector(spark, broker, tmp_path)
    for query in spark.streams.active:
        query.stop()
    shutil.rmtree(tmp_path, ignore_errors=True)


def values(rows: Sequence[Row]) -> list[str]:
    """The values of rows as sorted text."""
    return sorted(row["value"].decode() for row in rows)


def numbers(start: int, end: int) -> list[str]:
    """Values that sort as they count."""
    return [f"{number:05d}" for number in range(start, end)]


def wait_for(condition: Callable[[], bool], query: Any = None, timeout_s: float = WAIT_S) -> None:
    """Waits until it holds, as long as the query lives."""
    import time

    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        if query is not None and query.exception() is not None:
            raise query.exception()
        time.sleep(0.05)


def _as_record(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if isinstance(value, tuple):
        return {"key": value[0], "value": value[1]}
    return {"value": value}
