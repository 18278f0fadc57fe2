"""Administration by hand: each change is made, and seen to have arrived before the next.

Owns nothing. Apache Kafka answers when its controller has decided, and its broker learns of it a
moment later; whoever compares must wait for that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterClientQuotasRequest,
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeLogDirsRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    UpdateFeaturesRequest,
)
from tests.out_and_in.asking import PATIENCE_S, PAUSE_S, Asker

TIMEOUT_MS = 20_000
TOPIC_KIND, BROKER_KIND, CLIENT_METRICS_KIND, GROUP_KIND = 2, 4, 16, 32
SET, DELETE = 0, 1
COMPACTED = {
    "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "200",
    "min.compaction.lag.ms": "0", "delete.retention.ms": "600000",
}  # fmt: skip
TOPIC_SETTINGS: dict[str, dict[str, str]] = {
    "plain": {},
    "small-segments": {"segment.bytes": "1048576", "index.interval.bytes": "100"},
    "appended": {"message.timestamp.type": "LogAppendTime"},
    "packed": {"compression.type": "zstd", "min.insync.replicas": "1"},
}


@contextmanager
def closing_asker(port: int) -> Iterator[Asker]:
    asker = Asker(port)
    try:
        yield asker
    finally:
        asker.close()


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"it did not come to be: {what}"
        time.sleep(PAUSE_S)


def _metadata(asker: Asker, name: str) -> Any:
    request = MetadataRequest(
        topics=[MetadataRequest.Topic(name=name)], allow_auto_topic_creation=False
    )
    return asker.ask(request, 12).topics[0]


def topic_id(asker: Asker, name: str) -> bytes:
    return bytes(_metadata(asker, name).topic_id)


def create_topic(asker: Asker, name: str, partitions: int, settings: dict[str, str]) -> None:
    topic = CreateTopicsRequest.Topic(
        name=name, num_partitions=partitions, replication_factor=1,
        configs=[
            CreateTopicsRequest.Config(name=key, value=value) for key, value in settings.items()
        ],
    )  # fmt: skip
    answer = asker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 7).topics[0]
    assert answer.error_code == Error.NONE, answer
    _await_partitions(asker, name, partitions)


def _await_partitions(asker: Asker, name: str, count: int) -> None:
    def are_led() -> bool:
        topic = _metadata(asker, name)
        led = [one for one in topic.partitions if one.leader_id >= 0 and not one.error_code]
        return not topic.error_code and len(led) == count

    eventually(are_led, f"{count} partitions of {name}")


def delete_topic(asker: Asker, name: str) -> None:
    answer = asker.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=TIMEOUT_MS), 5)
    assert answer.responses[0].error_code == Error.NONE, answer
    gone = Error.UNKNOWN_TOPIC_OR_PARTITION
    eventually(lambda: _metadata(asker, name).error_code == gone, f"{name} is gone")


def create_partitions(asker: Asker, name: str, count: int) -> None:
    topic = CreatePartitionsRequest.Topic(name=name, count=count, assignments=None)
    answer = asker.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 3)
    assert answer.results[0].error_code == Error.NONE, answer
    _await_partitions(asker, name, count)


def _bounds(asker: Asker, name: str, index: int) -> tuple[int, int]:
    found = []
    for what in (-2, -1):
        partition = ListOffsetsRequest.Partition(partition_index=index, timestamp=what)
        topic = ListOffsetsRequest.Topic(name=name, partitions=[partition])
        request = ListOffsetsRequest(replica_id=-1, topics=[topic])
        answer = asker.patiently(
            request, 7, lambda got: int(got.topics[0].partitions[0].error_code)
        )
        found.append(answer.topics[0].partitions[0].offset)
    return found[0], found[1]


def delete_records(asker: Asker, name: str, index: int, dice: Random) -> None:
    start, end = _bounds(asker, name, index)
    partition = DeleteRecordsRequest.Partition(
        partition_index=index, offset=dice.randint(start, (start + end) // 2)
    )
    topic = DeleteRecordsRequest.Topic(name=name, partitions=[partition])
    answer = asker.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), 2)
    assert answer.topics[0].partitions[0].error_code == Error.NONE, answer


def configure(asker: Asker, topic: str, name: str, dice: Random) -> None:
    """One setting of each kind of thing that has any; some are taken back at once."""
    number = str(dice.randrange(100_000, 900_000))
    changes = [
        (TOPIC_KIND, topic, "flush.ms", number),
        (BROKER_KIND, "1", "log.cleaner.io.buffer.load.factor", f"0.{dice.randrange(5, 9)}"),
        (BROKER_KIND, "", "max.connections.per.ip", number),
        (GROUP_KIND, name, "consumer.session.timeout.ms", str(dice.randrange(46_000, 59_000))),
        (CLIENT_METRICS_KIND, name, "interval.ms", number),
    ]
    for kind, resource, key, value in changes:
        _alter(asker, kind, resource, key, SET, value)
        if dice.random() < 0.2:
            _alter(asker, kind, resource, key, DELETE, None)
    time.sleep(PAUSE_S)


def set_group(asker: Asker, name: str, key: str, value: str) -> None:
    _alter(asker, GROUP_KIND, name, key, SET, value)


def _alter(asker: Asker, kind: int, name: str, key: str, how: int, value: str | None) -> None:
    config = IncrementalAlterConfigsRequest.Config(name=key, config_operation=how, value=value)
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=kind, resource_name=name, configs=[config]
    )
    answer = asker.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0]
    assert answer.error_code == Error.NONE, answer


def set_quota(asker: Asker, user: str, dice: Random) -> None:
    for entity in (
        [("user", user)], [("user", user), ("client-id", None)], [("client-id", user)],
    ):  # fmt: skip
        entry = AlterClientQuotasRequest.Entry(
            entity=[
                AlterClientQuotasRequest.Entity(entity_type=kind, entity_name=name)
                for kind, name in entity
            ],
            ops=[
                AlterClientQuotasRequest.Op(
                    key=key, value=float(dice.randrange(1, 10**9)), remove=False
                )
                for key in ("producer_byte_rate", "consumer_byte_rate")
            ],
        )
        answer = asker.ask(AlterClientQuotasRequest(entries=[entry], validate_only=False), 1)
        assert answer.entries[0].error_code == Error.NONE, answer


def set_password(asker: Asker, user: str, dice: Random) -> None:
    for mechanism, size in ((1, 32), (2, 64)):
        upsertion = AlterUserScramCredentialsRequest.Upsertion(
            name=user, mechanism=mechanism, iterations=dice.randrange(4_096, 16_384),
            salt=dice.randbytes(24), salted_password=dice.randbytes(size),
        )  # fmt: skip
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion])
        answer = asker.ask(request, 0)
        assert {one.error_code for one in answer.results} == {Error.NONE}, answer


def allow(asker: Asker, user: str, topic: str) -> None:
    creation = CreateAclsRequest.Creation(
        resource_type=2, resource_name=topic, resource_pattern_type=3, principal=f"User:{user}",
        host="*", operation=3, permission_type=3,
    )  # fmt: skip
    answer = asker.ask(CreateAclsRequest(creations=[creation]), 3)
    assert answer.results[0].error_code == Error.NONE, answer


def move(asker: Asker, name: str, index: int, log_dir: str) -> None:
    """A partition's log into another directory, and waits until it is there."""
    wanted = AlterReplicaLogDirsRequest.Topic(name=name, partitions=[index])
    request = AlterReplicaLogDirsRequest(
        dirs=[AlterReplicaLogDirsRequest.Dir(path=log_dir, topics=[wanted])]
    )
    answer = asker.ask(request, 2)
    assert answer.results[0].partitions[0].error_code == Error.NONE, answer

    def has_moved() -> bool:
        topic = DescribeLogDirsRequest.Topic(topic=name, partitions=[index])
        results = asker.ask(DescribeLogDirsRequest(topics=[topic]), 4).results
        places = [
            (result.log_dir, one.is_future_key)
            for result in results for found in result.topics for one in found.partitions
        ]  # fmt: skip
        return places == [(log_dir, False)]

    eventually(has_moved, f"{name}-{index} in {log_dir}")


def finalized(asker: Asker) -> dict[str, int]:
    request = ApiVersionsRequest(client_software_name="o", client_software_version="1")
    return {one.name: one.max_version_level for one in asker.ask(request, 3).finalized_features}


def serves_consumer_groups(port: int) -> bool:
    with closing_asker(port) as asker:
        return finalized(asker).get("group.version", 0) > 0


def finalize(asker: Asker, levels: dict[str, int]) -> None:
    """Raises features to the newest, as `kafka-features upgrade` does."""
    for name, level in levels.items():
        if finalized(asker).get(name, 0) >= level:
            continue
        update = UpdateFeaturesRequest.FeatureUpdate(feature=name, max_version_level=level)
        answer = asker.ask(
            UpdateFeaturesRequest(timeout_ms=TIMEOUT_MS, feature_updates=[update]), 1
        )
        assert answer.error_code == Error.NONE, answer
        eventually(lambda: finalized(asker).get(name) == level, f"{name} at {level}")  # noqa: B023
