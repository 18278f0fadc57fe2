"""Administration, a request at a time: codes and sentences that stock clients hide or never meet.

Each table is asked of both brokers, so that what kafkalite says is what Apache Kafka 4.3.1 says.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    AlterUserScramCredentialsRequest,
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    DescribeTopicPartitionsRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    ListConfigResourcesRequest,
    UpdateFeaturesRequest,
)
from tests.compat.admin_peer import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    LOGGER,
    SET,
    SUBTRACT,
    TOPIC,
    Admin,
)
from tests.compat.brokers import Broker
from tests.compat.waiting import eventually


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with closing(Admin(broker)) as admin:
        yield admin


# --- topics ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"partitions": 0}, Error.INVALID_PARTITIONS, "Number of partitions was set to an invalid"),
        ({"factor": 0}, Error.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than"),
        ({"factor": 2}, Error.INVALID_REPLICATION_FACTOR, "Unable to replicate the partition"),
        ({"settings": {"nope": "1"}}, Error.INVALID_CONFIG, "Unknown topic config name: nope"),
        (
            {"settings": {"retention.ms": "x"}},
            Error.INVALID_CONFIG,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (
            {"settings": {"retention.ms": "-2"}},
            Error.INVALID_CONFIG,
            "Invalid value -2 for configuration retention.ms: Value must be at least -1",
        ),
        (
            {"settings": {"cleanup.policy": "shred"}},
            Error.INVALID_CONFIG,
            "Invalid value shred for configuration cleanup.policy: String must be one of: compact,",
        ),
        (
            {"settings": {"preallocate": "maybe"}},
            Error.INVALID_CONFIG,
            "Expected value to be either true or false",
        ),
        (
            {"settings": {"compression.gzip.level": "0"}},
            Error.INVALID_CONFIG,
            "Value must be between 1 and 9 or equal to -1",
        ),
        (
            {"settings": {"leader.replication.throttled.replicas": "x"}},
            Error.INVALID_CONFIG,
            "Invalid value [x] for configuration leader.replication.throttled.replicas",
        ),
        (
            {"settings": {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}},
            Error.INVALID_CONFIG,
            "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (8)",
        ),
        (
            {"settings": {"remote.storage.enable": "true"}},
            Error.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker",
        ),
        (
            {"settings": {"retention.ms": None}},
            Error.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            {"partitions": 2, "factor": -1, "assignments": [(0, [1])]},
            Error.INVALID_REQUEST,
            "numPartitions was not set to -1",
        ),
        (
            {"partitions": -1, "factor": -1, "assignments": [(0, [7])]},
            Error.INVALID_REPLICA_ASSIGNMENT,
            "includes broker 7, but no such broker is registered.",
        ),
        (
            {"partitions": -1, "factor": -1, "assignments": [(0, [1, 1])]},
            Error.INVALID_REPLICA_ASSIGNMENT,
            "includes the broker 1 more than once.",
        ),
        (
            {"partitions": -1, "factor": -1, "assignments": [(0, [1]), (2, [1])]},
            Error.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
    ],
)
def test_topics_that_cannot_be(admin, topic, options, code, message) -> None:
    answer = admin.create(topic, **options)
    assert Error(answer.error_code) == code
    assert message in answer.error_message
    assert not admin.knows(topic)


def test_names_that_collide(admin, unique) -> None:
    taken = unique("a.b")
    assert admin.create(taken).error_code == Error.NONE
    answer = admin.create(taken.replace(".", "_"))
    assert answer.error_code == Error.INVALID_TOPIC_EXCEPTION
    assert answer.error_message.endswith(f"collides with existing topic: {taken}")


def test_a_new_topic_tells_its_settings(admin, topic) -> None:
    answer = admin.create(topic, settings={"retention.ms": "1000"})
    settings = {each.name: (each.value, each.config_source) for each in answer.configs}
    assert len(settings) == 33
    assert settings["retention.ms"] == ("1000", 1)
    assert settings["min.insync.replicas"] == ("1", 3)
    assert settings["segment.bytes"] == ("1073741824", 5)
    assert settings["cleanup.policy"] == ("delete", 5)
    assert settings["min.cleanable.dirty.ratio"] == ("0.5", 5)


def test_deletion_names_what_is_wrong(admin, topic) -> None:
    topic_id = admin.create(topic).topic_id
    topics = [
        DeleteTopicsRequest.Topic(name=topic),
        DeleteTopicsRequest.Topic(name=None, topic_id=topic_id),
        DeleteTopicsRequest.Topic(name=None),
        DeleteTopicsRequest.Topic(name=topic, topic_id=topic_id),
    ]
    answers = admin.ask(DeleteTopicsRequest(topics=topics, timeout_ms=10_000), 6).responses
    assert {Error(each.error_code) for each in answers} == {Error.INVALID_REQUEST}
    assert {each.error_message for each in answers} == {
        "Neither topic name nor id were specified.",
        "The provided topic name maps to an ID that was already supplied.",
        "You may not specify both topic name and topic id.",
    }
    assert admin.knows(topic)


@pytest.mark.parametrize(
    ("count", "assignments", "code", "message"),
    [
        (2, None, Error.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (1, None, Error.INVALID_PARTITIONS, "1 would not be an increase."),
        (4, [[1]], Error.INVALID_REPLICA_ASSIGNMENT, "only 1 assignment(s) were specified."),
        (3, [[9]], Error.INVALID_REPLICA_ASSIGNMENT, "no such broker is registered."),
    ],
)
def test_partitions_that_cannot_be(admin, topic, count, assignments, code, message) -> None:
    admin.create(topic, 2)
    given = None
    if assignments is not None:
        given = [CreatePartitionsRequest.Assignment(broker_ids=each) for each in assignments]
    asked = CreatePartitionsRequest.Topic(name=topic, count=count, assignments=given)
    request = CreatePartitionsRequest(topics=[asked], timeout_ms=10_000)
    (answer,) = admin.ask(request, 3).results
    assert Error(answer.error_code) == code
    assert message in answer.error_message


def test_pages_of_partitions(admin, unique) -> None:
    names = sorted(unique("t") for _ in range(3))
    for name in names:
        admin.create(name, 2)
    topics = [DescribeTopicPartitionsRequest.Topic(name=name) for name in names]
    seen, cursor = [], None
    for _ in range(10):
        request = DescribeTopicPartitionsRequest(
            topics=topics if cursor is None else topics[names.index(cursor.topic_name) :],
            response_partition_limit=3,
            cursor=cursor and DescribeTopicPartitionsRequest.Cursor(
                topic_name=cursor.topic_name, partition_index=cursor.partition_index
            ),
        )
        response = admin.ask(request, 0)
        seen += [
            (each.name, partition.partition_index)
            for each in response.topics
            for partition in each.partitions
        ]
        cursor = response.next_cursor
        if cursor is None:
            break
    assert seen == [(name, index) for name in names for index in range(2)]


def test_elections_and_moves_that_are_not_needed(admin, topic) -> None:
    admin.create(topic)
    asked = [ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[0, 9])]
    response = admin.ask(ElectLeadersRequest(topic_partitions=asked), 2)
    (result,) = response.replica_election_results
    assert {each.partition_id: Error(each.error_code) for each in result.partition_result} == {
        0: Error.ELECTION_NOT_NEEDED,
        9: Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    moves = [
        AlterPartitionReassignmentsRequest.Partition(partition_index=index, replicas=replicas)
        for index, replicas in ((0, None), (9, [1]))
    ]
    asked_topic = AlterPartitionReassignmentsRequest.Topic(name=topic, partitions=moves)
    response = admin.ask(AlterPartitionReassignmentsRequest(topics=[asked_topic]), 0)
    codes = [Error(each.error_code) for each in response.responses[0].partitions]
    assert codes == [Error.NO_REASSIGNMENT_IN_PROGRESS, Error.UNKNOWN_TOPIC_OR_PARTITION]


# --- settings -------------------------------------------------------------------------------------


def test_lists_grow_and_shrink(admin, topic) -> None:
    admin.create(topic)

    def found() -> str:
        return str(admin.describe(TOPIC, topic, "cleanup.policy")["cleanup.policy"].value)

    def policy(operation: int, value: str) -> str:
        answer = admin.alter(TOPIC, topic, ("cleanup.policy", operation, value))
        assert answer.error_code == Error.NONE
        eventually(admin.broker, lambda: ("compact" in found()) == (operation == APPEND))
        return found()

    assert policy(APPEND, "compact") == "delete,compact"
    assert policy(SUBTRACT, "compact") == "delete"


@pytest.mark.parametrize(
    ("kind", "name", "steps", "code", "message"),
    [
        (TOPIC, None, [("nope", SET, "1")], Error.INVALID_CONFIG, "Unknown topic config name"),
        (TOPIC, None, [("retention.ms", APPEND, "1")], Error.INVALID_CONFIG, "is not LIST."),
        (TOPIC, None, [("retention.ms", SET, None)], Error.INVALID_REQUEST, "Null value not"),
        (
            TOPIC,
            None,
            [("segment.ms", SET, "9"), ("retention.ms", SET, "x")],
            Error.INVALID_CONFIG,
            "Not a number of type LONG",
        ),
        (
            TOPIC,
            None,
            [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
            Error.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (TOPIC, "nix", [("retention.ms", SET, "1")], Error.UNKNOWN_TOPIC_OR_PARTITION, "'nix'"),
        (TOPIC, "", [("retention.ms", SET, "1")], Error.INVALID_REQUEST, "Default topic"),
        (BROKER, "7", [("log.retention.ms", SET, "1")], Error.INVALID_REQUEST, "Unexpected"),
        (BROKER, "x", [("log.retention.ms", SET, "1")], Error.INVALID_REQUEST, "an integer"),
        (
            BROKER,
            "1",
            [("num.partitions", SET, "2")],
            Error.INVALID_REQUEST,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            BROKER,
            "",
            [("listeners", SET, "PLAINTEXT://:1")],
            Error.INVALID_REQUEST,
            "Cannot update these configs at default cluster level, broker id must be specified",
        ),
        (
            BROKER,
            "1",
            [("message.max.bytes", SET, "-5")],
            Error.INVALID_REQUEST,
            "Invalid value -5 for configuration message.max.bytes: Value must be at least 0",
        ),
        (
            BROKER,
            "1",
            [("ssl.keystore.type", SET, "PEM")],
            Error.INVALID_REQUEST,
            "only per-listener using the listener prefix: [ssl.keystore.type]",
        ),
        (
            BROKER,
            "1",
            [("min.insync.replicas", SET, "1")],
            Error.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ),
        (LOGGER, "1", [("nope", SET, "INFO")], Error.INVALID_CONFIG, "Logger nope does not exist!"),
        (LOGGER, "1", [("root", SET, "LOUD")], Error.INVALID_CONFIG, "Valid log levels are"),
        (LOGGER, "1", [("root", DELETE, None)], Error.INVALID_REQUEST, "is not allowed"),
        (GROUP, "g", [("nope", SET, "1")], Error.INVALID_CONFIG, "Unknown group config name: nope"),
        (
            GROUP,
            "g",
            [("consumer.session.timeout.ms", SET, "1")],
            Error.INVALID_CONFIG,
            "must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            CLIENT_METRICS,
            "s",
            [("interval.ms", SET, "1")],
            Error.INVALID_REQUEST,
            "interval must be between 100 and 3600000 (1 hour)",
        ),
        (
            CLIENT_METRICS,
            "s",
            [("match", SET, "shoe_size=9")],
            Error.INVALID_CONFIG,
            "Illegal client matching pattern: shoe_size=9",
        ),
        (99, "x", [("a", SET, "1")], Error.INVALID_REQUEST, "Unknown resource type"),
    ],
)
def test_settings_that_cannot_be(admin, topic, kind, name, steps, code, message) -> None:
    if name is None:
        admin.create(topic)
    answer = admin.alter(kind, topic if name is None else name, *steps)
    assert Error(answer.error_code) == code
    assert message in answer.error_message


def test_where_a_topics_setting_comes_from(admin, topic) -> None:
    admin.create(topic, settings={"max.message.bytes": "5"})
    found = admin.describe(TOPIC, topic)
    assert len(found) == 33
    own = found["max.message.bytes"]
    assert [(each.name, each.value, each.source) for each in own.synonyms] == [
        ("max.message.bytes", "5", 1),
        ("message.max.bytes", "1048588", 5),
    ]
    assert (own.value, own.config_source, own.config_type, own.read_only) == ("5", 1, 3, False)
    assert found["retention.ms"].synonyms == []
    assert all(each.documentation for each in found.values())


def test_a_brokers_setting_is_known_by_all_its_names(admin) -> None:
    found = admin.describe(BROKER, "1", "log.retention.hours", "log.retention.ms", "num.io.threads")
    hours = found["log.retention.hours"]
    assert (hours.value, hours.read_only) == ("168", True)
    assert [each.name for each in hours.synonyms] == ["log.retention.hours"]
    assert (found["log.retention.ms"].value, found["log.retention.ms"].read_only) == (None, False)
    assert found["num.io.threads"].config_type == 3


def test_kinds_of_resources_that_are_listed(admin, topic) -> None:
    admin.create(topic)
    response = admin.ask(ListConfigResourcesRequest(resource_types=[TOPIC, BROKER]), 1)
    found = {(each.resource_type, each.resource_name) for each in response.config_resources}
    assert {(TOPIC, topic), (BROKER, "1")} <= found
    response = admin.ask(ListConfigResourcesRequest(resource_types=[99]), 1)
    assert Error(response.error_code) == Error.UNSUPPORTED_VERSION


# --- quotas, users, features ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entity", "key", "value", "message"),
    [
        ([], "producer_byte_rate", 1.0, "Invalid empty client quota entity"),
        ([("shoe", "x")], "producer_byte_rate", 1.0, "Unhandled client quota entity type: shoe"),
        ([("user", "")], "producer_byte_rate", 1.0, "Empty user not supported"),
        ([("ip", "1.1.1.1"), ("user", "u")], "connection_creation_rate", 1.0, "entity combination"),
        ([("ip", "no ip")], "connection_creation_rate", 1.0, "no ip is not a valid IP"),
        ([("user", "u")], "nope", 1.0, "Invalid configuration key nope"),
        ([("user", "u")], "producer_byte_rate", 0.0, "must be greater than 0"),
        ([("user", "u")], "producer_byte_rate", 1.5, "cannot be a fractional value."),
        ([("ip", "1.1.1.1")], "connection_creation_rate", 1e12, "too large for an INT."),
    ],
)
def test_quotas_that_cannot_be(admin, entity, key, value, message) -> None:
    entry = AlterClientQuotasRequest.Entry(
        entity=[
            AlterClientQuotasRequest.Entity(entity_type=kind, entity_name=name)
            for kind, name in entity
        ],
        ops=[AlterClientQuotasRequest.Op(key=key, value=value, remove=False)],
    )
    (answer,) = admin.ask(AlterClientQuotasRequest(entries=[entry]), 1).entries
    assert Error(answer.error_code) == Error.INVALID_REQUEST
    assert message in answer.error_message


def test_users_and_their_mechanisms(admin, unique) -> None:
    Request = AlterUserScramCredentialsRequest  # noqa: N806
    good, weak, doubled = unique("good"), unique("weak"), unique("doubled")

    def upsert(name: str, mechanism: int = 1, iterations: int = 4096) -> Any:
        return Request.Upsertion(
            name=name, mechanism=mechanism, iterations=iterations, salt=b"s", salted_password=b"p"
        )

    request = Request(
        upsertions=[
            upsert(good, 2), upsert(weak, iterations=100), upsert(doubled), upsert(doubled, 2)
        ],
        deletions=[Request.Deletion(name="nobody", mechanism=1)],
    )
    results = {each.user: Error(each.error_code) for each in admin.ask(request, 0).results}
    assert results == {
        good: Error.NONE,
        weak: Error.UNACCEPTABLE_CREDENTIAL,
        doubled: Error.DUPLICATE_RESOURCE,
        "nobody": Error.RESOURCE_NOT_FOUND,
    }
    users = [DescribeUserScramCredentialsRequest.User(name=name) for name in (good, weak)]
    described: dict[str, Any] = {}

    def is_described() -> bool:
        response = admin.ask(DescribeUserScramCredentialsRequest(users=users), 0)
        described.update({each.user: each for each in response.results})
        return bool(described[good].error_code == Error.NONE)

    eventually(admin.broker, is_described)
    infos = [(each.mechanism, each.iterations) for each in described[good].credential_infos]
    assert infos == [(2, 4096)]
    assert described[weak].error_code == Error.RESOURCE_NOT_FOUND


@pytest.mark.parametrize(
    ("feature", "level", "kind", "message"),
    [
        ("nope", 1, 1, "Local controller 1 does not support this feature."),
        ("transaction.version", 3, 1, "Local controller 1 only supports versions 0-2"),
        ("transaction.version", 1, 1, "without setting the upgrade type to either safe or unsafe"),
        ("transaction.version", -1, 1, "A feature version cannot be less than 0."),
        ("metadata.version", 29, 2, "Unsupported metadata.version downgrade from 30 to 29."),
    ],
)
def test_features_that_cannot_be(admin, feature, level, kind, message) -> None:
    update = UpdateFeaturesRequest.FeatureUpdate(
        feature=feature, max_version_level=level, upgrade_type=kind
    )
    response = admin.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)
    assert Error(response.error_code) == Error.INVALID_UPDATE_VERSION
    assert message in response.error_message
