"""MirrorMaker 2: from kafkalite to Apache Kafka and from Apache Kafka to kafkalite, at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
)

from tests.compat.brokers import APACHE_KAFKA, KAFKALITE, Broker
from tests.compat.mirror_maker import (
    WAIT_S,
    Direction,
    MirrorMaker,
    Record,
    admin,
    partitions_of,
    settings_of,
    write,
)

# Midnight: a broker may delete what is older than a week.
START_MS = int(time.time()) // 86_400 * 86_400_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WAYS = {
    f"{KAFKALITE}-to-{APACHE_KAFKA}": KAFKALITE, f"{APACHE_KAFKA}-to-{KAFKALITE}": APACHE_KAFKA
}

# One worker runs them, with one process that mirrors.
pytestmark = [
    pytest.mark.slow, pytest.mark.xdist_group("mirror-maker"), pytest.mark.timeout(600)
]


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MirrorMaker]:
    mirror = MirrorMaker(tmp_path_factory.mktemp("mirror"))
    try:
        mirror.start()
        yield mirror
    finally:
        mirror.close()


@pytest.fixture(params=WAYS)
def way(mirror: MirrorMaker, request: pytest.FixtureRequest) -> Direction:
    return Direction(mirror, WAYS[request.param])


def numbered(first: int, count: int, partitions: int = 2) -> list[Record]:
    """Plain records with numbers for values, one partition after the other."""
    return [
        Record(number % partitions, None, b"%d" % number, (), START_MS + number)
        for number in range(first, first + count)
    ]


def by_partition(records: list[Record], partitions: int = 2) -> dict[int, list[Record]]:
    return {
        index: [each for each in records if each.partition == index]
        for index in range(partitions)
    }


def odd_records(codec_number: int) -> list[Record]:
    """With keys, headers and times of all kinds."""
    headers: tuple[tuple[str, bytes | None], ...] = (
        ("name", b"value"), ("name", b"again"), ("empty", b""), ("none", None), ("ключ", b"\xff"),
    )
    first_ms = START_MS + 1_000 * codec_number
    return [
        Record(0, b"key", b"value", headers, first_ms),
        Record(1, None, b"no key", (), first_ms + 7),
        Record(0, b"tombstone", None, (("why", b"gone"),), first_ms + 1),
        Record(1, b"", b"", (), first_ms - 500),
        Record(0, b"large", bytes(range(256)) * 2_000, (), first_ms + 2),
    ]


def test_records_come_unchanged(way: Direction, topic: str) -> None:
    way.create(topic, 2)
    expected: list[Record] = []
    for number, codec in enumerate(CODECS):
        records = odd_records(number)
        write(way.source, topic, records, codec)
        expected += records
    name = way.mirrored(topic)
    way.mirror.until(lambda: partitions_of(way.target, name) == 2)
    assert way.read(way.target, name, len(expected)) == by_partition(expected)


def alter(broker: Broker, topic: str, **config: str) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(
        ConfigResource.Type.TOPIC, topic, incremental_configs=entries
    )
    admin(broker).incremental_alter_configs([resource])[resource].result(WAIT_S)


def test_settings_and_partitions_follow(way: Direction, topic: str) -> None:
    way.create(topic, 2, {"retention.ms": "7654321", "cleanup.policy": "compact,delete"})
    name = way.mirrored(topic)
    way.mirror.until(lambda: partitions_of(way.target, name) == 2)

    def has(**expected: str) -> bool:
        told = settings_of(way.target, name)
        return all(told[key.replace("_", ".")] == value for key, value in expected.items())

    way.mirror.until(lambda: has(retention_ms="7654321", cleanup_policy="compact,delete"))
    alter(way.source, topic, retention_ms="1234567", max_message_bytes="54321")
    way.mirror.until(lambda: has(retention_ms="1234567", max_message_bytes="54321"))
    new = admin(way.source).create_partitions([NewPartitions(topic, 4)])
    new[topic].result(WAIT_S)
    way.mirror.until(lambda: partitions_of(way.target, name) == 4)


def member(broker: Broker, group: str) -> Consumer:
    return Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False,
        "isolation.level": "read_committed", "auto.offset.reset": "error",
    })


def commit(broker: Broker, group: str, topic: str, offsets: list[int]) -> None:
    consumer = member(broker, group)
    places = [TopicPartition(topic, index, offset) for index, offset in enumerate(offsets)]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def committed(broker: Broker, group: str, topic: str, partitions: int = 2) -> list[int]:
    consumer = member(broker, group)
    places = [TopicPartition(topic, index) for index in range(partitions)]
    found = [each.offset for each in consumer.committed(places, WAIT_S)]
    consumer.close()
    return found


def rest_of(way: Direction, group: str, topic: str, index: int) -> list[int] | None:
    """The numbers that a group has yet to read in a partition of the target, if it is known there.
    """
    offset = committed(way.target, group, topic)[index]
    if offset < 0:
        return None
    place = TopicPartition(topic, index, offset)
    return [int(each.value or b"") for each in way.read_from(way.target, place)]


def test_groups_go_on_at_the_other_broker(
    way: Direction, topic: str, unique: Callable[[str], str]
) -> None:
    """Who had read all has nothing left to read there; who had not is there or before."""
    group, name = unique("group"), way.mirrored(topic)
    way.create(topic, 2)
    for first, total in ((0, 50), (50, 250)):
        write(way.source, topic, numbered(first, total - first))
        way.mirror.until(lambda: partitions_of(way.target, name) == 2)
        way.read(way.target, name, total)
        commit(way.source, group, topic, [total // 2] * 2)
        for index in (0, 1):
            way.mirror.until(partial(has_read_all, way, group, name, index))
    write(way.source, topic, numbered(250, 100))
    commit(way.source, group, topic, [130, 140])
    way.read(way.target, name, 350)
    for index, at_most in ((0, 260), (1, 281)):
        rest = rest_of(way, group, name, index)
        assert rest is not None
        assert 250 <= rest[0] <= at_most
        assert rest == list(range(rest[0], 350, 2))


def has_read_all(way: Direction, group: str, topic: str, index: int) -> bool:
    return rest_of(way, group, topic, index) == []


def test_heartbeats_come_through(way: Direction) -> None:
    name = way.mirrored("heartbeats")
    way.mirror.until(lambda: partitions_of(way.target, name) > 0)
    before = sum(map(len, way.read(way.target, name, 1).values()))
    way.read(way.target, name, before + 1)


def test_nothing_is_lost_or_doubled_over_kills(way: Direction, topic: str) -> None:
    way.create(topic, 2)
    name = way.mirrored(topic)
    total = 0
    for _ in range(3):
        write(way.source, topic, numbered(total, 3_000), "lz4")
        total += 3_000
        way.mirror.until(lambda: partitions_of(way.target, name) == 2)
        way.read(way.target, name, total - 2_500)
        way.mirror.kill()
        write(way.source, topic, numbered(total, 500))
        total += 500
        way.mirror.start()
    assert way.read(way.target, name, total) == by_partition(numbered(0, total))
