"""Decides on brokers that are processes of their own: their registration, and what a heartbeat
brings about.

Owns Kafka's states of a broker (fenced, unfenced, in controlled shutdown, told to shut down) and
the steps between them. Who was heard of lately is the sessions' to say. A broker's epoch is the
offset of its registration.
"""

from __future__ import annotations

from enum import Enum

from kafkalite.coordinators.cluster.brokers import (
    LOWER,
    RAISE,
    back_again,
    each_partition_of,
    without,
    without_unclean,
)
from kafkalite.coordinators.cluster.directories import LOST, MIGRATING, UNASSIGNED
from kafkalite.coordinators.cluster.feature_levels import KRAFT_VERSION
from kafkalite.coordinators.cluster.image import METADATA_VERSION
from kafkalite.coordinators.cluster.image_records import registration_of
from kafkalite.coordinators.cluster.records import CORDONED_DIRECTORIES, DIRECTORIES
from kafkalite.coordinators.cluster.sessions import Sessions
from kafkalite.coordinators.cluster.states import BrokerState, EndPoint
from kafkalite.coordinators.cluster.view import View, decided, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass, replace
from kafkalite.env.slicing import Steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    BrokerHeartbeatRequest,
    BrokerRegistrationChangeRecord,
    BrokerRegistrationRequest,
)

RESERVED_DIRECTORIES = (MIGRATING, UNASSIGNED, LOST)


class Standing(Enum):
    """What a broker is to the controller."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "in controlled shutdown"
    SHUTDOWN_NOW = "told to shut down"


@dataclass(slots=True, eq=False)
class BrokerRegistration(Event[int]):
    """A broker that enters the cluster, or says anew what it is; the reply is its epoch."""

    request: BrokerRegistrationRequest
    sessions: Sessions


@dataclass(slots=True, eq=False)
class BrokerHeartbeat(Event[Standing]):
    """A broker's sign of life, with what it wants."""

    request: BrokerHeartbeatRequest
    sessions: Sessions


# --- registration ---------------------------------------------------------------------------------


def register(view: View, asked: BrokerRegistration) -> Effects | Steps[Effects]:
    request = asked.request
    known = view.image.brokers.get(request.broker_id)
    is_amended = known is not None and known.incarnation_id == request.incarnation_id
    if known is not None and not is_amended and asked.sessions.is_live(request.broker_id):
        raise KafkaError(Error.DUPLICATE_BROKER_REGISTRATION)
    if request.is_migrating_zk_broker:
        raise KafkaError(Error.INVALID_REGISTRATION, "there is no migration from ZooKeeper")
    _check_features(view, request)
    _check_directories(view, request)
    broker = _entering(view, request)
    if known is not None and is_amended:
        broker = replace(
            broker, epoch=known.epoch, is_fenced=known.is_fenced,
            in_controlled_shutdown=known.in_controlled_shutdown,
        )  # fmt: skip
        return decided(view, [registration_of(broker)], broker.epoch)
    is_clean = known is None or known.epoch == request.previous_broker_epoch
    was_up = known is not None and not known.is_fenced
    return _entered(view, broker, is_clean=is_clean, was_up=was_up)


def _entering(view: View, request: BrokerRegistrationRequest) -> BrokerState:
    return BrokerState(
        broker_id=request.broker_id,
        epoch=view.next_offset,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(
            EndPoint(each.name, each.host, each.port, each.security_protocol)
            for each in request.listeners
        ),
        features=tuple(
            (each.name, each.min_supported_version, each.max_supported_version)
            for each in request.features
        ),
        rack=request.rack,
        is_fenced=True,
        in_controlled_shutdown=False,
        log_dirs=tuple(sorted(request.log_dirs)),
        cordoned_log_dirs=None,
    )


def _entered(
    view: View, broker: BrokerState, *, is_clean: bool, was_up: bool
) -> Steps[Effects]:
    """What an earlier life of it may have lost is in sync no more; and what that still led when
    nobody had heard of its end is led by others."""
    records: list[object] = [registration_of(broker)]
    if not is_clean:
        records += yield from each_partition_of(
            view, broker.broker_id, lambda state: without_unclean(view, state, broker.broker_id)
        )
    elif was_up:
        records += yield from each_partition_of(
            view, broker.broker_id, lambda state: without(view, state, broker.broker_id)
        )
    return (yield from decided_in_steps(view, records, broker.epoch))


def _check_features(view: View, request: BrokerRegistrationRequest) -> None:
    ranges = {
        each.name: (each.min_supported_version, each.max_supported_version)
        for each in request.features
    }
    if METADATA_VERSION not in ranges:
        why = f"{METADATA_VERSION} is not among its features"
        raise KafkaError(Error.INVALID_REGISTRATION, why)
    finalized = {**view.image.features, KRAFT_VERSION: view.kraft_version}
    for name, level in finalized.items():
        lowest, highest = ranges.get(name, (0, 0))
        if not lowest <= level <= highest:
            raise KafkaError(
                Error.UNSUPPORTED_VERSION,
                f"broker {request.broker_id} has {name} from {lowest} to {highest}, and the "
                f"cluster is at {level}",
            )


def _check_directories(view: View, request: BrokerRegistrationRequest) -> None:
    if view.image.metadata_version < DIRECTORIES:
        return
    directories = request.log_dirs
    taken = {
        directory
        for broker in view.image.brokers.values()
        if broker.broker_id != request.broker_id
        for directory in broker.log_dirs
    }
    is_wrong = (
        not directories
        or len(set(directories)) < len(directories)
        or any(each in RESERVED_DIRECTORIES or each in taken for each in directories)
    )
    if is_wrong:
        raise KafkaError(
            Error.INVALID_REGISTRATION,
            f"broker {request.broker_id} has to name directories of its own",
        )


# --- heartbeats -----------------------------------------------------------------------------------


def heartbeat(view: View, asked: BrokerHeartbeat) -> Effects | Steps[Effects]:
    request = asked.request
    broker = registered(view, request.broker_id, request.broker_epoch)
    now = _standing(broker)
    then = _next(view, broker, asked)
    cordoned = _cordoned(view, broker, request)
    if now is then and not request.offline_log_dirs and cordoned is None:
        return Effects(reply=then)
    return _moved(view, broker, request, then, cordoned)


def registered(view: View, broker_id: int, epoch: int) -> BrokerState:
    """The broker in the life that it says it is in."""
    broker = view.image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(Error.BROKER_ID_NOT_REGISTERED)
    if broker.epoch != epoch:
        raise KafkaError(Error.STALE_BROKER_EPOCH)
    return broker


def _standing(broker: BrokerState) -> Standing:
    if broker.is_fenced:
        return Standing.FENCED
    return Standing.CONTROLLED_SHUTDOWN if broker.in_controlled_shutdown else Standing.UNFENCED


def _next(view: View, broker: BrokerState, asked: BrokerHeartbeat) -> Standing:
    """As Apache Kafka's controller has it."""
    request, now = asked.request, _standing(broker)
    leads = now is not Standing.FENCED and broker.broker_id in view.image.led
    if now is Standing.CONTROLLED_SHUTDOWN:
        may_end = not leads and asked.sessions.may_end(broker.broker_id)
        return Standing.SHUTDOWN_NOW if may_end else now
    if request.want_shut_down:
        return Standing.CONTROLLED_SHUTDOWN if leads else Standing.SHUTDOWN_NOW
    if request.want_fence:
        return Standing.FENCED
    is_caught_up = request.current_metadata_offset >= broker.epoch
    return Standing.UNFENCED if is_caught_up else now


def _cordoned(
    view: View, broker: BrokerState, request: BrokerHeartbeatRequest
) -> list[bytes] | None:
    """The directories that take nothing new, when it says others than before."""
    said = request.cordoned_log_dirs
    if said is None or view.image.metadata_version < CORDONED_DIRECTORIES:
        return None
    return None if broker.cordoned_log_dirs == tuple(said) else list(said)


def _moved(
    view: View,
    broker: BrokerState,
    request: BrokerHeartbeatRequest,
    then: Standing,
    cordoned: list[bytes] | None,
) -> Steps[Effects]:
    """The records that bring the broker there; its own first, as elections go by it."""
    broker_id, now = broker.broker_id, _standing(broker)
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch)
    gone = [each for each in request.offline_log_dirs if each in broker.log_dirs]
    left = [each for each in broker.log_dirs if each not in gone]
    records: list[object] = []
    if then is Standing.UNFENCED and now is Standing.FENCED:
        change.fenced = LOWER
        back = replace(broker, log_dirs=tuple(left)) if left else broker
        records = yield from each_partition_of(
            view, broker_id, lambda one: back_again(view, one, back)
        )
    elif then is Standing.CONTROLLED_SHUTDOWN and now is not then:
        change.in_controlled_shutdown = RAISE
        records = yield from each_partition_of(
            view, broker_id, lambda one: without(view, one, broker_id)
        )
    elif then in (Standing.FENCED, Standing.SHUTDOWN_NOW) and now is not Standing.FENCED:
        change.fenced = RAISE
        records = yield from each_partition_of(
            view, broker_id, lambda one: without(view, one, broker_id)
        )
    elif gone and left:
        records = yield from each_partition_of(
            view, broker_id, lambda one: without(view, one, broker_id, among=gone)
        )
    if gone and left:
        change.log_dirs = left
    change.cordoned_log_dirs = cordoned
    own = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch)
    before = [change] if change != own else []
    return (yield from decided_in_steps(view, [*before, *records], then))
