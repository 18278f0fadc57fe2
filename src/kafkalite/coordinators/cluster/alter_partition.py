"""Decides on the in-sync replicas of partitions, as their leaders ask for them.

Owns Kafka's answers to a leader that has not heard of everything yet, and to one that names who may
not be in sync: a broker that is fenced, is about to stop, or is not in the life that it fetched in.
One bad partition in a request never fails its siblings.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.image import changed_partition
from kafkalite.coordinators.cluster.partition_change import (
    RECOVERED,
    RECOVERING,
    Target,
    change_partition,
    online_election,
)
from kafkalite.coordinators.cluster.states import PartitionState
from kafkalite.coordinators.cluster.view import View, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import PartitionChangeRecord

NO_EPOCH = -1
DECIDED_PER_STEP = 8  # partitions

Place = tuple[bytes, int]  # topic id and index


@dataclass(slots=True, frozen=True)
class WantedIsr:
    """What a leader asks for a partition, each replica with the epoch of its broker."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    leader_recovery_state: int = RECOVERED


Outcomes = dict[Place, "PartitionState | Error"]


@dataclass(slots=True, eq=False)
class AlterPartition(Event[Outcomes]):
    """Asked by the leader of these partitions; answered for each with what it is now, or why it
    stays."""

    broker_id: int
    broker_epoch: int
    partitions: dict[Place, WantedIsr]


def alter_partition(view: View, asked: AlterPartition) -> Steps[Effects]:
    _check_broker(view, asked.broker_id, asked.broker_epoch)
    records: list[PartitionChangeRecord] = []
    outcomes: Outcomes = {}
    for count, (place, wanted) in enumerate(asked.partitions.items(), 1):
        try:
            outcomes[place] = _alter(view, asked.broker_id, place, wanted, records)
        except KafkaError as error:
            outcomes[place] = Error(error.code)
        if count % DECIDED_PER_STEP == 0:
            yield
    return (yield from decided_in_steps(view, records, outcomes))


def _check_broker(view: View, broker_id: int, broker_epoch: int) -> None:
    broker = view.image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(Error.BROKER_ID_NOT_REGISTERED)
    if broker.epoch != broker_epoch:
        raise KafkaError(Error.STALE_BROKER_EPOCH)


def _alter(
    view: View,
    broker_id: int,
    place: Place,
    wanted: WantedIsr,
    records: list[PartitionChangeRecord],
) -> PartitionState | Error:
    topic = view.image.by_id.get(place[0])
    if topic is None:
        raise KafkaError(Error.UNKNOWN_TOPIC_ID)
    state = topic.partitions.get(place[1])
    if state is None:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    _check(view, broker_id, state, wanted)
    target = Target.of(state)
    target.isr = [replica for replica, _ in wanted.isr]
    target.election = online_election(view, state)
    target.recovery = wanted.leader_recovery_state
    record = change_partition(view, state, target)
    if record is None:
        return state
    records.append(record)
    after = changed_partition(state, record)
    # The end of a move may have chosen another one, which is written and told at once.
    return after if after.leader == broker_id else Error.NEW_LEADER_ELECTED


def _check(view: View, broker_id: int, state: PartitionState, wanted: WantedIsr) -> None:
    isr = [replica for replica, _ in wanted.isr]
    is_ahead = (
        wanted.leader_epoch > state.leader_epoch or wanted.partition_epoch > state.partition_epoch
    )
    is_no_isr = len(set(isr)) != len(isr) or not set(isr) <= set(state.replicas)
    is_recovering = wanted.leader_recovery_state == RECOVERING
    was_recovered = state.leader_recovery_state == RECOVERED
    is_wrong = (
        is_no_isr
        or state.leader not in isr
        or (is_recovering and (len(isr) > 1 or was_recovered))
    )
    code = Error.NONE
    if is_ahead:
        code = Error.NOT_CONTROLLER
    elif wanted.leader_epoch < state.leader_epoch:
        code = Error.FENCED_LEADER_EPOCH
    elif broker_id != state.leader:
        code = Error.INVALID_REQUEST
    elif wanted.partition_epoch < state.partition_epoch:
        code = Error.INVALID_UPDATE_VERSION
    elif is_wrong:
        code = Error.INVALID_REQUEST
    elif not all(_may_join(view, replica, epoch) for replica, epoch in wanted.isr):
        code = Error.INELIGIBLE_REPLICA
    if code is not Error.NONE:
        raise KafkaError(code)


def _may_join(view: View, broker_id: int, epoch: int) -> bool:
    broker = view.image.brokers.get(broker_id)
    return broker is not None and broker.is_active and epoch in (NO_EPOCH, broker.epoch)
