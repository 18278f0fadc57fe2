"""The reply to a request that its sender may not make, where it is more than an error.

Owns the shapes that Apache Kafka gives such replies, API by API; all others are `error_reply`'s. A
request may name thousands of things, so all that is told of each is worked out in steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps, in_steps
from kafkalite.protocol import messages as m
from kafkalite.protocol.errors import KafkaError

NULL_PROTOCOL_SINCE = 7


def whole_refusal(request: Any, version: int, error: KafkaError) -> Steps[Any]:
    """Raises the error where the reply is the usual one."""
    shape = SHAPES.get(type(request).SPEC.api.name)
    if shape is None:
        raise error
    return (yield from shape(request, version, error))


def _nested(
    asked: Iterable[tuple[Any, Iterable[Any]]],
    of_each: Callable[[Any, list[Any]], Any],
    of_part: Callable[[Any], Any],
) -> Steps[list[Any]]:
    """What is told of each thing, such as a topic, and in it of each of its parts."""
    told: list[Any] = []
    for each, parts in asked:
        told.append(of_each(each, (yield from in_steps(map(of_part, parts)))))
        if len(told) % ELEMENTS_PER_STEP == 0:
            yield
    return told


def _join_group(request: m.JoinGroupRequest, version: int, error: KafkaError) -> Steps[Any]:
    yield from ()
    name = None if version >= NULL_PROTOCOL_SINCE else ""
    return m.JoinGroupResponse(error_code=error.code, generation_id=-1, protocol_name=name)


def _alter_replica_log_dirs(
    request: m.AlterReplicaLogDirsRequest, version: int, error: KafkaError
) -> Steps[Any]:
    response = m.AlterReplicaLogDirsResponse
    results = yield from _nested(
        (
            (topic, topic.partitions) for directory in request.dirs for topic in directory.topics
        ),
        lambda topic, told: response.Result(topic_name=topic.name, partitions=told),
        lambda index: response.Partition(partition_index=index, error_code=error.code),
    )
    return response(results=results)


def _elect_leaders(request: m.ElectLeadersRequest, version: int, error: KafkaError) -> Steps[Any]:
    response = m.ElectLeadersResponse
    results = yield from _nested(
        ((topic, topic.partitions) for topic in request.topic_partitions or ()),
        lambda topic, told: response.ReplicaElectionResult(
            topic=topic.topic, partition_result=told
        ),
        lambda index: response.PartitionResult(
            partition_id=index, error_code=error.code, error_message=error.message
        ),
    )
    return response(error_code=error.code, replica_election_results=results)


def _alter_partition_reassignments(
    request: m.AlterPartitionReassignmentsRequest, version: int, error: KafkaError
) -> Steps[Any]:
    response = m.AlterPartitionReassignmentsResponse
    responses = yield from _nested(
        ((topic, topic.partitions) for topic in request.topics),
        lambda topic, told: response.Response(name=topic.name, partitions=told),
        lambda partition: response.Partition(
            partition_index=partition.partition_index,
            error_code=error.code,
            error_message=error.message,
        ),
    )
    return response(error_code=error.code, error_message=error.message, responses=responses)


def _list_partition_reassignments(
    request: m.ListPartitionReassignmentsRequest, version: int, error: KafkaError
) -> Steps[Any]:
    response = m.ListPartitionReassignmentsResponse
    topics = yield from _nested(
        ((topic, topic.partition_indexes) for topic in request.topics or ()),
        lambda topic, told: response.Topic(name=topic.name, partitions=told),
        lambda index: response.Partition(partition_index=index),
    )
    return response(error_code=error.code, error_message=error.message, topics=topics)


def _describe_client_quotas(
    request: m.DescribeClientQuotasRequest, version: int, error: KafkaError
) -> Steps[Any]:
    yield from ()
    return m.DescribeClientQuotasResponse(
        error_code=error.code, error_message=None, entries=None
    )


def _alter_client_quotas(
    request: m.AlterClientQuotasRequest, version: int, error: KafkaError
) -> Steps[Any]:
    response = m.AlterClientQuotasResponse
    entries = yield from _nested(
        ((entry, entry.entity) for entry in request.entries),
        lambda _, told: response.Entry(
            error_code=error.code, error_message=error.code.message, entity=told
        ),
        lambda each: response.Entity(
            entity_type=each.entity_type, entity_name=each.entity_name
        ),
    )
    return response(entries=entries)


def _describe_user_scram_credentials(
    request: m.DescribeUserScramCredentialsRequest, version: int, error: KafkaError
) -> Steps[Any]:
    response = m.DescribeUserScramCredentialsResponse
    results = yield from in_steps(
        response.Result(error_code=error.code, error_message=None) for _ in request.users or ()
    )
    return response(error_code=error.code, error_message=None, results=results)


def _alter_user_scram_credentials(
    request: m.AlterUserScramCredentialsRequest, version: int, error: KafkaError
) -> Steps[Any]:
    response = m.AlterUserScramCredentialsResponse
    users = {each.name for each in request.deletions}
    users |= {each.name for each in request.upsertions}
    results = yield from in_steps(
        response.Result(user=user, error_code=error.code, error_message=error.message)
        for user in sorted(users)
    )
    return response(results=results)


def _describe_log_dirs(
    request: m.DescribeLogDirsRequest, version: int, error: KafkaError
) -> Steps[Any]:
    yield from ()
    return m.DescribeLogDirsResponse(error_code=error.code)


SHAPES: Final[dict[str, Callable[[Any, int, KafkaError], Steps[Any]]]] = {
    "JoinGroup": _join_group,
    "AlterReplicaLogDirs": _alter_replica_log_dirs,
    "DescribeLogDirs": _describe_log_dirs,
    "ElectLeaders": _elect_leaders,
    "AlterPartitionReassignments": _alter_partition_reassignments,
    "ListPartitionReassignments": _list_partition_reassignments,
    "DescribeClientQuotas": _describe_client_quotas,
    "AlterClientQuotas": _alter_client_quotas,
    "DescribeUserScramCredentials": _describe_user_scram_credentials,
    "AlterUserScramCredentials": _alter_user_scram_credentials,
}
