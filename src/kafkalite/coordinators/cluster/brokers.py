"""Decides on brokers: their registration, their coming and going, and blocks of producer ids.

Owns what becomes of a broker's partitions when it leaves and when it is back. A broker's epoch is
the offset of its registration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from kafkalite.coordinators.cluster.deciding import View, decided
from kafkalite.coordinators.cluster.features import SUPPORTED
from kafkalite.coordinators.cluster.image import NO_LEADER, BrokerState, EndPoint, PartitionState
from kafkalite.coordinators.cluster.partition_change import Target, change_partition
from kafkalite.coordinators.cluster.writing import registration_of
from kafkalite.coordinators.effects import Effects
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    UnregisterBrokerRecord,
)

SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
PRODUCER_ID_BLOCK: Final = 1000
# In a registration's change: what to do with a mark. Nought leaves it.
LOWER, RAISE = -1, 1


@dataclass(slots=True)
class RegisterBroker:
    """A broker that has started; the reply is its epoch."""

    broker_id: int
    endpoints: list[EndPoint]
    rack: str | None
    log_dirs: list[bytes]
    # Whether its last stop was clean, so that its logs are as it had told them.
    was_clean: bool
    cordoned_log_dirs: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class FenceBroker:
    """A broker that is gone: nobody may be sent to it."""

    broker_id: int


@dataclass(slots=True)
class UnregisterBroker:
    """A broker that shall be forgotten."""

    broker_id: int


@dataclass(slots=True)
class AllocateProducerIds:
    """A broker's wish for a block of producer ids; the reply is the first of them."""

    broker_id: int


def register_broker(view: View, asked: RegisterBroker) -> Effects:
    """Registers a broker that is up, and lets it lead what it can."""
    epoch = view.next_offset
    broker = BrokerState(
        broker_id=asked.broker_id,
        epoch=epoch,
        incarnation_id=view.random_uuid(),
        endpoints=tuple(asked.endpoints),
        features=tuple((name, low, high) for name, (low, high) in SUPPORTED.items()),
        rack=asked.rack,
        is_fenced=False,
        in_controlled_shutdown=False,
        log_dirs=tuple(sorted(asked.log_dirs)),
        cordoned_log_dirs=tuple(asked.cordoned_log_dirs),
    )
    changes = [*_back(view, asked.broker_id, asked.was_clean)]
    return decided([registration_of(broker), *changes], epoch)


def _back(view: View, broker_id: int, was_clean: bool) -> Iterator[PartitionChangeRecord]:
    """What a broker leads again. A log that may have lost its tail begins a new leader epoch."""
    for state in _partitions_of(view, broker_id):
        if state.leader == broker_id and not was_clean:
            yield PartitionChangeRecord(
                partition_id=state.index, topic_id=state.topic_id, leader=broker_id
            )
        elif state.leader == NO_LEADER and broker_id in (state.last_known_elr or state.elr):
            yield _led_again(state, broker_id)
        elif state.leader not in (NO_LEADER, broker_id) and broker_id not in state.isr:
            yield PartitionChangeRecord(
                partition_id=state.index, topic_id=state.topic_id, isr=[*state.isr, broker_id]
            )


def _led_again(state: PartitionState, broker_id: int) -> PartitionChangeRecord:
    """Its last leader leads it again: nobody else has had the data since."""
    return PartitionChangeRecord(
        partition_id=state.index,
        topic_id=state.topic_id,
        leader=broker_id,
        isr=[*dict.fromkeys([*state.isr, broker_id])],
        eligible_leader_replicas=[each for each in state.elr if each != broker_id],
        last_known_elr=[],
    )


def fence_broker(view: View, asked: FenceBroker) -> Effects:
    """Takes a broker out of service; what it led is led by others, or by nobody."""
    broker = view.image.brokers.get(asked.broker_id)
    if broker is None or broker.is_fenced:
        return Effects(reply=None)
    mark = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=RAISE
    )
    return decided([*_left(view, asked.broker_id), mark], None)


def _left(view: View, broker_id: int) -> Iterable[PartitionChangeRecord]:
    for state in _partitions_of(view, broker_id):
        target = Target.of(state)
        target.leaving = {broker_id}
        target.isr = [each for each in target.isr if each != broker_id]
        record = change_partition(view, state, target)
        if record is not None:
            yield record


def _partitions_of(view: View, broker_id: int) -> Iterator[PartitionState]:
    for topic in view.image.topics.values():
        for state in topic.partitions.values():
            if broker_id in state.replicas:
                yield state


def unregister_broker(view: View, asked: UnregisterBroker) -> Effects:
    """Forgets a broker; its replicas are fenced first."""
    broker = view.image.brokers.get(asked.broker_id)
    if broker is None:
        why = f"Broker ID {asked.broker_id} is not currently registered"
        raise KafkaError(Error.BROKER_ID_NOT_REGISTERED, why)
    gone = UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch)
    return decided([*_left(view, asked.broker_id), gone], None)


def allocate_producer_ids(view: View, asked: AllocateProducerIds) -> Effects:
    """Gives a block of producer ids away, so that none is ever given twice."""
    broker = view.image.brokers.get(asked.broker_id)
    if broker is None:
        why = f"Broker ID {asked.broker_id} is not currently registered"
        raise KafkaError(Error.BROKER_ID_NOT_REGISTERED, why)
    first = view.image.next_producer_id
    record = ProducerIdsRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.epoch,
        next_producer_id=first + PRODUCER_ID_BLOCK,
    )
    return decided([record], first)
