"""The reply to a request that its sender may not make, where it is more than an error.

Owns the shapes that Apache Kafka gives such replies, API by API; all others are `error_reply`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafkalite.protocol import messages as m
from kafkalite.protocol.errors import KafkaError

NULL_PROTOCOL_SINCE = 7


def whole_refusal(request: Any, version: int, error: KafkaError) -> Any:
    """Raises the error where the reply is the usual one."""
    shape = SHAPES.get(type(request).SPEC.api.name)
    if shape is None:
        raise error
    return shape(request, version, error)


def _join_group(request: m.JoinGroupRequest, version: int, error: KafkaError) -> Any:
    name = None if version >= NULL_PROTOCOL_SINCE else ""
    return m.JoinGroupResponse(error_code=error.code, generation_id=-1, protocol_name=name)


def _alter_replica_log_dirs(
    request: m.AlterReplicaLogDirsRequest, version: int, error: KafkaError
) -> Any:
    response = m.AlterReplicaLogDirsResponse
    return response(
        results=[
            response.Result(
                topic_name=topic.name,
                partitions=[
                    response.Partition(partition_index=each, error_code=error.code)
                    for each in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _elect_leaders(request: m.ElectLeadersRequest, version: int, error: KafkaError) -> Any:
    response = m.ElectLeadersResponse
    return response(
        error_code=error.code,
        replica_election_results=[
            response.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[
                    response.PartitionResult(
                        partition_id=each, error_code=error.code, error_message=error.message
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _alter_partition_reassignments(
    request: m.AlterPartitionReassignmentsRequest, version: int, error: KafkaError
) -> Any:
    response = m.AlterPartitionReassignmentsResponse
    return response(
        error_code=error.code,
        error_message=error.message,
        responses=[
            response.Response(
                name=topic.name,
                partitions=[
                    response.Partition(
                        partition_index=each.partition_index,
                        error_code=error.code,
                        error_message=error.message,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _list_partition_reassignments(
    request: m.ListPartitionReassignmentsRequest, version: int, error: KafkaError
) -> Any:
    response = m.ListPartitionReassignmentsResponse
    return response(
        error_code=error.code,
        error_message=error.message,
        topics=[
            response.Topic(
                name=topic.name,
                partitions=[
                    response.Partition(partition_index=each) for each in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )


def _describe_client_quotas(
    request: m.DescribeClientQuotasRequest, version: int, error: KafkaError
) -> Any:
    return m.DescribeClientQuotasResponse(
        error_code=error.code, error_message=None, entries=None
    )


def _alter_client_quotas(
    request: m.AlterClientQuotasRequest, version: int, error: KafkaError
) -> Any:
    response = m.AlterClientQuotasResponse
    return response(
        entries=[
            response.Entry(
                error_code=error.code,
                error_message=error.code.message,
                entity=[
                    response.Entity(entity_type=each.entity_type, entity_name=each.entity_name)
                    for each in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


def _describe_user_scram_credentials(
    request: m.DescribeUserScramCredentialsRequest, version: int, error: KafkaError
) -> Any:
    response = m.DescribeUserScramCredentialsResponse
    return response(
        error_code=error.code,
        error_message=None,
        results=[
            response.Result(error_code=error.code, error_message=None)
            for _ in request.users or ()
        ],
    )


def _alter_user_scram_credentials(
    request: m.AlterUserScramCredentialsRequest, version: int, error: KafkaError
) -> Any:
    response = m.AlterUserScramCredentialsResponse
    users = {each.name for each in request.deletions}
    users |= {each.name for each in request.upsertions}
    return response(
        results=[
            response.Result(user=user, error_code=error.code, error_message=error.message)
            for user in sorted(users)
        ]
    )


def _describe_log_dirs(
    request: m.DescribeLogDirsRequest, version: int, error: KafkaError
) -> Any:
    return m.DescribeLogDirsResponse(error_code=error.code)


SHAPES: Final[dict[str, Callable[[Any, int, KafkaError], Any]]] = {
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
