"""Access rules made, described, removed and felt, through the handlers of a broker in memory."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalite import handlers
from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.image_records import records_of
from kafkalite.env.slicing import ELEMENTS_PER_STEP, InSteps
from kafkalite.handlers.call import Call
from kafkalite.handlers.find_coordinator import STEP_KEYS
from kafkalite.handlers.offset_fetch import STEP_PARTITIONS
from kafkalite.handlers.permission import NAMES_PER_STEP
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    OffsetFetchRequest,
)
from kafkalite.security import acl as rules
from kafkalite.security.acl import Acl, acl_of
from kafkalite.server.guard import guarded as guarded_by_rules
from tests.unit.handlers.in_steps import settled
from tests.unit.handlers.world import World

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
}
ROOT, ALICE = "User:root", "User:alice"
EVERYTHING = DeleteAclsRequest.Filter(
    resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1,
    resource_name_filter=None, principal_filter=None, host_filter=None,
)  # fmt: skip


@pytest.fixture
def guarded() -> World:
    world = World(settings=SETTINGS)
    world.connection.principal = ROOT
    return world


def creation(acl: Acl) -> CreateAclsRequest.Creation:
    return CreateAclsRequest.Creation(
        resource_type=acl.kind, resource_name=acl.name, resource_pattern_type=acl.pattern,
        principal=acl.principal, host=acl.host, operation=acl.operation,
        permission_type=acl.permission,
    )  # fmt: skip


def create(world: World, *acls: Acl) -> list[tuple[int, str | None]]:
    answer = world.ask(CreateAclsRequest(creations=[creation(each) for each in acls]), 3)
    return [(each.error_code, each.error_message) for each in answer.results]


def described(world: World, **wanted: Any) -> set[Acl]:
    asked: dict[str, Any] = {
        "resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1,
        "permission_type": 1, "resource_name_filter": None, "principal_filter": None,
        "host_filter": None,
    }  # fmt: skip
    answer = world.ask(DescribeAclsRequest(**{**asked, **wanted}), 3)
    assert answer.error_code == Error.NONE
    return {
        Acl(one.resource_type, one.resource_name, one.pattern_type, each.principal, each.host,
            each.operation, each.permission_type)
        for one in answer.resources
        for each in one.acls
    }  # fmt: skip


def list_offsets(world: World, *names: str) -> dict[str, int]:
    topics = [
        ListOffsetsRequest.Topic(
            name=name, partitions=[ListOffsetsRequest.Partition(partition_index=0, timestamp=-1)]
        )
        for name in names
    ]
    answer = world.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 9)
    return {each.name: each.partitions[0].error_code for each in answer.topics}


def test_rules_are_made_once_described_and_removed(guarded: World) -> None:
    reads = acl_of("User:alice read topic orders")
    writes = acl_of("deny User:* write topic orders* from 10.0.0.7")
    assert create(guarded, reads, writes, reads) == [(Error.NONE, "")] * 3
    assert create(guarded, reads) == [(Error.NONE, "")]
    assert len(guarded.metadata.image.acls) == 2
    assert described(guarded) == {reads, writes}
    assert described(guarded, pattern_type_filter=rules.MATCH, resource_name_filter="orders-2",
                     resource_type_filter=rules.TOPIC) == {writes}  # fmt: skip
    answer = guarded.ask(DeleteAclsRequest(filters=[EVERYTHING]), 3)
    assert len(answer.filter_results[0].matching_acls) == 2
    assert described(guarded) == set()


def test_rules_are_in_a_snapshot(guarded: World) -> None:
    create(guarded, acl_of("User:alice read topic orders"), acl_of("User:* all group *"))
    copy = Image()
    for record in records_of(guarded.metadata.image):
        copy.apply(record, Changes())
    assert (copy.acls, copy.acl_ids) == (
        guarded.metadata.image.acls, guarded.metadata.image.acl_ids
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"name": ""}, "Invalid empty resource name"),
        ({"kind": 4, "name": "x"}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"kind": 99}, "Invalid resourceType UNKNOWN"),
        ({"pattern": 77}, "Invalid patternType UNKNOWN"),
        ({"operation": 88}, "Invalid operation UNKNOWN"),
        ({"permission": 66}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal "
            "type from the principal name)",
        ),
    ],
)
def test_what_is_no_rule_is_refused_alone(
    guarded: World, change: dict[str, Any], why: str
) -> None:
    good = acl_of("User:alice read topic orders")
    answers = create(guarded, good._replace(**change), good)
    assert answers == [(Error.INVALID_REQUEST, why), (Error.NONE, "")]


def test_a_rule_is_felt_by_the_next_request(guarded: World) -> None:
    for name in ("orders", "secrets"):
        guarded.create(name)
    guarded.connection.principal = ALICE
    refused = Error.TOPIC_AUTHORIZATION_FAILED
    assert list_offsets(guarded, "orders", "no-such") == {"orders": refused, "no-such": refused}
    guarded.connection.principal = ROOT
    create(guarded, acl_of("User:alice read topic orders"))
    guarded.connection.principal = ALICE
    assert list_offsets(guarded, "orders", "secrets") == {"orders": Error.NONE, "secrets": refused}
    guarded.connection.principal = ROOT
    guarded.ask(DeleteAclsRequest(filters=[EVERYTHING]), 3)
    guarded.connection.principal = ALICE
    assert list_offsets(guarded, "orders") == {"orders": refused}


def test_who_may_not_change_rules_is_refused(guarded: World) -> None:
    guarded.connection.principal = ALICE
    [(code, _)] = create(guarded, acl_of("User:alice all cluster"))
    assert code == Error.CLUSTER_AUTHORIZATION_FAILED
    assert guarded.metadata.image.acls == {}


def test_all_topics_are_those_that_one_may_describe(guarded: World) -> None:
    for name in ("orders", "secrets"):
        guarded.create(name)
    create(guarded, acl_of("User:alice describe topic orders"))
    guarded.connection.principal = ALICE
    answer = guarded.ask(MetadataRequest(topics=None), 12)
    assert [each.name for each in answer.topics] == ["orders"]
    guarded.connection.principal = ROOT
    answer = guarded.ask(MetadataRequest(topics=None), 12)
    assert [each.name for each in answer.topics] == ["orders", "secrets"]


def test_a_creator_is_not_told_settings_that_it_may_not_describe(guarded: World) -> None:
    create(guarded, acl_of("User:alice create topic a*"))
    guarded.connection.principal = ALICE
    topics = [
        CreateTopicsRequest.Topic(name=name, num_partitions=1, replication_factor=1)
        for name in ("ab", "b")
    ]
    answer = guarded.ask(CreateTopicsRequest(topics=topics, timeout_ms=1_000), 7)
    made, refused = answer.topics
    assert (made.error_code, made.num_partitions, made.configs) == (Error.NONE, -1, [])
    assert made.topic_config_error_code == Error.TOPIC_AUTHORIZATION_FAILED
    assert (refused.name, refused.error_message) == ("b", "Authorization failed.")


def test_too_many_at_once_are_refused_as_a_whole(guarded: World) -> None:
    reads = acl_of("User:alice read topic t")
    answers = create(guarded, *(reads._replace(name=f"t{number}") for number in range(10_001)))
    assert {code for code, _ in answers} == {Error.POLICY_VIOLATION}
    assert guarded.metadata.image.acls == {}


def begun(world: World, principal: str, request: Any, version: int) -> Any:
    """What a handler answers to this request, before others had their turn."""
    world.connection.principal = principal
    api = type(request).SPEC.api
    handler = handlers.handler(api.key)
    assert handler is not None
    call = Call(api.key, version, 1, "a-client", world.connection)
    guard = guarded_by_rules(handler, api, version, world.connection.kind)
    return guard(world.context, call, request)


def test_what_is_being_created_is_deleted_by_nobody_who_may_not(guarded: World) -> None:
    """It is not there when it is asked about, and is there when the cluster decides."""
    create(guarded, acl_of(f"{ALICE} describe topic *"))
    topic = CreateTopicsRequest.Topic
    names = ["mine", *(f"other-{number}" for number in range(200))]
    creating = settled(begun(guarded, ROOT, CreateTopicsRequest(topics=[
        topic(name=name, num_partitions=1, replication_factor=1) for name in names
    ]), 7))  # fmt: skip
    deleting = settled(begun(guarded, ALICE, DeleteTopicsRequest(topics=[
        DeleteTopicsRequest.Topic(name="mine"), DeleteTopicsRequest.Topic(name="nothing")
    ]), 6))  # fmt: skip
    while not (creating.is_resolved and deleting.is_resolved):
        guarded.clock.advance(0)
    assert {each.error_code for each in creating.value.topics} == {Error.NONE}
    assert "mine" in guarded.metadata.image.topics
    codes = {each.name: each.error_code for each in deleting.value.responses}
    assert codes == dict.fromkeys(("mine", "nothing"), Error.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("key_type", [0, 1])
def test_thousands_of_keys_are_refused_a_slice_per_turn(guarded: World, key_type: int) -> None:
    told: list[str] = []
    assert guarded.context.authorizer is not None
    guarded.context.authorizer.on_denied = lambda *what: told.append(what[4])
    keys = [f"key-{number}" for number in range(1_000)]
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
    answer = begun(guarded, ALICE, request, 6)
    assert isinstance(answer, InSteps)
    assert not told
    for _ in answer.steps:
        assert len(told) <= STEP_KEYS
        told.clear()


def test_share_keys_are_refused_a_slice_per_turn(guarded: World) -> None:
    keys = [f"key-{number}" for number in range(1_000)]
    answer = begun(guarded, ALICE, FindCoordinatorRequest(key_type=2, coordinator_keys=keys), 6)
    assert len(list(answer.steps)) > 10


NAMES = [f"topic-{number}" for number in range(1_000)]


@pytest.mark.parametrize(
    ("request_of_many", "version"),
    [
        (CreateTopicsRequest(topics=[CreateTopicsRequest.Topic(name=name) for name in NAMES]), 7),
        (DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name=name) for name in NAMES]), 6),
        (CreatePartitionsRequest(
            topics=[CreatePartitionsRequest.Topic(name=name) for name in NAMES]
        ), 3),
    ],
)  # fmt: skip
def test_refusals_of_thousands_are_written_a_slice_per_turn(
    guarded: World, request_of_many: Any, version: int
) -> None:
    answer = begun(guarded, ALICE, request_of_many, version)
    assert len(list(answer.steps)) > len(NAMES) / ELEMENTS_PER_STEP


def test_entries_of_thousands_are_refused_a_slice_per_turn(guarded: World) -> None:
    topics = [ListOffsetsRequest.Topic(name=name, partitions=[]) for name in NAMES]
    answer = begun(guarded, ALICE, ListOffsetsRequest(replica_id=-1, topics=topics), 9)
    assert len(list(answer.steps)) > 1.5 * len(NAMES) / NAMES_PER_STEP


TOPICS = [
    (AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDirsRequest.Dir(
        path="/d", topics=[AlterReplicaLogDirsRequest.Topic(
            name="t", partitions=list(range(1_000))
        )]
    )]), 2),
    (ElectLeadersRequest(topic_partitions=[
        ElectLeadersRequest.TopicPartitions(topic=name, partitions=[0]) for name in NAMES
    ]), 2),
    (AlterPartitionReassignmentsRequest(topics=[
        AlterPartitionReassignmentsRequest.Topic(name=name, partitions=[])
        for name in NAMES
    ]), 0),
    (ListPartitionReassignmentsRequest(topics=[
        ListPartitionReassignmentsRequest.Topic(
            name="t", partition_indexes=list(range(1_000))
        )
    ]), 0),
    (AlterUserScramCredentialsRequest(deletions=[
        AlterUserScramCredentialsRequest.Deletion(name=name) for name in NAMES
    ]), 0),
    (DescribeUserScramCredentialsRequest(users=[
        DescribeUserScramCredentialsRequest.User(name=name) for name in NAMES
    ]), 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("request_of_many", "version"), TOPICS, ids=lambda each: type(each).__name__
)
def test_thousands_are_refused_as_a_whole_a_slice_per_turn(
    guarded: World, request_of_many: Any, version: int
) -> None:
    answer = begun(guarded, ALICE, request_of_many, version)
    assert isinstance(answer, InSteps)
    assert len(list(answer.steps)) >= len(NAMES) // ELEMENTS_PER_STEP - 1


def test_metadata_of_thousands_that_are_refused_is_told_a_slice_per_turn(guarded: World) -> None:
    told: list[str] = []
    assert guarded.context.authorizer is not None
    guarded.context.authorizer.on_denied = lambda *what: told.append(what[4])
    topics = [MetadataRequest.Topic(name=name) for name in NAMES]
    answer = begun(guarded, ALICE, MetadataRequest(topics=topics), 11)
    for _ in answer.steps:
        assert len(told) <= NAMES_PER_STEP
        told.clear()


def test_offsets_of_thousands_that_are_refused_are_told_a_slice_per_turn(guarded: World) -> None:
    topic = OffsetFetchRequest.Topic(name="t", partition_indexes=list(range(1_000)))
    answer = begun(guarded, ALICE, OffsetFetchRequest(group_id="g", topics=[topic]), 1).value
    steps = 1_000 // ELEMENTS_PER_STEP + 1_000 // STEP_PARTITIONS
    assert sum(1 for _ in answer.steps) >= steps
