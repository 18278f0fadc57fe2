"""Decides on brokers: their registration, their coming and going, and blocks of producer ids.

Owns what becomes of a broker's partitions when it leaves and when it is back. A broker's epoch is
the offset of its registration.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from kafkalite.coordinators.cluster.directories import directory_of, is_online
from kafkalite.coordinators.cluster.features import SUPPORTED
from kafkalite.coordinators.cluster.image_records import registration_of
from kafkalite.coordinators.cluster.partition_change import (
    Target,
    change_partition,
    online_election,
)
from kafkalite.coordinators.cluster.records import DIRECTORIES
from kafkalite.coordinators.cluster.states import NO_LEADER, BrokerState, EndPoint, PartitionState
from kafkalite.coordinators.cluster.view import View, decided, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import Steps, chosen
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
PARTITIONS_AT_ONCE = 64


@dataclass(slots=True)
class RegisterBroker(Event[int]):
    """A broker that has started; the reply is its epoch."""

    broker_id: int
    endpoints: list[EndPoint]
    rack: str | None
    log_dirs: list[bytes]  # those that are there
    # Whether its last stop was clean, so that its logs are as it had told them.
    was_clean: bool
    cordoned_log_dirs: list[bytes] = field(default_factory=list)


@dataclass(slots=True)
class FenceBroker(Event[None]):
    """A broker that is gone: nobody may be sent to it."""

    broker_id: int
    leaves_partitions: bool = True  # or it stops with all others, and comes back as what it was


@dataclass(slots=True)
class UnregisterBroker(Event[None]):
    """A broker that shall be forgotten."""

    broker_id: int


@dataclass(slots=True)
class AssignDirectories(Event[None]):
    """Where a broker has its replicas of these partitions, by topic id and index."""

    broker_id: int
    directories: dict[tuple[bytes, int], bytes]


@dataclass(slots=True)
class DirectoriesOffline(Event[None]):
    """Log directories of a broker that failed while it served."""

    broker_id: int
    directories: list[bytes]


@dataclass(slots=True)
class AllocateProducerIds(Event[range]):
    """A broker's wish for a block of producer ids. It comes when it lasts, so that nobody is given
    one of them again after a power cut."""

    broker_id: int


def register_broker(view: View, asked: RegisterBroker) -> Steps[Effects]:
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
    changed = yield from each_partition_of(
        view, asked.broker_id, lambda state: _back(view, state, asked)
    )
    return (yield from decided_in_steps(view, [registration_of(broker), *changed], epoch))


def _back(
    view: View, state: PartitionState, asked: RegisterBroker
) -> Iterator[PartitionChangeRecord]:
    """What changes with a broker that is back. One whose directory is not there is led by others,
    or by nobody; a log that may have lost its tail is in sync no more, unless nobody else is: then
    it goes on in a new leader epoch. A leader that is not up yet, but about to be, is left."""
    broker_id, record = asked.broker_id, None
    is_alone = state.isr == (broker_id,) and not state.elr
    if not is_online(directory_of(state, broker_id), asked.log_dirs):
        yield from without(view, state, broker_id)
    elif state.leader == broker_id and is_alone and not asked.was_clean:
        record = _led_anew(state)
    elif state.leader == NO_LEADER or not asked.was_clean:
        target = _target_with(view, state, broker_id)
        if not asked.was_clean:
            _drop_unclean(view, target, broker_id)
        record = change_partition(view, state, target)
    if record is not None:
        yield record


def back_again(
    view: View, state: PartitionState, broker: BrokerState
) -> Iterator[PartitionChangeRecord]:
    """A partition that nobody led, and that a broker which is let in may lead."""
    is_there = is_online(directory_of(state, broker.broker_id), broker.log_dirs)
    if state.leader == NO_LEADER and is_there:
        record = change_partition(view, state, _target_with(view, state, broker.broker_id))
        if record is not None:
            yield record


def without_unclean(
    view: View, state: PartitionState, broker_id: int
) -> Iterator[PartitionChangeRecord]:
    """A partition of a broker whose logs may have lost what they had, and that is not up yet."""
    target = Target.of(state)
    target.leaving = {broker_id}
    target.election = online_election(view, state)
    _drop_unclean(view, target, broker_id)
    record = change_partition(view, state, target)
    if record is not None:
        yield record


def _led_anew(state: PartitionState) -> PartitionChangeRecord:
    return PartitionChangeRecord(
        partition_id=state.index, topic_id=state.topic_id, leader=state.leader
    )


def _target_with(view: View, state: PartitionState, broker_id: int) -> Target:
    """The partition with a broker that is back, which may lead it; who is in sync with a leader is
    the leader's to say."""
    target = Target.of(state)
    target.joining = {broker_id}
    target.election = online_election(view, state)
    return target


def _drop_unclean(view: View, target: Target, broker_id: int) -> None:
    """Nobody knows what of its log is left; where eligible replicas are not kept, the last one in
    sync stays all the same."""
    isr = [each for each in target.isr if each != broker_id]
    if view.image.has_elr:
        target.unclean = {broker_id}
    if isr or view.image.has_elr:
        target.isr = isr


def fence_broker(view: View, asked: FenceBroker) -> Steps[Effects]:
    """Takes a broker out of service; what it leaves is led by others, or by nobody."""
    broker = view.image.brokers.get(asked.broker_id)
    if broker is None or broker.is_fenced:
        return Effects(reply=None)
    mark = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=RAISE
    )
    left = (yield from _left(view, asked.broker_id)) if asked.leaves_partitions else []
    return (yield from decided_in_steps(view, [*left, mark], None))


def _left(view: View, broker_id: int) -> Steps[list[object]]:
    return each_partition_of(view, broker_id, lambda state: without(view, state, broker_id))


def without(
    view: View,
    state: PartitionState,
    broker_id: int,
    directory: bytes | None = None,
    among: Collection[bytes] | None = None,
) -> Iterator[PartitionChangeRecord]:
    """A partition whose replica on a broker cannot be used, and the directory it was in if that
    is to be said; if given, only one that lies in some directories."""
    if among is not None and directory_of(state, broker_id) not in among:
        return
    target = Target.of(state)
    target.leaving = {broker_id}
    target.election = online_election(view, state)
    target.isr = [each for each in target.isr if each != broker_id]
    if directory is not None:
        target.directories = {broker_id: directory}
    record = change_partition(view, state, target)
    if record is not None:
        yield record


def assign_directories(view: View, asked: AssignDirectories) -> Steps[Effects]:
    """Names the directories that replicas lie in; a replica that is found is led again."""
    broker = _registered(view, asked.broker_id)
    records: list[object] = []
    if view.image.metadata_version >= DIRECTORIES:
        for count, ((topic_id, index), directory) in enumerate(asked.directories.items(), 1):
            topic = view.image.by_id.get(topic_id)
            state = None if topic is None else topic.partitions.get(index)
            if state is not None and broker.broker_id in state.replicas:
                records += _placed(view, state, broker, directory)
            if count % PARTITIONS_AT_ONCE == 0:
                yield
    return (yield from decided_in_steps(view, records, None))


def _placed(
    view: View, state: PartitionState, broker: BrokerState, directory: bytes
) -> Iterator[PartitionChangeRecord]:
    broker_id = broker.broker_id
    if directory == directory_of(state, broker_id):
        return
    if not is_online(directory, broker.log_dirs):
        yield from without(view, state, broker_id, directory)
        return
    is_back = state.leader == NO_LEADER and broker.is_active
    target = _target_with(view, state, broker_id) if is_back else Target.of(state)
    target.directories = {broker_id: directory}
    record = change_partition(view, state, target)
    assert record is not None, "a directory that is new changes nothing"
    yield record


def directories_offline(view: View, asked: DirectoriesOffline) -> Steps[Effects]:
    """Takes log directories of a broker out of service, and its replicas in them."""
    broker = _registered(view, asked.broker_id)
    gone = [each for each in asked.directories if each in broker.log_dirs]
    left = [each for each in broker.log_dirs if each not in gone]
    if not gone or not left:  # without any directory the broker ends, and is fenced
        return Effects(reply=None)
    records = yield from each_partition_of(
        view, asked.broker_id, lambda one: without(view, one, asked.broker_id, among=gone)
    )
    change = BrokerRegistrationChangeRecord(
        broker_id=broker.broker_id, broker_epoch=broker.epoch, log_dirs=left
    )
    return (yield from decided_in_steps(view, [*records, change], None))


def _registered(view: View, broker_id: int) -> BrokerState:
    broker = view.image.brokers.get(broker_id)
    if broker is None:
        why = f"Broker ID {broker_id} is not currently registered"
        raise KafkaError(Error.BROKER_ID_NOT_REGISTERED, why)
    return broker


def each_partition_of(
    view: View,
    broker_id: int,
    change: Callable[[PartitionState], Iterator[PartitionChangeRecord]],
) -> Steps[list[object]]:
    """What becomes of the partitions that a broker has a replica of."""
    every = (
        state for topic in view.image.topics.values() for state in topic.partitions.values()
    )
    held = yield from chosen(every, lambda state: broker_id in state.replicas)
    records: list[object] = []
    for count, state in enumerate(held, 1):
        records += change(state)
        if count % PARTITIONS_AT_ONCE == 0:
            yield
    return records


def unregister_broker(view: View, asked: UnregisterBroker) -> Steps[Effects]:
    """Forgets a broker; its replicas are fenced first."""
    broker = _registered(view, asked.broker_id)
    gone = UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch)
    left = yield from _left(view, asked.broker_id)
    return (yield from decided_in_steps(view, [*left, gone], None))


def allocate_producer_ids(view: View, asked: AllocateProducerIds) -> Effects:
    """Gives a block of producer ids away, so that none is ever given twice."""
    broker = _registered(view, asked.broker_id)
    first = view.image.next_producer_id
    record = ProducerIdsRecord(
        broker_id=broker.broker_id,
        broker_epoch=broker.epoch,
        next_producer_id=first + PRODUCER_ID_BLOCK,
    )
    return decided(view, [record], range(first, first + PRODUCER_ID_BLOCK))
