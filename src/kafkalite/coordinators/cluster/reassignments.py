"""Decides on moves of partitions to other replicas, and on calling them off.

Owns the steps of a move: newcomers are added, and once they are in sync those who leave are
removed. A move that only puts replicas in another order is over at once.
"""

from __future__ import annotations

from kafkalite.config import topic_value
from kafkalite.coordinators.cluster.assignments import check_assignment
from kafkalite.coordinators.cluster.partition_change import Election, Target, change_partition
from kafkalite.coordinators.cluster.states import TOPIC, PartitionState
from kafkalite.coordinators.cluster.view import View, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    PartitionChangeRecord,
)

_AT_ONCE = 8  # partitions
Response = AlterPartitionReassignmentsResponse


def alter_partition_reassignments(
    view: View, request: AlterPartitionReassignmentsRequest
) -> Steps[Effects]:
    """Begins moves, and calls off those for which no replicas are given."""
    records: list[PartitionChangeRecord] = []
    if not request.topics:
        # So Apache Kafka.
        return Effects(reply=Response(error_code=Error.NONE, error_message=""))
    response = Response(
        error_code=Error.NONE,
        error_message=None,
        allow_replication_factor_change=request.allow_replication_factor_change,
    )
    may_change_factor = request.allow_replication_factor_change
    for topic in request.topics:
        answer = Response.Response(name=topic.name)
        for asked in topic.partitions:
            result = Response.Partition(
                partition_index=asked.partition_index, error_code=Error.NONE, error_message=None
            )
            try:
                state = _find(view, topic.name, asked.partition_index)
                record = _alter(view, topic.name, state, asked.replicas, may_change_factor)
                records += [] if record is None else [record]
            except KafkaError as error:
                result.error_code, result.error_message = error.code, error.message
            answer.partitions.append(result)
            if len(answer.partitions) % _AT_ONCE == 0:
                yield
        response.responses.append(answer)
        yield
    return (yield from decided_in_steps(view, records, response))


def _find(view: View, name: str, index: int) -> PartitionState:
    if name not in view.image.topics:
        why = f"Unable to find a topic named {name}."
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, why)
    state = view.image.partition(name, index)
    if state is None:
        why = f"Unable to find partition {name}:{index}."
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, why)
    return state


def _alter(
    view: View,
    name: str,
    state: PartitionState,
    replicas: list[int] | None,
    may_change_factor: bool,
) -> PartitionChangeRecord | None:
    if replicas is None:
        return _cancel(view, name, state)
    check_assignment(view, replicas, None)
    factor = len(set(state.replicas) - set(state.removing_replicas))
    if not may_change_factor and len(replicas) != factor:
        why = f"The replication factor is changed from {factor} to {len(replicas)}"
        raise KafkaError(Error.INVALID_REPLICATION_FACTOR, why)
    target = Target.of(state)
    leaving = sorted(set(state.replicas) - set(replicas))
    coming = sorted(set(replicas) - set(state.replicas))
    target.replicas = [*replicas, *leaving]
    target.removing = leaving or target.removing
    target.adding = coming or target.adding
    return change_partition(view, state, target)


def _cancel(view: View, name: str, state: PartitionState) -> PartitionChangeRecord | None:
    if not state.is_reassigning:
        raise KafkaError(Error.NO_REASSIGNMENT_IN_PROGRESS)
    target = Target.of(state)
    target.replicas = [each for each in state.replicas if each not in state.adding_replicas]
    target.isr = [each for each in state.isr if each not in state.adding_replicas]
    target.adding, target.removing = [], []
    settings = view.image.config(TOPIC, name)
    may_be_unclean = bool(topic_value(view.config, settings, "unclean.leader.election.enable"))
    if not target.isr and not may_be_unclean:
        why = (
            f"Unable to revert partition assignment for {name}:{state.index} because it would "
            "require an unclean leader election."
        )
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, why)
    target.isr = target.isr or target.replicas[:1]
    target.election = Election.UNCLEAN if may_be_unclean else Election.ONLINE
    return change_partition(view, state, target)
