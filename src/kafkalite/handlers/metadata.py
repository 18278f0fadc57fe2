"""Metadata, versions 0–13: brokers, topics and leaders; creates a missing topic when it may.

Versions: 1 racks, controller and internal topics, all topics by null, 2 cluster id, 4 creation may
be declined, 5 offline replicas, 6 LISTENER_NOT_FOUND, 7 leader epochs, 8 authorized operations,
9 flexible, 10 topic ids in replies, 12 topics by id (KIP-516), 13 an error for the whole
(KIP-1102). A topic created by a request is in its reply, where Apache Kafka says at first that it
does not know it; kafkalite.auto.create.waits=false says the same.

Clients ask the same again and again, so a reply without errors is kept in its bytes.
"""

from __future__ import annotations

from collections.abc import Container, Hashable

from kafkalite.coordinators.cluster.create_topics import check_topic_name
from kafkalite.coordinators.cluster.nodes import nodes_for
from kafkalite.coordinators.cluster.states import NO_LEADER, PartitionState, Topic
from kafkalite.coordinators.cluster.view import INTERNAL_TOPICS
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, chosen, in_steps
from kafkalite.handlers.call import Call, Encoded
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import offline_replicas
from kafkalite.handlers.operations import cluster_operations, operations
from kafkalite.handlers.permission import divide, may, may_cluster, permitted
from kafkalite.handlers.permits import permits_unasked
from kafkalite.handlers.stepwise import encoded, let_go
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ZERO_UUID,
    MetadataRequest,
    MetadataResponse,
)
from kafkalite.security.acl import CREATE, DESCRIBE, TOPIC

ALL_BY_NULL_VERSION = 1
LISTENER_ERROR_VERSION = 6
TOPIC_ID_VERSION = 12

Answer = MetadataResponse.Topic
Asked = tuple[str, Hashable] | None  # None: the reply is not worth keeping

STEP_NAMES = 25
MOST_NAMES_KEPT = 1_000  # by name; a reply to more is not worth a look at what was asked


def metadata(
    context: Context, call: Call, request: MetadataRequest
) -> Encoded | InSteps:
    offset, asked = context.metadata.features_epoch, _asked(context, call, request)
    body = context.kept_replies.find(offset, *asked) if asked is not None else None
    return InSteps(_answer(context, call, request, asked)) if body is None else Encoded(body)


def _asked(context: Context, call: Call, request: MetadataRequest) -> Asked:
    """All of a request that its reply depends on, but for the cluster's metadata: who, and what."""
    connection, topics, authorizer = call.connection, request.topics, context.authorizer
    if topics is not None and len(topics) > MOST_NAMES_KEPT:
        return None
    return connection.principal, (
        call.version,
        connection.listener,
        connection.local_address,
        None if authorizer is None else (connection.peer_address[0], authorizer.changes),
        request.include_cluster_authorized_operations,
        request.include_topic_authorized_operations,
        None if topics is None else tuple((topic.name, topic.topic_id) for topic in topics),
    )


def _answer(
    context: Context, call: Call, request: MetadataRequest, asked: Asked
) -> Steps[MetadataResponse | Encoded | Later[InSteps]]:
    image = context.metadata.image
    if request.topics is None or (not request.topics and call.version < ALL_BY_NULL_VERSION):
        every = sorted(image.topics)
        if context.authorizer is not None:
            seen = yield from permitted(context, call, DESCRIBE, TOPIC, every, is_quiet=True)
            every = yield from chosen(every, seen.__contains__)
        return (yield from _of_names(context, call, request, every, asked))
    names: dict[str, None] = {}
    ids: dict[bytes, None] = {}
    is_nameless = False
    for number, each in enumerate(request.topics):
        if number % STEP_NAMES == STEP_NAMES - 1:
            yield
        is_by_id = each.name is None or each.topic_id != ZERO_UUID
        if is_by_id and call.version < TOPIC_ID_VERSION:
            return MetadataResponse(topics=(yield from in_steps(map(_refused, request.topics))))
        if each.topic_id != ZERO_UUID:
            ids[each.topic_id] = None
        elif each.name is None:
            is_nameless = True
        else:
            names[each.name] = None
    yield from let_go(request)
    if ids:
        return (yield from _of_ids(context, call, request, list(ids), asked))
    if is_nameless:
        raise KafkaError(Error.UNKNOWN_SERVER_ERROR, "a topic without a name and without an id")
    return (yield from _of_wanted(context, call, request, list(names), asked))


def _of_wanted(
    context: Context, call: Call, request: MetadataRequest, names: list[str], asked: Asked
) -> Steps[MetadataResponse | Encoded | Later[InSteps]]:
    """What is missing of these is created, where it may be."""
    image, hidden = context.metadata.image, set[str]()
    if context.authorizer is not None:
        yield from divide(context, call, DESCRIBE, TOPIC, names, set(), hidden)
    missing = yield from chosen(
        names, lambda name: name not in image.topics and name not in hidden
    )
    is_wanted = missing and request.allow_auto_topic_creation
    if is_wanted and context.config.get_bool("auto.create.topics.enable"):
        if not may_cluster(context, call, CREATE, is_quiet=True):
            creatable: set[str] = set()
            yield from divide(context, call, CREATE, TOPIC, missing, creatable, hidden)
            missing = yield from chosen(missing, creatable.__contains__)
        if context.config.get_bool("kafkalite.auto.create.waits"):
            # Why a topic could not be created is no answer to who asked where it is.
            return context.auto_creation.create(missing, permits_unasked(call)).map(
                lambda _: InSteps(_of_names(context, call, request, names, None, hidden))
            )
        response = yield from _of_names(context, call, request, names, None, hidden)
        # Nobody waits for what comes of it.
        context.auto_creation.create(missing, permits_unasked(call))
        return response
    return (yield from _of_names(context, call, request, names, asked, hidden))


def _refused(asked: MetadataRequest.Topic) -> Answer:
    """In a version in which topics have no ids."""
    return Answer(
        error_code=Error.INVALID_REQUEST, name=asked.name or "", topic_id=asked.topic_id
    )


def _of_names(
    context: Context,
    call: Call,
    request: MetadataRequest,
    names: list[str],
    asked: Asked,
    hidden: Container[str] = (),
) -> Steps[MetadataResponse | Encoded]:
    """Some at a time; between two steps topics may come and go."""
    view, offset = _View(context, call, request), context.metadata.features_epoch
    answers: list[Answer] = []
    for number, name in enumerate(names):
        if number % STEP_NAMES == STEP_NAMES - 1:
            yield
        answers.append(view.hidden(name) if name in hidden else (yield from view.topic(name)))
    return (yield from _kept(view, _respond(view, answers), offset, asked))


def _of_ids(
    context: Context, call: Call, request: MetadataRequest, ids: list[bytes], asked: Asked
) -> Steps[MetadataResponse | Encoded]:
    view, offset = _View(context, call, request), context.metadata.features_epoch
    answers: list[Answer] = []
    for number, topic_id in enumerate(ids):
        if number % STEP_NAMES == STEP_NAMES - 1:
            yield
        answers.append((yield from view.topic_of(topic_id)))
    return (yield from _kept(view, _respond(view, answers), offset, asked))


def _kept(
    view: _View, response: MetadataResponse, offset: int, asked: Asked
) -> Steps[MetadataResponse | Encoded]:
    """The reply in its bytes, unless it has errors, or there was news meanwhile."""
    metadata, version = view.context.metadata, view.call.version
    if asked is None or view.has_errors:
        return response
    encode = codec.encoder_in_steps(MetadataResponse, version)
    parts, _ = yield from encoded(encode, response, has_records=False)
    body = b"".join(part for part in parts if isinstance(part, bytes))
    if metadata.features_epoch == offset and asked[0] == view.principal:
        view.context.kept_replies.keep(offset, *asked, body)
    return Encoded(body)


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

    def __init__(self, context: Context, call: Call, request: MetadataRequest) -> None:
        self.context = context
        self.call = call
        self.request = request
        self.principal = call.connection.principal
        self.nodes = nodes_for(context.metadata.image, call.connection)
        self.reachable = {node.node_id for node in self.nodes}
        self.has_errors = False

    def topic_of(self, topic_id: bytes) -> Steps[Answer]:
        name = self.context.metadata.image.topic_name(topic_id)
        if name is None:
            self.has_errors = True
            return self._with_operations(
                Answer(error_code=Error.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
            )
        if not may(self.context, self.call, DESCRIBE, TOPIC, name):
            return self.hidden(None, topic_id)
        return (yield from self.topic(name))

    def hidden(self, name: str | None, topic_id: bytes = ZERO_UUID) -> Answer:
        """Of what may not be described, or be created."""
        self.has_errors = True
        code = Error.TOPIC_AUTHORIZATION_FAILED
        return Answer(error_code=code, name=name, topic_id=topic_id)

    def topic(self, name: str) -> Steps[Answer]:
        topic: Topic | None = self.context.metadata.image.topics.get(name)
        if topic is None:
            self.has_errors = True
            return self._with_operations(_missing(name))
        answer = Answer(
            error_code=Error.NONE,
            name=name,
            topic_id=topic.topic_id,
            is_internal=name in INTERNAL_TOPICS,
        )
        for number, index in enumerate(sorted(topic.partitions)):
            if number % STEP_NAMES == STEP_NAMES - 1:
                yield
            answer.partitions.append(self._partition(name, topic.partitions[index]))
        return self._with_operations(answer)

    def _with_operations(self, answer: Answer) -> Answer:
        if self.request.include_topic_authorized_operations:
            allowed = operations(self.context, self.call, TOPIC, answer.name or "")
            answer.topic_authorized_operations = allowed
        return answer

    def _partition(self, topic: str, state: PartitionState) -> MetadataResponse.Partition:
        offline = offline_replicas(self.context, topic, state, self.reachable)
        has_leader = state.leader in self.reachable and state.leader not in offline
        return MetadataResponse.Partition(
            error_code=Error.NONE if has_leader else self._leader_error(state),
            partition_index=state.index,
            leader_id=state.leader if has_leader else NO_LEADER,
            leader_epoch=state.leader_epoch,
            replica_nodes=list(state.replicas),
            isr_nodes=list(state.isr),
            offline_replicas=offline,
        )

    def _leader_error(self, state: PartitionState) -> Error:
        is_registered = state.leader in self.context.metadata.image.brokers
        is_hidden = is_registered and state.leader not in self.reachable
        if is_hidden and self.call.version >= LISTENER_ERROR_VERSION:
            return Error.LISTENER_NOT_FOUND
        return Error.LEADER_NOT_AVAILABLE


def _respond(view: _View, answers: list[Answer]) -> MetadataResponse:
    metadata, nodes = view.context.metadata, view.nodes
    response = MetadataResponse(
        cluster_id=metadata.cluster_id,
        controller_id=controller_among([node.node_id for node in nodes], metadata.controller_id),
        brokers=[
            MetadataResponse.Broker(
                node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in nodes
        ],
        topics=answers,
    )
    if view.request.include_cluster_authorized_operations:
        allowed = cluster_operations(view.context, view.call)
        response.cluster_authorized_operations = allowed
    return response


def controller_among(node_ids: list[int], preferred: int | None) -> int:
    """The broker that clients send changes to: any that lives takes them, so the same one."""
    return preferred if preferred in node_ids else min(node_ids, default=-1)
