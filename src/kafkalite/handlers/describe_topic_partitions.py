"""DescribeTopicPartitions, version 0: topics and partitions, a page at a time (KIP-966).

Flexible. Topics come in the order of their names; a cursor says where the next page begins. It also
tells the eligible leader replicas, which Metadata does not.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.create_topics import check_topic_name
from kafkalite.coordinators.cluster.nodes import nodes_for
from kafkalite.coordinators.cluster.states import NO_LEADER, PartitionState
from kafkalite.coordinators.cluster.view import INTERNAL_TOPICS
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import offline_replicas
from kafkalite.handlers.operations import operations
from kafkalite.handlers.permission import permitted
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kafkalite.security.acl import DESCRIBE, TOPIC

STEP_TOPICS = 25

Answer = DescribeTopicPartitionsResponse.Topic
Cursor = DescribeTopicPartitionsResponse.Cursor


def describe_topic_partitions(
    context: Context, call: Call, request: DescribeTopicPartitionsRequest
) -> InSteps:
    return InSteps(_answer(context, call, request))


def _answer(
    context: Context, call: Call, request: DescribeTopicPartitionsRequest
) -> Steps[DescribeTopicPartitionsResponse]:
    named = _names(context, request)
    allowed = yield from permitted(context, call, DESCRIBE, TOPIC, named)
    names = [name for name in named if name in allowed]
    if "" in names and request.cursor is None:
        # Without a cursor Apache Kafka takes this name for the cursor's, and fails.
        raise KafkaError(Error.UNKNOWN_SERVER_ERROR)
    most = context.config.get_int("max.request.partition.size.limit")
    room = max(min(most, request.response_partition_limit), 1)
    cursor = request.cursor
    reachable = {node.node_id for node in nodes_for(context.metadata.image, call.connection)}
    response = DescribeTopicPartitionsResponse(next_cursor=None)
    for number, name in enumerate(names):
        if number % STEP_TOPICS == STEP_TOPICS - 1:
            yield
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        is_cursor = cursor is not None and name == cursor.topic_name
        first = cursor.partition_index if cursor is not None and is_cursor else 0
        topic = context.metadata.image.topics.get(name)
        if topic is None:
            if request.topics:
                response.topics.append(_with_operations(context, call, _missing(name)))
            continue
        indexes = sorted(topic.partitions)[first : first + room]
        states = [topic.partitions[index] for index in indexes]
        answer = yield from _topic(context, name, topic.topic_id, states, reachable)
        response.topics.append(_with_operations(context, call, answer))
        room -= len(states)
        if first + len(states) < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + len(states))
            break
    if request.topics:
        code = Error.TOPIC_AUTHORIZATION_FAILED
        response.topics += [
            Answer(error_code=code, name=name) for name in named if name not in allowed
        ]
    return response


def _names(context: Context, request: DescribeTopicPartitionsRequest) -> list[str]:
    cursor = request.cursor
    start = "" if cursor is None else cursor.topic_name
    named = {topic.name for topic in request.topics} or set(context.metadata.image.topics)
    if cursor is not None and request.topics and cursor.topic_name not in named:
        why = (
            "DescribeTopicPartitionsRequest topic list should contain the cursor topic: "
            f"{cursor.topic_name}"
        )
        raise KafkaError(Error.INVALID_REQUEST, why)
    if cursor is not None and cursor.partition_index < 0:
        why = "DescribeTopicPartitionsRequest cursor partition must be valid"
        raise KafkaError(Error.INVALID_REQUEST, why)
    return sorted(name for name in named if name >= start)


def _with_operations(context: Context, call: Call, answer: Answer) -> Answer:
    allowed = operations(context, call, TOPIC, answer.name or "")
    answer.topic_authorized_operations = allowed
    return answer


def _missing(name: str) -> Answer:
    code = Error.UNKNOWN_TOPIC_OR_PARTITION
    try:
        check_topic_name(name)
    except KafkaError as error:
        code = error.code
    return Answer(
        error_code=code,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
    )


def _topic(
    context: Context,
    name: str,
    topic_id: bytes,
    states: list[PartitionState],
    reachable: set[int],
) -> Steps[Answer]:
    answer = Answer(
        error_code=Error.NONE,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
    )
    for number, state in enumerate(states):
        if number % STEP_TOPICS == STEP_TOPICS - 1:
            yield
        offline = offline_replicas(context, name, state, reachable)
        answer.partitions.append(_partition(state, offline, reachable))
    return answer


def _partition(
    state: PartitionState, offline: list[int], reachable: set[int]
) -> DescribeTopicPartitionsResponse.Partition:
    has_leader = state.leader in reachable and state.leader not in offline
    return DescribeTopicPartitionsResponse.Partition(
        error_code=Error.NONE,
        partition_index=state.index,
        leader_id=state.leader if has_leader else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
        offline_replicas=offline,
    )
