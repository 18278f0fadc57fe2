"""FindCoordinator, versions 0–6: the broker that leads the partition a key falls on.

Versions: 1 transactional ids, 3 flexible, 4 many keys at once, 5 TRANSACTION_ABORTABLE, 6 share
groups (KIP-932). The internal topic is created when it is first asked for, and the answer waits
until it is there: Apache Kafka says COORDINATOR_NOT_AVAILABLE and has the client ask again.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.nodes import nodes_for
from kafkalite.coordinators.shards import partition_of
from kafkalite.env.later import Later
from kafkalite.env.slicing import InSteps, Steps, finish, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import is_offline
from kafkalite.handlers.permission import may, may_cluster
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse
from kafkalite.security.acl import CLUSTER_ACTION, DESCRIBE, GROUP, TRANSACTIONAL_ID

BATCHED_SINCE = 4
SHARE_SINCE = 6
GROUP_KEY_TYPE = 0
TRANSACTION_KEY_TYPE = 1
SHARE_KEY_TYPE = 2
STEP_KEYS = 25
INTERNAL_TOPICS = {
    GROUP_KEY_TYPE: "__consumer_offsets",
    TRANSACTION_KEY_TYPE: "__transaction_state",
    SHARE_KEY_TYPE: "__share_group_state",
}
_REFUSED = {
    GROUP_KEY_TYPE: Error.GROUP_AUTHORIZATION_FAILED,
    TRANSACTION_KEY_TYPE: Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    SHARE_KEY_TYPE: Error.CLUSTER_AUTHORIZATION_FAILED,
}

Coordinator = FindCoordinatorResponse.Coordinator


def find_coordinator(
    context: Context, call: Call, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | InSteps | Later[FindCoordinatorResponse | InSteps]:
    keys = request.coordinator_keys if call.version >= BATCHED_SINCE else [request.key]
    steps = _ask(context, call, request, keys)
    return InSteps(steps) if len(keys) > STEP_KEYS else finish(steps)


def _ask(
    context: Context, call: Call, request: FindCoordinatorRequest, keys: list[str]
) -> Steps[FindCoordinatorResponse | Later[FindCoordinatorResponse | InSteps]]:
    topic = INTERNAL_TOPICS.get(request.key_type)
    if topic is None:
        return (yield from _all_failed(call, keys, Error.INVALID_REQUEST))
    if request.key_type == SHARE_KEY_TYPE and call.version < SHARE_SINCE:
        return (yield from _all_failed(call, keys, Error.INVALID_REQUEST, ""))
    if request.key_type == SHARE_KEY_TYPE and not may_cluster(context, call, CLUSTER_ACTION):
        return (yield from _all_failed(call, keys, _REFUSED[SHARE_KEY_TYPE]))

    def found(_: object) -> FindCoordinatorResponse | InSteps:
        steps = _find_all(context, call, request, topic, keys)
        return InSteps(steps) if len(keys) > STEP_KEYS else finish(steps)

    is_there = topic in context.metadata.image.topics
    if is_there or not (yield from _may_any(context, call, request.key_type, keys)):
        return (yield from _find_all(context, call, request, topic, keys))
    return context.auto_creation.create_internal(topic).map(found)


def _may_any(context: Context, call: Call, key_type: int, keys: list[str]) -> Steps[bool]:
    for number, key in enumerate(keys, 1):
        if _may(context, call, key_type, key):
            return True
        if number % STEP_KEYS == 0:
            yield
    return False


def _all_failed(
    call: Call, keys: list[str], code: Error, why: str | None = None
) -> Steps[FindCoordinatorResponse]:
    """All for the same reason."""
    text = code.message if why is None else why
    return _respond(call, (yield from in_steps(_failed(key, code, text) for key in keys)))


def _find_all(
    context: Context, call: Call, request: FindCoordinatorRequest, topic: str, keys: list[str]
) -> Steps[FindCoordinatorResponse]:
    answers = []
    for number, key in enumerate(keys):
        if number % STEP_KEYS == STEP_KEYS - 1:
            yield
        if not _may(context, call, request.key_type, key):
            answers.append(_failed(key, _REFUSED[request.key_type]))
            continue
        if request.key_type == GROUP_KEY_TYPE:
            context.groups.looked_up(key, call.connection.peer_address)
        answers.append(_find(context, call, request, topic, key))
    return _respond(call, answers)


def _may(context: Context, call: Call, key_type: int, key: str) -> bool:
    """Of share groups it was asked before, for all of them."""
    kind = {GROUP_KEY_TYPE: GROUP, TRANSACTION_KEY_TYPE: TRANSACTIONAL_ID}.get(key_type)
    return kind is None or may(context, call, DESCRIBE, kind, key)


def _find(
    context: Context, call: Call, request: FindCoordinatorRequest, topic: str, key: str
) -> Coordinator:
    if request.key_type == SHARE_KEY_TYPE and not _is_share_key(key):
        return _failed(key, Error.INVALID_REQUEST)
    image = context.metadata.image
    found = image.topics.get(topic)
    if found is None:
        return _failed(key, Error.COORDINATOR_NOT_AVAILABLE)
    state = image.partition(topic, partition_of(key, len(found.partitions)))
    if state is None or is_offline(context, topic, state.index, state.leader):
        return _failed(key, Error.COORDINATOR_NOT_AVAILABLE)
    for node in nodes_for(context.metadata.image, call.connection):
        if node.node_id == state.leader:
            return Coordinator(key=key, node_id=node.node_id, host=node.host, port=node.port)
    return _failed(key, Error.COORDINATOR_NOT_AVAILABLE)


def _is_share_key(key: str) -> bool:
    """A group, a topic id and a partition, with colons; the group's id may hold colons too."""
    parts = key.rsplit(":", 2)
    return len(parts) == 3 and all(parts) and parts[2].isdecimal()


def _failed(key: str, code: Error, why: str = "") -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=why
    )


def _respond(call: Call, coordinators: list[Coordinator]) -> FindCoordinatorResponse:
    if call.version >= BATCHED_SINCE:
        return FindCoordinatorResponse(coordinators=coordinators)
    one = coordinators[0]
    code = Error(one.error_code)
    return FindCoordinatorResponse(
        error_code=code,
        error_message="NONE" if code == Error.NONE else code.message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )
