"""kafka-reassign-partitions with --throttle: the move keeps to the rate, and --verify ends it."""

from __future__ import annotations

import json
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat.java_tools import JavaTools
from tests.compat.transcript import class_of

RECORDS, SIZE = 30, 100_000
RATE = 500_000
# Little at a time, so that little comes before the rate is seen to be exceeded.
SETTINGS = {"replica.fetch.max.bytes": SIZE, "replica.fetch.response.max.bytes": 2 * SIZE}


def throttles(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, str]:
    """What is set of them, without what is empty or a default."""
    resource = ConfigResource(kind, name)
    entries = admin.describe_configs([resource])[resource].result(20)
    return {
        key: entry.value
        for key, entry in entries.items()
        if "replication.throttled" in key and entry.value and not entry.is_default
    }


def test_a_throttled_move_keeps_to_its_rate(tools: JavaTools, tmp_path: Path) -> None:
    with EmbeddedKafka(brokers=3, settings=SETTINGS) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        admin.create_topics([NewTopic("t", 2, replica_assignment=[[1], [1]])])["t"].result(20)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(RECORDS):
            producer.produce("t", b"x" * SIZE, partition=number % 2)
        assert producer.flush(20) == 0
        plan = tmp_path / "plan.json"
        moves = [{"topic": "t", "partition": index, "replicas": [2 + index]} for index in (0, 1)]
        plan.write_text(json.dumps({"version": 1, "partitions": moves}))

        def reassign(*words: str) -> str:
            return tools.run(
                class_of("kafka-reassign-partitions"), "--bootstrap-server",
                kafka.bootstrap_servers, "--reassignment-json-file", str(plan), *words,
            )  # fmt: skip

        assert "Successfully started" in reassign("--execute", "--throttle", str(RATE))
        begun = time.monotonic()
        assert throttles(admin, ResourceType.BROKER, "1")["leader.replication.throttled.rate"]
        assert throttles(admin, ResourceType.TOPIC, "t") == {
            "leader.replication.throttled.replicas": "0:1,1:1",
            "follower.replication.throttled.replicas": "0:2,1:3",
        }
        while "still in progress" in (said := reassign("--verify")):
            assert time.monotonic() - begun < 60, said
            time.sleep(0.2)
        took = time.monotonic() - begun
        assert said.count("is completed") == 2, said
        assert took > 0.7 * RECORDS * SIZE / RATE, f"it took {took:.1f} s"
        assert throttles(admin, ResourceType.TOPIC, "t") == {}
        for broker in ("1", "2", "3"):
            assert throttles(admin, ResourceType.BROKER, broker) == {}
