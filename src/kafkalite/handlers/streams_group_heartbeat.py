"""StreamsGroupHeartbeat, version 0: a member of a streams group joins, lives, reconciles and leaves
(KIP-1071).

Internal topics that are missing are created for who may create topics; nobody waits for them: the
member is told that they are missing, and asks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafkalite.coordinators.cluster.create_topics import check_topic_name
from kafkalite.coordinators.cluster.view import INTERNAL_TOPICS
from kafkalite.coordinators.groups.events import StreamsBeat, StreamsHeartbeat
from kafkalite.coordinators.groups.streams_topology import InternalTopic, Status
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, LOOKS_PER_STEP, InSteps, Steps, begun, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.group_replies import client_host_of, client_id_of, serves_streams_groups
from kafkalite.handlers.permission import divide, may_cluster, permitted, require
from kafkalite.handlers.permits import permits_unasked
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from kafkalite.security.acl import CREATE, DESCRIBE, GROUP, READ, TOPIC

DEFAULT_FACTOR = -1
SHOWN_FAILURES = 3

Request = StreamsGroupHeartbeatRequest
Response = StreamsGroupHeartbeatResponse


def streams_group_heartbeat(
    context: Context, call: Call, request: Request
) -> Response | InSteps | Later[Response | InSteps]:
    if not serves_streams_groups(context):
        return Response(error_code=Error.UNSUPPORTED_VERSION)
    require(context, call, READ, GROUP, request.group_id)
    if request.topology is None:
        return _beat(context, call, request)
    return InSteps(_checked_beat(context, call, request, request.topology))


def _checked_beat(
    context: Context, call: Call, request: Request, topology: Request.Topology
) -> Steps[Response | Later[Response | InSteps]]:
    names: dict[str, None] = {}
    for number, name in enumerate(_names(topology), 1):
        names[name] = None
        if number % LOOKS_PER_STEP == 0:
            yield
    why = yield from _wrong_names(names)
    if why is not None:
        return Response(error_code=Error.STREAMS_INVALID_TOPOLOGY, error_message=why)
    if context.authorizer is not None:
        allowed = yield from permitted(context, call, DESCRIBE, TOPIC, names)
        if len(allowed) < len(names):
            return Response(error_code=Error.TOPIC_AUTHORIZATION_FAILED)
    return _beat(context, call, request)


def _names(topology: Request.Topology) -> Iterator[str]:
    for one in topology.subtopologies:
        yield from one.source_topics
        yield from one.repartition_sink_topics
        for topic in (*one.repartition_source_topics, *one.state_changelog_topics):
            yield topic.name


def _wrong_names(names: Iterable[str]) -> Steps[str | None]:
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        listed = ",".join(internal)
        return f"Use of Kafka internal topics {listed} in a Kafka Streams topology is prohibited."
    invalid: list[str] = []
    for number, name in enumerate(names, 1):
        if not _is_valid(name):
            invalid.append(name)
        if number % ELEMENTS_PER_STEP == 0:
            yield
    if invalid:
        return f"Topic names {','.join(invalid)} are not valid topic names."
    return None


def _is_valid(name: str) -> bool:
    try:
        check_topic_name(name)
    except KafkaError:
        return False
    return True


def _beat(context: Context, call: Call, request: Request) -> Later[Response | InSteps]:
    event = StreamsHeartbeat(request, client_id_of(call), client_host_of(call))

    def respond(beat: StreamsBeat | KafkaError) -> Response | InSteps:
        if isinstance(beat, KafkaError):
            is_unknown = beat.code == Error.UNKNOWN_SERVER_ERROR
            why = None if is_unknown else beat.message
            return Response(error_code=beat.code, error_message=why)
        if not beat.missing:
            return beat.response
        told: Response | InSteps = begun(_with_topics(context, call, request.group_id, beat))
        return told

    return context.groups.submit(request.group_id, event).map(respond)


# -- internal topics -------------------------------------------------------------------------------


def _with_topics(
    context: Context, call: Call, group_id: str, beat: StreamsBeat
) -> Steps[Response]:
    """Has the topics that are missing made, and tells why some were not."""
    names = list(beat.missing)
    if context.authorizer is not None and not may_cluster(context, call, CREATE, is_quiet=True):
        refused = set[str]()
        yield from divide(context, call, CREATE, TOPIC, names, set(), refused)
        if refused:
            listed = ", ".join(name for name in names if name in refused)
            _add(beat.response, f"; Unauthorized to CREATE on topics {listed}.")
            return beat.response
    interval_ms = context.groups.streams_heartbeat_interval_ms(group_id)
    asked = yield from in_steps(map(_asked, beat.missing.values()))
    context.streams_topics.create(asked, 2 * interval_ms, permits_unasked(call))
    failures = context.streams_topics.failures(names)
    if failures:
        shown = ", ".join(f"{name} ({why})" for name, why in [*failures.items()][:SHOWN_FAILURES])
        more = len(failures) - SHOWN_FAILURES
        and_more = f" and {more} more" if more > 0 else ""
        _add(beat.response, f"; Creation failed: {shown}{and_more}.")
    return beat.response


def _asked(topic: InternalTopic) -> CreateTopicsRequest.Topic:
    kind = CreateTopicsRequest
    return kind.Topic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or DEFAULT_FACTOR,
        configs=[kind.Config(name=name, value=value) for name, value in topic.configs.items()],
    )


def _add(response: Response, detail: str) -> None:
    """To what is told of topics that are missing."""
    for status in response.status or ():
        if status.status_code == Status.MISSING_INTERNAL_TOPICS:
            status.status_detail += detail
