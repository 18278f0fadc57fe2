"""DescribeQuorum, versions 0–2: voters and observers of the metadata log, and how far they are.

Flexible (KIP-595). Versions: 1 times of the last fetch, 2 directories, error messages and the
listeners of the voters (KIP-853). The controller of this process is the only voter; brokers that
are processes of their own are observers, and those of this one read the same log in memory.
"""

from __future__ import annotations

from itertools import islice

from kafkalite.coordinators.cluster.describing_quorum import DescribeQuorum, QuorumStanding
from kafkalite.coordinators.cluster.nodes import nodes_for
from kafkalite.coordinators.cluster.quorum_leader import QuorumLeader
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, begun, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.quorum_requests import host_of
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse

METADATA_TOPIC = "__cluster_metadata"

Partition = DescribeQuorumResponse.Partition


def describe_quorum(
    context: Context, call: Call, request: DescribeQuorumRequest
) -> Later[DescribeQuorumResponse | InSteps | KafkaError]:
    standing = context.controller.submit(DescribeQuorum())
    return standing.map(lambda answer: _described(context, call, request, answer))


def _described(
    context: Context,
    call: Call,
    request: DescribeQuorumRequest,
    standing: QuorumStanding | KafkaError,
) -> DescribeQuorumResponse | InSteps | KafkaError:
    if isinstance(standing, KafkaError):
        return standing
    asked = [(each.topic_name, one.partition_index) for each in request.topics
             for one in each.partitions]
    if asked != [(METADATA_TOPIC, 0)]:  # beside another partition even the right one is unknown
        return begun(_refusal(request))
    topic = DescribeQuorumResponse.Topic(
        topic_name=METADATA_TOPIC, partitions=[_partition(context, standing)]
    )
    return DescribeQuorumResponse(
        error_code=Error.NONE, topics=[topic], nodes=_nodes(context, call, standing)
    )


def _refusal(request: DescribeQuorumRequest) -> Steps[DescribeQuorumResponse]:
    unknown = yield from in_steps(
        _unknown(asked.partition_index) for topic in request.topics for asked in topic.partitions
    )
    left = iter(unknown)
    topics = yield from in_steps(
        DescribeQuorumResponse.Topic(
            topic_name=topic.topic_name, partitions=list(islice(left, len(topic.partitions)))
        )
        for topic in request.topics
    )
    return DescribeQuorumResponse(topics=topics)


def _nodes(
    context: Context, call: Call, standing: QuorumStanding
) -> list[DescribeQuorumResponse.Node]:
    if context.quorum is not None:
        return [_leader(context.quorum, call)]
    return [
        DescribeQuorumResponse.Node(
            node_id=node.node_id,
            listeners=[
                DescribeQuorumResponse.Listener(
                    name=call.connection.listener, host=node.host, port=node.port
                )
            ],
        )
        for node in nodes_for(context.metadata.image, call.connection)
        if node.node_id == standing.leader_id
    ]


def _leader(quorum: QuorumLeader, call: Call) -> DescribeQuorumResponse.Node:
    listener = DescribeQuorumResponse.Listener
    return DescribeQuorumResponse.Node(
        node_id=quorum.node_id,
        listeners=[
            listener(name=each.name, host=host_of(each, call), port=each.port)
            for each in quorum.endpoints
        ],
    )


def _observers(context: Context) -> list[DescribeQuorumResponse.CurrentVoter]:
    known = {} if context.quorum is None else context.quorum.observers
    return [
        DescribeQuorumResponse.CurrentVoter(
            replica_id=broker_id,
            replica_directory_id=each.directory_id,
            log_end_offset=each.log_end_offset,
            last_fetch_timestamp=each.asked_ms,
            last_caught_up_timestamp=each.caught_up_ms,
        )
        for broker_id, each in sorted(known.items())
    ]


def _partition(context: Context, standing: QuorumStanding) -> Partition:
    now_ms = context.env.clock.now_ms()
    voter = DescribeQuorumResponse.CurrentVoter(
        replica_id=standing.leader_id,
        replica_directory_id=context.logs.directories[0].directory_id,
        log_end_offset=standing.end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return Partition(
        partition_index=0,
        error_code=Error.NONE,
        leader_id=standing.leader_id,
        leader_epoch=standing.leader_epoch,
        high_watermark=standing.end_offset,
        current_voters=[voter],
        observers=_observers(context),
    )


def _unknown(index: int) -> Partition:
    code = Error.UNKNOWN_TOPIC_OR_PARTITION
    return Partition(partition_index=index, error_code=code, error_message=code.message)
