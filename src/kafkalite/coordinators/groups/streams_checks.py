"""What a heartbeat of a streams group may say (KIP-1071).

Owns the refusals of requests that make no sense, in Apache Kafka's words and order. Changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.coordinators.groups.assignors import Rest
from kafkalite.coordinators.groups.consumer_group import AWAY_EPOCH, JOINING_EPOCH
from kafkalite.coordinators.groups.streams_group import Held, StreamsMember
from kafkalite.coordinators.groups.streams_topology import Configured
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import StreamsGroupHeartbeatRequest

NOT_GIVEN = -1

Request = StreamsGroupHeartbeatRequest
Said = Iterable[Request.TaskIds] | None


def check_request(request: Request) -> None:
    for why, is_wrong in (
        *_unsupported(request), *_empty_names(request), *_of_joining(request), *_of_tasks(request)
    ):  # fmt: skip
        if is_wrong:
            raise KafkaError(Error.INVALID_REQUEST, why)
    if request.member_epoch == JOINING_EPOCH:
        _check_changelogs(request)


def _unsupported(request: Request) -> list[tuple[str, bool]]:
    """What Apache Kafka 4.3 does not do either."""
    topology = request.topology
    has_pattern = topology is not None and any(
        one.source_topic_regex for one in topology.subtopologies
    )
    return [
        ("Static membership is not yet supported.", request.instance_id is not None),
        ("TaskOffsets are not supported yet.", request.task_offsets is not None),
        ("TaskEndOffsets are not supported yet.", request.task_end_offsets is not None),
        ("WarmupTasks are not supported yet.", bool(request.warmup_tasks)),
        ("Regular expressions for source topics are not supported yet.", has_pattern),
    ]


def _empty_names(request: Request) -> list[tuple[str, bool]]:
    named = (
        ("MemberId", request.member_id), ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    )  # fmt: skip
    return [
        (f"{what} can't be empty.", text is not None and not text.strip()) for what, text in named
    ]


def _of_joining(request: Request) -> list[tuple[str, bool]]:
    epoch = request.member_epoch
    if epoch == JOINING_EPOCH:
        return [
            (
                "RebalanceTimeoutMs must be provided in first request.",
                request.rebalance_timeout_ms == NOT_GIVEN,
            ),
            ("ActiveTasks must be empty when (re-)joining.", not _is_none(request.active_tasks)),
            ("StandbyTasks must be empty when (re-)joining.", not _is_none(request.standby_tasks)),
            ("WarmupTasks must be empty when (re-)joining.", not _is_none(request.warmup_tasks)),
            ("Topology must be non-null when (re-)joining.", request.topology is None),
        ]
    return [
        ("InstanceId can't be null.", epoch == AWAY_EPOCH),
        (
            f"MemberEpoch is {epoch}, but must be greater than or equal to -2.",
            epoch < AWAY_EPOCH,
        ),
    ]


def _is_none(tasks: Said) -> bool:
    """Joining means to have nothing, and to say so."""
    return tasks is not None and not list(tasks)


def _of_tasks(request: Request) -> list[tuple[str, bool]]:
    kinds = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    said = [tasks is not None for tasks in kinds]
    return [
        ("If one task-type is non-null, all must be non-null.", any(said) and not all(said)),
        (
            "Topology can only be provided when (re-)joining.",
            request.member_epoch != JOINING_EPOCH and request.topology is not None,
        ),
    ]


def _check_changelogs(request: Request) -> None:
    topology = request.topology
    for one in () if topology is None else topology.subtopologies:
        for topic in one.state_changelog_topics:
            if topic.partitions != 0:
                raise KafkaError(
                    Error.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it"
                    f" is set to {topic.partitions}.",
                )


def check_epoch(member: StreamsMember, request: Request) -> None:
    """The epoch must be the member's, or the one before if its answer may have been lost."""
    epoch, known = request.member_epoch, member.member_epoch
    if epoch == known:
        return
    is_retry = epoch < known and epoch == member.previous_member_epoch
    has = member.assigned
    if is_retry and (
        _is_within(request.active_tasks, has.active)
        and _is_within(request.standby_tasks, has.standby)
        and _is_within(request.warmup_tasks, has.warmup)
    ):
        return
    size = "greater" if epoch > known else "smaller"
    raise KafkaError(
        Error.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {size} member epoch ({epoch}) than the one known by"
        f" the group coordinator ({known})."
        " The member must abandon all its partitions and rejoin.",
    )


def _is_within(said: Said, has: Held) -> bool:
    if said is None:
        return False
    return all(has.get(one.subtopology_id, {}).keys() >= set(one.partitions) for one in said)


def check_tasks(configured: Configured, request: Request) -> Steps[None]:
    """Tasks that a member has must be of the topology."""
    if not configured.is_ready:
        return
    rest = Rest()
    for said in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for one in said or ():
            _check_task(configured, one)
            if rest.after(1 + len(one.partitions)):
                yield


def _check_task(configured: Configured, said: Request.TaskIds) -> None:
    name = said.subtopology_id
    subtopology = configured.subtopologies.get(name)
    if subtopology is None:
        why = f"Subtopology {name} does not exist in the topology."
        raise KafkaError(Error.INVALID_REQUEST, why)
    for index in said.partitions:
        if not 0 <= index < subtopology.tasks:
            raise KafkaError(
                Error.INVALID_REQUEST,
                f"Task {index} for subtopology {name} is invalid. Number of tasks for this"
                f" subtopology: {subtopology.tasks}",
            )
