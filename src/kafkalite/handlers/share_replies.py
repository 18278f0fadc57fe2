"""What the handlers of share groups have in common: whether they are served, and checks of what
members say of their records.

Owns the checks that need no partition. Decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkalite.coordinators.shares.records import ShareKey
from kafkalite.env.later import Later
from kafkalite.env.slicing import LOOKS_PER_STEP, Steps, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import current_leader, endpoints
from kafkalite.handlers.permission import may, require
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.security.acl import GROUP, READ, TOPIC
from kafkalite.sharing.acknowledging import REJECT, RENEW, Said
from kafkalite.sharing.sessions import Place

MOST_MEMBER_ID = 36
RENEWS_SINCE = 2
MOVED = (Error.NOT_LEADER_OR_FOLLOWER, Error.FENCED_LEADER_EPOCH)

Outcomes = dict[Place, KafkaError | None]


def serves_share_groups(context: Context) -> bool:
    """Whether the cluster has finalized KIP-932."""
    return context.metadata.image.features.get("share.version", 0) >= 1


def check_member(context: Context, call: Call, request: Any) -> None:
    """Raises KafkaError for who is nobody, or may not read in this group."""
    if not serves_share_groups(context):
        raise KafkaError(Error.UNSUPPORTED_VERSION)
    if request.group_id is None:
        raise KafkaError(Error.INVALID_REQUEST)
    require(context, call, READ, GROUP, request.group_id)
    check_member_id(request.member_id)


def check_member_id(member_id: str | None) -> None:
    if not member_id or len(member_id) > MOST_MEMBER_ID:
        raise KafkaError(Error.INVALID_REQUEST)


def said_in(topics: Iterable[Any]) -> dict[Place, list[Any]]:
    """Batches of acknowledgements by partition."""
    return {
        (bytes(topic.topic_id), one.partition_index): one.acknowledgement_batches
        for topic in topics
        for one in topic.partitions
    }


def acknowledge(
    context: Context, call: Call, request: Any, said: dict[Place, list[Any]]
) -> Later[Outcomes]:
    """What became of what a member said of its records, in each partition."""
    later = context.env.slices.later
    outcomes = in_steps(
        later(_acknowledge(context, call, request, place, batches)).then_ask(_as_it_is)
        for place, batches in said.items()
    )
    told = context.env.slices.soon(outcomes).then_ask(Later.all)
    return told.map(lambda errors: dict(zip(said, errors, strict=True)))


def _as_it_is(written: Later[KafkaError | None]) -> Later[KafkaError | None]:
    return written


def _acknowledge(
    context: Context, call: Call, request: Any, place: Place, batches: list[Any]
) -> Steps[Later[KafkaError | None]]:
    is_renewing = call.version >= RENEWS_SINCE and request.is_renew_ack
    most = RENEW if call.version >= RENEWS_SINCE else REJECT
    try:
        shown = yield from _shown(batches, most, is_renewing)
        check_topic(context, call, place)
        if not shown:
            return Later.of(None)
        shared = context.sharing.known(ShareKey(request.group_id, *place))
        if shared is None:
            raise _refused(Error.UNKNOWN_TOPIC_OR_PARTITION)
    except KafkaError as error:
        return Later.of(error.with_traceback(None))
    return (yield from shared.acknowledge(request.member_id, shown))


def _shown(batches: list[Any], most: int, is_renewing: bool) -> Steps[list[Said]]:
    """In order, each of some records, with a kind for all or for each of them."""
    shown: list[Said] = []
    previous = -1
    for number, one in enumerate(batches, 1):
        if number % LOOKS_PER_STEP == 0:
            yield
        kinds = tuple(one.acknowledge_types)
        size = one.last_offset - one.first_offset + 1
        is_wrong = (
            size < 1
            or one.first_offset < previous
            or not kinds
            or len(kinds) not in (1, size)
            or not 0 <= min(kinds) <= max(kinds) <= most
            or (RENEW in kinds and not is_renewing)
        )
        if is_wrong:
            raise KafkaError(Error.INVALID_REQUEST, Error.INVALID_REQUEST.message)
        previous = one.last_offset
        shown.append(Said(one.first_offset, one.last_offset, kinds))
    return shown


def check_topic(context: Context, call: Call, place: Place) -> str:
    """The topic's name, for who may read it, when there is such a partition."""
    image = context.metadata.image
    name = image.topic_name(place[0])
    if name is None:
        raise _refused(Error.UNKNOWN_TOPIC_ID)
    if not may(context, call, READ, TOPIC, name):
        raise _refused(Error.TOPIC_AUTHORIZATION_FAILED)
    if image.partition(name, place[1]) is None:
        raise _refused(Error.UNKNOWN_TOPIC_OR_PARTITION)
    return name


def _refused(code: Error) -> KafkaError:
    return KafkaError(code, code.message)


def name_leaders(
    context: Context, call: Call, kind: Any, answers: Iterable[tuple[Place, Any]]
) -> list[Any]:
    """Spares a member that came to the wrong leader the metadata round trip."""
    leaders: set[int] = set()
    for (topic_id, index), answer in answers:
        if answer.error_code in MOVED:
            leader_id, epoch = current_leader(context, "", topic_id, index)
            answer.current_leader = kind.CurrentLeader(leader_id=leader_id, leader_epoch=epoch)
            leaders.add(leader_id)
    if not leaders:
        return []
    return [
        kind.NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in endpoints(context, call, leaders)
    ]


def by_topic(kind: Any, answers: Iterable[tuple[Place, Any]]) -> list[Any]:
    """Entries of a response, a topic for those of its partitions."""
    topics: dict[bytes, Any] = {}
    for (topic_id, _), answer in answers:
        entry = topics.get(topic_id)
        if entry is None:
            entry = topics[topic_id] = kind.Response(topic_id=topic_id)
        entry.partitions.append(answer)
    return list(topics.values())
