"""MirrorMaker 2 between a kafkalite and an Apache Kafka: one process that mirrors both ways.

Owns its settings, its process, which may be killed and started again, and the two brokers, which
are its own, because it takes every topic that it finds.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE, Broker
from tests.compat.connect import start_jvm
from tests.compat.waiting import until

PATIENCE_S = 120
WAIT_S = 20
MIRROR_MAKER = "org.apache.kafka.connect.mirror.MirrorMaker"
ALIASES = {KAFKALITE: "ours", APACHE_KAFKA: "theirs"}

# Looks for what is new each second, and passes each record once, over kills too.
SETTINGS = {
    "clusters": "ours, theirs",
    "ours->theirs.enabled": "true",
    "theirs->ours.enabled": "true",
    "topics": ".*",
    "groups": ".*",
    "replication.factor": "1",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "sync.topic.configs.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "emit.heartbeats.interval.seconds": "1",
    "offset.lag.max": "0",
    **{
        f"{what}.replication.factor": "1"
        for what in (
            "checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", "config.storage",
            "offset.storage", "status.storage",
        )
    },
    "dedicated.mode.enable.internal.rest": "true",
    "listeners": "http://127.0.0.1:0",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "0",
}
# Of the workers, and these are named by the broker that they write to.
WORKERS = {"exactly.once.source.support": "enabled", "plugin.discovery": "service_load"}


class MirrorMaker:
    """Both brokers, and what mirrors each to the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.brokers = {kind: brokers.start(kind, folder / kind) for kind in ALIASES}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        home = self.folder / "mirror-maker"
        home.mkdir(exist_ok=True)
        settings = dict(SETTINGS)
        for kind, alias in ALIASES.items():
            own = {**WORKERS, "bootstrap.servers": self.brokers[kind].bootstrap}
            settings |= {f"{alias}.{name}": value for name, value in own.items()}
        lines = (f"{name}={value}\n" for name, value in settings.items())
        file = home / "mirror.properties"
        file.write_text("".join(lines))
        self._process = start_jvm(home, MIRROR_MAKER, str(file))

    def kill(self) -> None:
        brokers.end(self.folder / "mirror-maker", signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        for broker in self.brokers.values():
            broker.stop()

    def until(self, condition: Callable[[], bool]) -> None:
        assert self._process is not None
        until(condition, self._process, self.folder / "mirror-maker" / "log", PATIENCE_S)


@dataclass(frozen=True, slots=True)
class Record:
    """What must come through unchanged; the offset is the broker's own."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


class Direction:
    """From one broker to the other."""

    def __init__(self, mirror: MirrorMaker, source: str) -> None:
        [target] = set(ALIASES) - {source}
        self.mirror = mirror
        self.alias = ALIASES[source]
        self.source: Broker = mirror.brokers[source]
        self.target: Broker = mirror.brokers[target]

    def mirrored(self, name: str) -> str:
        """A topic's name at the target."""
        return f"{self.alias}.{name}"

    def create(self, name: str, partitions: int, config: dict[str, str] | None = None) -> None:
        new = NewTopic(name, partitions, 1, config=config or {})
        admin(self.source).create_topics([new])[name].result(WAIT_S)

    def read(self, broker: Broker, name: str, count: int) -> dict[int, list[Record]]:
        """At least so many committed records of a topic, and what comes with them, by partition."""
        found: dict[int, list[Record]] = {}

        def is_read() -> bool:
            for index in range(partitions_of(broker, name)):
                found[index] = self.read_from(broker, TopicPartition(name, index, 0))
            return sum(map(len, found.values())) >= count

        self.mirror.until(is_read)
        return found

    def read_from(self, broker: Broker, place: TopicPartition) -> list[Record]:
        """The committed records of a partition from there to its end."""
        consumer = Consumer({
            "bootstrap.servers": broker.bootstrap, "group.id": "none",
            "isolation.level": "read_committed", "enable.partition.eof": True,
        })
        consumer.assign([place])
        found: list[Record] = []
        ended: list[object] = []

        def is_ended() -> bool:
            for message in consumer.consume(1_000, 0.2):
                if message.error() is None:
                    found.append(record_of(message))
                else:
                    ended.append(message)
            return bool(ended)

        self.mirror.until(is_ended)
        consumer.close()
        return found


@cache  # a client that is dropped drops what it was asked
def admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def partitions_of(broker: Broker, name: str) -> int:
    """How many a topic has; none while it is not there."""
    found = admin(broker).list_topics(timeout=WAIT_S).topics.get(name)
    return len(found.partitions) if found is not None else 0


def settings_of(broker: Broker, name: str) -> dict[str, str]:
    [told] = admin(broker).describe_configs(
        [ConfigResource(ConfigResource.Type.TOPIC, name)]
    ).values()
    return {key: entry.value for key, entry in told.result(WAIT_S).items()}


def record_of(message: confluent_kafka.Message) -> Record:
    return Record(
        message.partition(), message.key(), message.value(), tuple(message.headers() or ()),
        message.timestamp()[1],
    )


def write(broker: Broker, topic: str, records: list[Record], codec: str = "none") -> None:
    producer = Producer({
        "bootstrap.servers": broker.bootstrap, "enable.idempotence": True,
        "compression.type": codec,
    })
    for record in records:
        producer.produce(
            topic, record.value, record.key, record.partition, timestamp=record.timestamp,
            headers=list(record.headers),
        )
    assert producer.flush(WAIT_S) == 0
