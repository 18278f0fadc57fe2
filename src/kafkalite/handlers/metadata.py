"""Metadata, versions 0–13: brokers, topics and leaders; creates a missing topic when it may.

Versions: 1 racks, controller and internal topics, all topics by null, 2 cluster id, 4 creation may
be declined, 5 offline replicas, 6 LISTENER_NOT_FOUND, 7 leader epochs, 8 authorized operations,
9 flexible, 10 topic ids in replies, 12 topics by id (KIP-516), 13 an error for the whole
(KIP-1102). A topic created by a request is in its reply, where Apache Kafka says at first that it
does not know it.

Clients ask the same again and again, so a reply without errors is kept in its bytes.
"""

from __future__ import annotations

from collections.abc import Hashable

from kafkalite.coordinators.cluster.create_topics import check_topic_name
from kafkalite.coordinators.cluster.deciding import INTERNAL_TOPICS
from kafkalite.coordinators.cluster.image import NO_LEADER, PartitionState, Topic
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call, Encoded
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import reply_with
from kafkalite.handlers.operations import ALL_CLUSTER_OPERATIONS, ALL_TOPIC_OPERATIONS
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ZERO_UUID,
    MetadataRequest,
    MetadataResponse,
)

ALL_BY_NULL_VERSION = 1
LISTENER_ERROR_VERSION = 6
TOPIC_ID_VERSION = 12

Answer = MetadataResponse.Topic


def metadata(
    context: Context, call: Call, request: MetadataRequest
) -> MetadataResponse | Encoded | Later[MetadataResponse]:
    offset, asked = context.cluster.features_epoch, _asked(call, request)
    body = context.kept_replies.find(offset, asked)
    if body is not None:
        return Encoded(body)
    response = _answer(context, call, request)
    if isinstance(response, Later) or any(topic.error_code for topic in response.topics):
        return response
    body = codec.encode(response, call.version)
    context.kept_replies.keep(offset, asked, body)
    return Encoded(body)


def _asked(call: Call, request: MetadataRequest) -> Hashable:
    """All of a request that its reply depends on, but for the cluster's metadata."""
    connection, topics = call.connection, request.topics
    return (
        call.version,
        connection.listener,
        connection.local_address,
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
        None if topics is None else tuple((topic.name, topic.topic_id) for topic in topics),
    )


def _answer(
    context: Context, call: Call, request: MetadataRequest
) -> MetadataResponse | Later[MetadataResponse]:
    if call.version < TOPIC_ID_VERSION and _names_by_id(request):
        return _refuse(request)
    image = context.cluster.image
    if request.topics is None or (not request.topics and call.version < ALL_BY_NULL_VERSION):
        view = _View(context, call)
        return _respond(view, request, [view.topic(name) for name in sorted(image.topics)])
    ids = [each.topic_id for each in request.topics if each.topic_id != ZERO_UUID]
    if ids:
        view = _View(context, call)
        return _respond(view, request, [_by_id(view, one) for one in dict.fromkeys(ids)])
    if any(each.name is None for each in request.topics):
        raise KafkaError(Error.UNKNOWN_SERVER_ERROR, "a topic without a name and without an id")
    names = list(dict.fromkeys(each.name or "" for each in request.topics))
    return _by_name(context, call, request, names)


def _names_by_id(request: MetadataRequest) -> bool:
    return any(each.name is None or each.topic_id != ZERO_UUID for each in request.topics or ())


def _refuse(request: MetadataRequest) -> MetadataResponse:
    """For a version in which topics have no ids."""
    return MetadataResponse(
        topics=[
            Answer(error_code=Error.INVALID_REQUEST, name=each.name or "", topic_id=each.topic_id)
            for each in request.topics or ()
        ]
    )


def _by_name(
    context: Context, call: Call, request: MetadataRequest, names: list[str]
) -> MetadataResponse | Later[MetadataResponse]:
    topics = context.cluster.image.topics
    missing = [name for name in names if name not in topics]

    def respond(_: dict[str, Error]) -> MetadataResponse:
        view = _View(context, call)
        # Why a topic could not be created is no answer to who asked where it is.
        answers = [view.topic(name) if name in topics else _missing(name) for name in names]
        return _respond(view, request, answers)

    is_wanted = request.allow_auto_topic_creation
    if missing and is_wanted and context.config.get_bool("auto.create.topics.enable"):
        return reply_with(context.cluster.create_missing(missing), respond)
    return respond({})


def _by_id(view: _View, topic_id: bytes) -> Answer:
    name = view.context.cluster.image.topic_name(topic_id)
    if name is None:
        return Answer(error_code=Error.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    return view.topic(name)


def _error_of(name: str) -> Error:
    """Why a topic is not there: nobody created it, or by its name nobody could."""
    try:
        check_topic_name(name)
    except KafkaError as error:
        return error.code
    return Error.UNKNOWN_TOPIC_OR_PARTITION


def _missing(name: str) -> Answer:
    return Answer(error_code=_error_of(name), name=name, is_internal=name in INTERNAL_TOPICS)


class _View:
    """The topics as one client sees them, who reaches brokers through its listener."""

    def __init__(self, context: Context, call: Call) -> None:
        self.context = context
        self.call = call
        self.nodes = context.cluster.nodes_for(call.connection)
        self.reachable = {node.node_id for node in self.nodes}

    def topic(self, name: str) -> Answer:
        topic: Topic = self.context.cluster.image.topics[name]
        return Answer(
            error_code=Error.NONE,
            name=name,
            topic_id=topic.topic_id,
            is_internal=name in INTERNAL_TOPICS,
            partitions=[
                self._partition(topic.partitions[index]) for index in sorted(topic.partitions)
            ],
        )

    def _partition(self, state: PartitionState) -> MetadataResponse.Partition:
        has_leader = state.leader in self.reachable
        return MetadataResponse.Partition(
            error_code=Error.NONE if has_leader else self._leader_error(state),
            partition_index=state.index,
            leader_id=state.leader if has_leader else NO_LEADER,
            leader_epoch=state.leader_epoch,
            replica_nodes=list(state.replicas),
            isr_nodes=list(state.isr),
            offline_replicas=[each for each in state.replicas if each not in self.reachable],
        )

    def _leader_error(self, state: PartitionState) -> Error:
        is_registered = state.leader in self.context.cluster.image.brokers
        if is_registered and self.call.version >= LISTENER_ERROR_VERSION:
            return Error.LISTENER_NOT_FOUND
        return Error.LEADER_NOT_AVAILABLE


def _respond(view: _View, request: MetadataRequest, answers: list[Answer]) -> MetadataResponse:
    cluster, nodes = view.context.cluster, view.nodes
    response = MetadataResponse(
        cluster_id=cluster.cluster_id,
        controller_id=controller_among([node.node_id for node in nodes], cluster.node_id),
        brokers=[
            MetadataResponse.Broker(
                node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in nodes
        ],
        topics=answers,
    )
    if request.include_topic_authorized_operations:
        for answer in answers:
            answer.topic_authorized_operations = ALL_TOPIC_OPERATIONS
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS
    return response


def controller_among(node_ids: list[int], preferred: int) -> int:
    """The broker that clients send changes to: any that lives takes them, so the same one."""
    return preferred if preferred in node_ids else min(node_ids, default=-1)
