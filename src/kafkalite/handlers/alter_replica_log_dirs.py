"""AlterReplicaLogDirs, versions 0–2: moves replicas between the log directories of this broker.

Version 2 is flexible (KIP-113). The answer says that a move has begun: the log is copied beside its
use, and the copy takes its place when both are even. A replica that is there already stays.
"""

from __future__ import annotations

from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import is_offline
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

# What a directory's name has room for beside a copy's own id: ".", 32 digits, "-future".
LONGEST_NAME = 255 - 40

Response = AlterReplicaLogDirsResponse


def alter_replica_log_dirs(
    context: Context, call: Call, request: AlterReplicaLogDirsRequest
) -> InSteps:
    return InSteps(_move_all(context, request))


def _move_all(
    context: Context, request: AlterReplicaLogDirsRequest
) -> Steps[AlterReplicaLogDirsResponse]:
    answers: dict[str, list[Response.Partition]] = {}
    paths: dict[tuple[str, int], str] = {}  # what is named last for each partition
    for directory in request.dirs:
        for topic in directory.topics:
            paths.update({(topic.name, index): directory.path for index in topic.partitions})
    for (name, index), path in paths.items():
        answer = Response.Partition(partition_index=index, error_code=Error.NONE)
        try:
            _move(context, name, index, path)
        except KafkaError as error:
            answer.error_code = error.code
        answers.setdefault(name, []).append(answer)
        yield
    return Response(
        results=[
            Response.Result(topic_name=name, partitions=partitions)
            for name, partitions in answers.items()
        ]
    )


def _move(context: Context, topic: str, index: int, path: str) -> None:
    if len(f"{topic}-{index}") > LONGEST_NAME:
        raise KafkaError(Error.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
    directory = next((each for each in context.logs.directories if each.path == path), None)
    if directory is None:
        raise KafkaError(Error.LOG_DIR_NOT_FOUND)
    directory.home.check_online()
    if not {"*", path}.isdisjoint(context.config.get_list("cordoned.log.dirs")):
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT)
    partition = context.partitions.get(topic, index)
    if partition is None and is_offline(context, topic, index, context.node_id):
        raise KafkaError(Error.KAFKA_STORAGE_ERROR)
    if partition is None:
        is_elsewhere = context.metadata.image.has_partition(topic, index)
        code = Error.NOT_LEADER_OR_FOLLOWER if is_elsewhere else Error.UNKNOWN_TOPIC_OR_PARTITION
        raise KafkaError(code)
    context.logs.move(topic, index, path, partition.moved)
