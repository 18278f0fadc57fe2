"""At every level of metadata.version, Apache Kafka's controller reads our records of every kind,
and writes the same snapshot of them as we do, byte for byte."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.image_records import records_of
from kafkalite.coordinators.cluster.records import (
    DELEGATION_TOKENS,
    ELIGIBLE_LEADER_REPLICAS,
    SCRAM,
    TYPES,
    decode_record,
    encode_record,
)
from kafkalite.jvm import jars, java
from kafkalite.protocol import messages
from kafkalite.protocol.messages import (
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from tests.compat.java_classes import compile_classes

SOURCE = Path(__file__).with_name("MetadataImages.java")
LEVELS = range(7, 31)
CONTROLLER_REGISTRATIONS = 15
A, B, C = (bytes([each]) * 16 for each in (0xA1, 0xB1, 0xC1))
# Apache Kafka's delta knows none of these: the reader of a log takes them apart, or nobody does.
NOT_IN_A_DELTA = {
    "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord",
    "ZkMigrationStateRecord",
}  # fmt: skip


class Controller:
    """One Java process with the image of Apache Kafka's controller."""

    def __init__(self, folder: Path) -> None:
        compile_classes([SOURCE], folder, ("reference",))
        command = java.command(
            f"{folder}:{jars.class_path('reference')}", "MetadataImages", heap="256M"
        )
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def close(self) -> None:
        self._process.communicate(timeout=30)

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._process.stderr.read()
        return answer.strip()

    def snapshot_of(self, records: list[bytes]) -> list[bytes]:
        asked = ",".join(base64.b64encode(each).decode() for each in records)
        return [base64.b64decode(each) for each in self.ask(f"image {asked}").split(",")]


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    found = Controller(tmp_path_factory.mktemp("java"))
    yield found
    found.close()


def history(level: int) -> Iterator[Any]:
    """Records of every kind that a level has, all of whose traces stay."""
    yield FeatureLevelRecord(name="metadata.version", feature_level=level)
    if level >= ELIGIBLE_LEADER_REPLICAS:
        yield FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    yield NoOpRecord()
    yield from brokers()
    yield from topics()
    yield ConfigRecord(resource_type=2, resource_name="kept", name="retention.ms", value="5")
    yield ConfigRecord(resource_type=32, resource_name="g", name="some.setting", value="5")
    user = ClientQuotaRecord.Entity(entity_type="user", entity_name=None)
    yield ClientQuotaRecord(entity=[user], key="producer_byte_rate", value=1.5, remove=False)
    yield ProducerIdsRecord(broker_id=1, broker_epoch=5, next_producer_id=3000)
    yield from security(level)
    if level >= CONTROLLER_REGISTRATIONS:
        yield RegisterControllerRecord(controller_id=9, incarnation_id=C, zk_migration_ready=False)


def brokers() -> Iterator[Any]:
    endpoint = RegisterBrokerRecord.EndPoint(
        name="PLAINTEXT", host="here", port=9092, security_protocol=0
    )
    feature = RegisterBrokerRecord.Feature(
        name="metadata.version", min_supported_version=7, max_supported_version=30
    )
    for broker_id in (1, 2, 3, 4):
        yield RegisterBrokerRecord(
            broker_id=broker_id, broker_epoch=5, incarnation_id=C, end_points=[endpoint],
            features=[feature], rack="r" if broker_id == 1 else None, fenced=broker_id != 2,
            log_dirs=[A, B], cordoned_log_dirs=[B],
        )  # fmt: skip
    yield FenceBrokerRecord(id=2, epoch=5)
    yield UnfenceBrokerRecord(id=3, epoch=5)
    yield UnregisterBrokerRecord(broker_id=4, broker_epoch=5)
    changes: list[dict[str, Any]] = [
        {"fenced": -1}, {"in_controlled_shutdown": 1}, {"log_dirs": [A]}, {"cordoned_log_dirs": []}
    ]  # fmt: skip
    for fields in changes:
        yield BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, **fields)


def topics() -> Iterator[Any]:
    for topic_id, name in ((A, "kept"), (B, "gone"), (C, "cleared")):
        yield TopicRecord(name=name, topic_id=topic_id)
        for index in (0, 1):
            yield PartitionRecord(
                partition_id=index, topic_id=topic_id, replicas=[1, 2, 3], isr=[1, 2], leader=1,
                leader_epoch=3, partition_epoch=4, directories=[A, B, A],
                eligible_leader_replicas=[3], last_known_elr=[2], adding_replicas=[3],
                removing_replicas=[2],
            )  # fmt: skip
    yield PartitionChangeRecord(partition_id=1, topic_id=A, leader=2, isr=[2])
    yield PartitionChangeRecord(
        partition_id=1, topic_id=A, replicas=[2, 3], directories=[B, B], removing_replicas=[],
        adding_replicas=[], leader_recovery_state=1, eligible_leader_replicas=[1, 3],
        last_known_elr=[1],
    )  # fmt: skip
    yield ClearElrRecord(topic_name="cleared")
    yield RemoveTopicRecord(topic_id=B)


def security(level: int) -> Iterator[Any]:
    for acl_id in (A, B):
        yield AccessControlEntryRecord(
            id=acl_id, resource_type=2, resource_name="t", pattern_type=3, principal="User:a",
            host="*", operation=3, permission_type=3,
        )  # fmt: skip
    yield RemoveAccessControlEntryRecord(id=B)
    # Mechanisms of their own: a delta of Apache Kafka that removes a mechanism's first user loses
    # those that it adds to it.
    for mechanism, name in enumerate(("alice", "bob"), 1):
        if level >= SCRAM:
            yield UserScramCredentialRecord(
                name=name, mechanism=mechanism, salt=b"s", stored_key=b"k", server_key=b"v",
                iterations=4096,
            )  # fmt: skip
        if level >= DELEGATION_TOKENS:
            yield DelegationTokenRecord(
                owner="User:a", requester="User:b", renewers=["User:c"], issue_timestamp=1,
                max_timestamp=3, expiration_timestamp=2, token_id=name,
            )  # fmt: skip
    if level >= SCRAM:
        yield RemoveUserScramCredentialRecord(name="bob", mechanism=2)
    if level >= DELEGATION_TOKENS:
        yield RemoveDelegationTokenRecord(token_id="bob")


def test_the_history_has_every_kind() -> None:
    kinds = {type(each).__name__ for each in history(30)}
    assert kinds == {name for name, _ in TYPES.values()} - NOT_IN_A_DELTA


@pytest.mark.parametrize("level", LEVELS)
def test_the_snapshot_of_every_level_is_apache_kafkas(level: int, controller: Controller) -> None:
    written = [encode_record(each, level) for each in history(level)]
    image = Image()
    for value in written:
        image.apply(decode_record(value), Changes())
    ours = [encode_record(each, level) for each in records_of(image)]
    theirs = controller.snapshot_of(written)
    assert theirs[0] == ours[0]  # the level, by which the others are read
    assert _shown(ours) == _shown(theirs)


def _shown(values: list[bytes]) -> list[tuple[str, bytes]]:
    """In one order, for that of a map is nobody's."""
    return sorted((repr(decode_record(value)), value) for value in values)


def test_the_versions_of_every_level_are_apache_kafkas(controller: Controller) -> None:
    found = [tuple(map(int, row.split())) for row in controller.ask("levels").split(",")]
    assert [level for level, *_ in found] == list(LEVELS)
    names = ("RegisterBrokerRecord", "PartitionRecord", "PartitionChangeRecord")
    for level, *versions in found:
        ours = [encode_record(messages.message_class(name)(), level)[2] for name in names]
        assert ours == versions, level
