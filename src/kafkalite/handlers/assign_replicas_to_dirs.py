"""AssignReplicasToDirs, version 0: a broker process says in which directories its replicas lie.

Flexible (KIP-858). Each partition has its own outcome.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.brokers import AssignDirectories
from kafkalite.coordinators.cluster.image import Image
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, InSteps, Steps, begun
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.quorum_requests import check_broker
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)

Directory = AssignReplicasToDirsResponse.Directory
Topic = AssignReplicasToDirsResponse.Topic
Partition = AssignReplicasToDirsResponse.Partition
Assigned = Later[AssignReplicasToDirsResponse | KafkaError]


def assign_replicas_to_dirs(
    context: Context, call: Call, request: AssignReplicasToDirsRequest
) -> Assigned | InSteps:
    check_broker(context, request)
    return begun(_assign(context, request))


def _assign(context: Context, request: AssignReplicasToDirsRequest) -> Steps[Assigned]:
    image, broker_id = context.metadata.image, request.broker_id
    places: dict[tuple[bytes, int], bytes] = {}
    response = AssignReplicasToDirsResponse()
    looked_at = 0
    for directory in request.directories:
        answers = Directory(id=directory.id)
        for topic in directory.topics:
            answer = Topic(topic_id=topic.topic_id)
            for each in topic.partitions:
                code = _error_of(image, broker_id, topic.topic_id, each.partition_index)
                answer.partitions.append(
                    Partition(partition_index=each.partition_index, error_code=code)
                )
                if code is Error.NONE:
                    places[topic.topic_id, each.partition_index] = directory.id
                looked_at += 1
                if looked_at % ELEMENTS_PER_STEP == 0:
                    yield
            answers.topics.append(answer)
        response.directories.append(answers)

    def assigned(refused: KafkaError | None) -> AssignReplicasToDirsResponse | KafkaError:
        return refused or response

    return context.controller.submit(AssignDirectories(broker_id, places)).map(assigned)


def _error_of(image: Image, broker_id: int, topic_id: bytes, index: int) -> Error:
    topic = image.by_id.get(topic_id)
    if topic is None:
        return Error.UNKNOWN_TOPIC_ID
    state = topic.partitions.get(index)
    if state is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return Error.NONE if broker_id in state.replicas else Error.NOT_LEADER_OR_FOLLOWER
