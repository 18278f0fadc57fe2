"""Pipelines over topics of a test, with their tables and checkpoints in its folder."""

import json
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from kafkalite.pipelines import DeadLetters, KafkaSource, Snapshot, ToLake
from kafkalite.pipelines.common.decode import Decoding
from tests.compat.spark_connector import WAIT_S, Connector, numbers

BASE_MS = 1_767_225_600_000  # the first of January 2026


def source_of(connector: Connector, *topics: str, **options: str) -> KafkaSource:
    return KafkaSource(connector.broker.bootstrap, topics, options=options)


def lake_of(connector: Connector, *topics: str, **more: Any) -> ToLake:
    source = source_of(connector, *topics, **more.pop("options", {}))
    return ToLake(connector.spark, source, str(connector.folder / "lake"), **more)


def dead_letters_of(connector: Connector, topic: str, **more: Any) -> DeadLetters:
    """JSON with a positive `n` is good, unless told otherwise."""
    usual = {"decoding": Decoding("json", "n INT"), "rules": {"positive": "data.n > 0"}}
    settings: dict[str, Any] = usual | more
    return DeadLetters(
        connector.spark,
        source_of(connector, topic),
        f"{topic}-dead",
        str(connector.folder / "dlq"),
        **settings,
    )


def snapshot_of(connector: Connector, topic: str, **more: Any) -> Snapshot:
    source = source_of(connector, topic, **more.pop("options", {}))
    return Snapshot(connector.spark, source, str(connector.folder / "snapshot"), **more)


def fill_timed(connector: Connector, topic: str, count: int) -> None:
    """Records a second apart, with keys and a header."""
    connector.create(topic)
    records = [
        {
            "key": f"k{number}",
            "value": value,
            "timestamp": BASE_MS + number * 1000,
            "headers": [("h", str(number).encode())],
        }
        for number, value in enumerate(numbers(0, count))
    ]
    connector.produce(topic, records)


def fill_changelog(connector: Connector, topic: str) -> None:
    connector.create(topic)
    connector.produce(topic, [("a", "1"), ("b", "2"), ("a", "3"), ("b", None), ("c", "4")])


def lost_ranges(pipeline: Any) -> list[tuple[int, int | None, str]]:
    """What a pipeline wrote down as lost."""
    from kafkalite.pipelines.common.files import Folder

    text = Folder(pipeline.spark, pipeline.checkpoint).read("kafkalite/lost-ranges.json")
    return [(each["start"], each["end"], each["reason"]) for each in json.loads(text or "[]")]


def commit(connector: Connector, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": connector.broker.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(connector: Connector, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": connector.broker.bootstrap, "group.id": group})
    try:
        return int(consumer.committed([TopicPartition(topic, 0)], WAIT_S)[0].offset)
    finally:
        consumer.close()
