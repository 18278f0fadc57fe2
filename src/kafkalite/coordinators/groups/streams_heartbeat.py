"""StreamsGroupHeartbeat: joining, living and reconciling in a streams group (KIP-1071).

Owns one heartbeat from its checks to its answer: the member, the topology, its topics, the group's
target, the member's next step. Leaving is `streams_leave`'s. Everything that changes is a record;
but for timers, what the topology comes to, who wants all to end, and the count of endpoints.
"""

from __future__ import annotations

from dataclasses import replace

from kafkalite.coordinators.groups import records, streams_records
from kafkalite.coordinators.groups.classic_group import ClassicGroup
from kafkalite.coordinators.groups.classic_timers import arm_session
from kafkalite.coordinators.groups.consumer_group import AWAY_EPOCH, JOINING_EPOCH, LEFT_EPOCH
from kafkalite.coordinators.groups.consumer_leave import rebalance_key
from kafkalite.coordinators.groups.events import RebalanceExpired, StreamsBeat, StreamsHeartbeat
from kafkalite.coordinators.groups.state import GroupsState
from kafkalite.coordinators.groups.streams_checks import check_epoch, check_request, check_tasks
from kafkalite.coordinators.groups.streams_endpoints import endpoints_of
from kafkalite.coordinators.groups.streams_group import (
    NO_TASKS,
    Held,
    HeldTasks,
    Places,
    StreamsGroup,
    StreamsMember,
    StreamsMemberState,
    Tasks,
)
from kafkalite.coordinators.groups.streams_leave import leave_streams
from kafkalite.coordinators.groups.streams_reconciliation import TaskGoal, reconcile_tasks
from kafkalite.coordinators.groups.streams_target import (
    STANDBY_REPLICAS,
    StreamsDraft,
    begin_delay,
    retarget_streams,
)
from kafkalite.coordinators.groups.streams_topics import configure
from kafkalite.coordinators.groups.streams_topology import (
    Configured,
    Status,
    Topology,
    as_record,
    beyond_meaning,
    is_same,
)
from kafkalite.coordinators.groups.target import metadata_hash
from kafkalite.coordinators.groups.turn import Turn
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse

NOT_GIVEN = -1
NOT_VALIDATED = -1

Response = StreamsGroupHeartbeatResponse


def streams_heartbeat(state: GroupsState, turn: Turn, event: StreamsHeartbeat) -> Steps[None]:
    request = event.request
    check_request(request)
    if request.member_epoch in (LEFT_EPOCH, AWAY_EPOCH):
        leave_streams(state, turn, request)
        return
    group = _group(state, turn, request)
    old = _find_member(group, request)
    new = _updated(old, event)
    must_bump = new != old
    if must_bump:
        turn.write(streams_records.member(group.group_id, new))
    topology = yield from _topology(turn, group, request)
    statuses = _staleness(group, new)
    draft = yield from _drafted(state, turn, group, topology, new, must_bump)
    yield from check_tasks(draft.configured, request)
    draft.statuses = statuses
    begin_delay(state, turn, group)
    yield from retarget_streams(state, turn, draft)
    moved = yield from _reconciled(turn, draft, new, request)
    timeout_ms = state.settings.streams_session_timeout_ms(group.group_id)
    arm_session(turn, group.group_id, new.member_id, timeout_ms)
    if request.shutdown_application and group.shutdown_by is None:
        group.shutdown_by = new.member_id
    response = yield from _answer(state, draft, request, old, moved)
    turn.reply(StreamsBeat(response, draft.configured.missing))


# -- the group and the member ----------------------------------------------------------------------


def _group(state: GroupsState, turn: Turn, request: StreamsGroupHeartbeatRequest) -> StreamsGroup:
    """The group, or a new one that the records will make."""
    group_id, is_joining = request.group_id, request.member_epoch == JOINING_EPOCH
    group = state.groups.get(group_id)
    if isinstance(group, StreamsGroup):
        limit = state.settings.streams_max_size
        if is_joining and len(group.members) >= limit:
            raise KafkaError(
                Error.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {limit} members.",
            )
        return group
    if group is None and not is_joining:
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
    if isinstance(group, ClassicGroup) and group.is_empty and is_joining:
        if group.is_stored:
            turn.write(records.group_tombstone(group_id))
    elif group is not None:
        raise KafkaError(Error.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    return StreamsGroup(group_id)


def _find_member(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsMember:
    if request.member_epoch == JOINING_EPOCH:
        return group.members.get(request.member_id, StreamsMember(request.member_id))
    member = group.member(request.member_id)
    check_epoch(member, request)
    return member


def _updated(old: StreamsMember, event: StreamsHeartbeat) -> StreamsMember:
    """What a request leaves out stays as it was."""
    request = event.request
    topology, endpoint = request.topology, request.user_endpoint
    timeout_ms, tags = request.rebalance_timeout_ms, old.client_tags
    if request.client_tags is not None:
        tags = {one.key: one.value for one in request.client_tags}
        if len(tags) < len(request.client_tags):
            raise beyond_meaning("The keys of client tags must differ.")
    return replace(
        old,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == NOT_GIVEN else timeout_ms,
        topology_epoch=old.topology_epoch if topology is None else topology.epoch,
        client_id=event.client_id,
        client_host=event.client_host,
        process_id=old.process_id if request.process_id is None else request.process_id,
        client_tags=tags,
        endpoint=old.endpoint if endpoint is None else (endpoint.host, endpoint.port),
    )


# -- the topology ----------------------------------------------------------------------------------


def _topology(
    turn: Turn, group: StreamsGroup, request: StreamsGroupHeartbeatRequest
) -> Steps[Topology]:
    """The group's, which its first member gives it."""
    if request.topology is None:
        if group.topology is None:
            raise beyond_meaning("The topology is null and the group topology is also null.")
        return group.topology
    value = yield from as_record(request.topology)
    topology, known = Topology.of(value), group.topology
    if known is None:
        turn.write((yield from streams_records.topology(group.group_id, value)))
        return topology
    if known.epoch <= topology.epoch and not (yield from is_same(known, topology)):
        raise KafkaError(Error.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


def _staleness(group: StreamsGroup, member: StreamsMember) -> list[tuple[Status, str]]:
    known = group.topology
    if known is None or member.topology_epoch >= known.epoch:
        return []
    return [(
        Status.STALE_TOPOLOGY,
        f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch"
        f" {known.epoch}.",
    )]  # fmt: skip


def _drafted(
    state: GroupsState,
    turn: Turn,
    group: StreamsGroup,
    topology: Topology,
    member: StreamsMember,
    must_bump: bool,
) -> Steps[StreamsDraft]:
    """Looks at the topics of the topology, and writes a new epoch of the group where one is due."""
    hashed, configured = yield from _looked_up(state, group, topology)
    validated = topology.epoch if configured.is_ready else NOT_VALIDATED
    replicas = state.settings.streams_num_standby_replicas(group.group_id)
    configs = {STANDBY_REPLICAS: str(replicas)}
    epoch = group.epoch
    must_bump = must_bump or (
        hashed != group.metadata_hash
        or validated != group.validated_topology_epoch
        or configs != group.assignment_configs
    )
    # Only a look that found nothing is sure to be the last: an append may yet fail.
    group.must_refresh = must_bump
    if must_bump:
        epoch += 1
        turn.write(streams_records.group_epoch(group, epoch, hashed, validated, configs))
    return StreamsDraft(
        group, epoch, {**group.members, member.member_id: member}, configured, configs,
        group.assignment_epoch, group.targets,
    )  # fmt: skip


def _looked_up(
    state: GroupsState, group: StreamsGroup, topology: Topology
) -> Steps[tuple[int, Configured]]:
    """The number of the topology's topics, and what it comes to with them."""
    configured = group.configured
    if group.topology is not None and configured is not None and not group.must_refresh:
        return group.metadata_hash, configured
    hashed = yield from metadata_hash(state, sorted(topology.required))
    if group.topology is None or configured is None or hashed != group.metadata_hash:
        configured = group.configured = yield from configure(topology, state.topics)
    return hashed, configured


# -- reconciliation --------------------------------------------------------------------------------


def _reconciled(
    turn: Turn, draft: StreamsDraft, member: StreamsMember, request: StreamsGroupHeartbeatRequest
) -> Steps[StreamsMember]:
    if member.is_reconciled_to(draft.assignment_epoch):
        return member
    target = draft.targets.get(member.member_id, NO_TASKS)
    goal = TaskGoal(draft.assignment_epoch, target, _owned(request), draft.group)
    moved = yield from reconcile_tasks(member, goal)
    if moved == member:
        return member
    group_id = draft.group.group_id
    turn.write((yield from streams_records.current(group_id, moved)))
    _arm_rebalance(turn, group_id, moved)
    return moved


def _owned(request: StreamsGroupHeartbeatRequest) -> Tasks | None:
    """What the member says it has."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(*map(_places, (active, standby, warmup)))


def _places(said: list[StreamsGroupHeartbeatRequest.TaskIds]) -> Places:
    """Said twice, it is not known what a member has of a subtopology: nothing may be taken as
    given back."""
    places = {one.subtopology_id: tuple(one.partitions) for one in said}
    if len(places) < len(said):
        raise beyond_meaning("The subtopologies of tasks must differ.")
    return places


def _says_otherwise(owned: Tasks | None, assigned: HeldTasks) -> bool:
    """Whether a member that says what it has says something else than what was given to it."""
    if owned is None:
        return False
    return any(
        {name: set(has) for name, has in said.items() if has}
        != {name: tasks.keys() for name, tasks in held.items() if tasks}
        for said, held in zip(owned, assigned, strict=True)
    )


# -- the answer ------------------------------------------------------------------------------------


def _answer(
    state: GroupsState,
    draft: StreamsDraft,
    request: StreamsGroupHeartbeatRequest,
    old: StreamsMember,
    new: StreamsMember,
) -> Steps[Response]:
    """The assignment is told when it has changed, and to a member that joins; and once more to one
    that has missed it, which Apache Kafka leaves as it is until the group changes."""
    group = draft.group
    response = Response(
        member_id=new.member_id,
        member_epoch=new.member_epoch,
        heartbeat_interval_ms=state.settings.streams_heartbeat_interval_ms(group.group_id),
        status=_statuses(draft),
    )
    is_news = request.member_epoch == JOINING_EPOCH or old.assigned != new.assigned
    if is_news or _says_otherwise(_owned(request), new.assigned):
        response.active_tasks = _told(new.assigned.active)
        response.standby_tasks = _told(new.assigned.standby)
        response.warmup_tasks = _told(new.assigned.warmup)
    if is_news and new.endpoint is not None:
        group.endpoint_epoch += 1
    if group.endpoint_epoch != request.endpoint_information_epoch:
        members = [one for one in group.members.values() if one.member_id != new.member_id]
        response.partitions_by_user_endpoint = yield from endpoints_of(
            [*members, new], draft.configured, state.topics
        )
    if group.group_id in state.groups:  # of a group that is only just made nothing is kept
        response.endpoint_information_epoch = group.endpoint_epoch
    return response


def _statuses(draft: StreamsDraft) -> list[Response.Status]:
    statuses = draft.statuses
    wrong, by = draft.configured.wrong, draft.group.shutdown_by
    if wrong is not None:
        statuses = [*statuses, (wrong.status, wrong.detail)]
    if by is not None:
        why = (
            f"Streams group member {by} encountered a fatal error and requested a shutdown for the"
            " entire application."
        )
        statuses = [*statuses, (Status.SHUTDOWN_APPLICATION, why)]
    return [Response.Status(status_code=code, status_detail=why) for code, why in statuses]


def _told(tasks: Held) -> list[Response.TaskIds]:
    return [
        Response.TaskIds(subtopology_id=each, partitions=sorted(partitions))
        for each, partitions in tasks.items()
    ]


def resume_streams(state: GroupsState, turn: Turn, group: StreamsGroup) -> None:
    """After a restart every member has a session to show up, and a rebalance to finish."""
    timeout_ms = state.settings.streams_session_timeout_ms(group.group_id)
    for member in group.members.values():
        arm_session(turn, group.group_id, member.member_id, timeout_ms)
        _arm_rebalance(turn, group.group_id, member)


def _arm_rebalance(turn: Turn, group_id: str, member: StreamsMember) -> None:
    """Who is to give tasks back has so much time for it."""
    key = rebalance_key(group_id, member.member_id)
    if member.state is StreamsMemberState.UNREVOKED_TASKS:
        expiry = RebalanceExpired(group_id, member.member_id, member.member_epoch)
        turn.arm(key, member.rebalance_timeout_ms, expiry)
    else:
        turn.cancel(key)
