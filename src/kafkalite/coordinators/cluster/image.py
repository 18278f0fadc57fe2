"""The cluster's metadata as it stands: the fold of the metadata log's records.

Owns the state of topics, partitions, brokers, settings, features, quotas, credentials and producer
ids, and what each record type does to it. Never decides anything, never reads a clock or a file.
Invariant: two images that applied the same records are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from kafkalite.coordinators.cluster.changes import Changes
from kafkalite.coordinators.cluster.states import (
    NO_LEADER,
    RESOURCE,
    TOPIC,
    BrokerState,
    EndPoint,
    PartitionState,
    QuotaEntity,
    Topic,
)
from kafkalite.env.dataclasses import dataclass, field, replace
from kafkalite.protocol import messages as m
from kafkalite.security.acl import Acl

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

# PartitionChangeRecord's leader: as it was.
NO_LEADER_CHANGE = -2

METADATA_VERSION = "metadata.version"
ELR_VERSION = "eligible.leader.replicas.version"
# The oldest level of a log that KRaft controllers wrote for all to use: 3.3-IV3.
MINIMUM_METADATA_VERSION = 7


class ImageConflict(Exception):
    """A record that does not fit the image: the log was not written by a controller of ours."""


@dataclass(slots=True)
class Image:
    """The fold; read freely, changed by `apply` alone."""

    topics: dict[str, Topic] = field(default_factory=dict)
    by_id: dict[bytes, Topic] = field(default_factory=dict)
    # Topic names by what they are with dots as underscores; two that agree there collide.
    unified: dict[str, dict[str, None]] = field(default_factory=dict)
    configs: dict[RESOURCE, dict[str, str]] = field(default_factory=dict)
    brokers: dict[int, BrokerState] = field(default_factory=dict)
    led: dict[int, int] = field(default_factory=dict)  # how many partitions, by who leads any
    controllers: dict[int, m.RegisterControllerRecord] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    scram: dict[tuple[str, int], m.UserScramCredentialRecord] = field(default_factory=dict)
    tokens: dict[str, m.DelegationTokenRecord] = field(default_factory=dict)
    acls: dict[bytes, Acl] = field(default_factory=dict)
    acl_ids: dict[Acl, bytes] = field(default_factory=dict)
    next_producer_id: int = 0
    zk_migration_state: int | None = None
    # Topics, and keys of settings and quotas, that are not shared with the image that this one was
    # copied from; None when nothing is.
    own: set[Hashable] | None = field(default=None, compare=False, repr=False)

    def has_own(self, key: Hashable) -> bool:
        """Whether what has this key may be changed in place; from now on it may."""
        if self.own is None or key in self.own:
            return True
        self.own.add(key)
        return False

    def apply(self, record: object, changes: Changes) -> None:
        """Folds one record in, and notes what it changed."""
        FOLDS[type(record).__name__](self, record, changes)

    @property
    def metadata_version(self) -> int:
        """The finalized level of metadata.version, which says how records are written."""
        return self.features.get(METADATA_VERSION, MINIMUM_METADATA_VERSION)

    @property
    def has_elr(self) -> bool:
        """Whether eligible leader replicas are tracked (KIP-966)."""
        return self.features.get(ELR_VERSION, 0) > 0

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic, None when no topic has this id."""
        topic = self.by_id.get(topic_id)
        return None if topic is None else topic.name

    def topic_id(self, name: str) -> bytes | None:
        """The id of a topic, None when no topic has this name."""
        topic = self.topics.get(name)
        return None if topic is None else topic.topic_id

    def partition(self, topic: str, index: int) -> PartitionState | None:
        """A partition by its topic's name."""
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(index)

    def has_partition(self, topic: str, index: int) -> bool:
        """Whether the cluster has such a partition."""
        return self.partition(topic, index) is not None

    def config(self, resource_type: int, name: str) -> dict[str, str]:
        """The settings a resource was given; empty when none."""
        return self.configs.get((resource_type, name), {})

    def live_brokers(self) -> list[int]:
        """Brokers that clients may be sent to, in order."""
        return sorted(broker.broker_id for broker in self.brokers.values() if not broker.is_fenced)


def _register_broker(image: Image, record: m.RegisterBrokerRecord, changes: Changes) -> None:
    cordoned = record.cordoned_log_dirs
    image.brokers[record.broker_id] = BrokerState(
        broker_id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(
            EndPoint(each.name, each.host, each.port, each.security_protocol)
            for each in record.end_points
        ),
        features=tuple(
            (each.name, each.min_supported_version, each.max_supported_version)
            for each in record.features
        ),
        rack=record.rack,
        is_fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_dirs=tuple(record.log_dirs),
        cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
        is_migrating_zk_broker=record.is_migrating_zk_broker,
    )
    changes.brokers[record.broker_id] = None


def _unregister_broker(image: Image, record: m.UnregisterBrokerRecord, changes: Changes) -> None:
    _broker(image, record.broker_id, record.broker_epoch)
    del image.brokers[record.broker_id]
    changes.brokers[record.broker_id] = None


def _fence_broker(image: Image, record: m.FenceBrokerRecord, changes: Changes) -> None:
    image.brokers[record.id] = replace(_broker(image, record.id, record.epoch), is_fenced=True)
    changes.brokers[record.id] = None


def _unfence_broker(image: Image, record: m.UnfenceBrokerRecord, changes: Changes) -> None:
    image.brokers[record.id] = replace(_broker(image, record.id, record.epoch), is_fenced=False)
    changes.brokers[record.id] = None


def _alter_broker(image: Image, record: m.BrokerRegistrationChangeRecord, changes: Changes) -> None:
    broker = _broker(image, record.broker_id, record.broker_epoch)
    # fenced: -1 lifts the fence, 1 raises it, 0 leaves it; log dirs: empty leaves them.
    if record.fenced:
        broker = replace(broker, is_fenced=record.fenced > 0)
    if record.in_controlled_shutdown:
        broker = replace(broker, in_controlled_shutdown=record.in_controlled_shutdown > 0)
    if record.log_dirs:
        broker = replace(broker, log_dirs=tuple(record.log_dirs))
    if record.cordoned_log_dirs is not None:
        broker = replace(broker, cordoned_log_dirs=tuple(record.cordoned_log_dirs))
    image.brokers[record.broker_id] = broker
    changes.brokers[record.broker_id] = None


def _broker(image: Image, broker_id: int, epoch: int) -> BrokerState:
    broker = image.brokers.get(broker_id)
    if broker is None or broker.epoch != epoch:
        raise ImageConflict(f"no broker {broker_id} with epoch {epoch} is registered")
    return broker


def _create_topic(image: Image, record: m.TopicRecord, changes: Changes) -> None:
    if record.name in image.topics or record.topic_id in image.by_id:
        raise ImageConflict(f"topic {record.name} is created twice")
    topic = Topic(record.name, record.topic_id)
    image.topics[record.name] = image.by_id[record.topic_id] = topic
    names = image.unified.get(unified(record.name), {})  # of which there is hardly ever one
    image.unified[unified(record.name)] = {**names, record.name: None}
    image.has_own(record.topic_id)
    changes.created[record.topic_id] = topic


def _remove_topic(image: Image, record: m.RemoveTopicRecord, changes: Changes) -> None:
    topic = _topic(image, record.topic_id)
    del image.topics[topic.name], image.by_id[topic.topic_id]
    names = image.unified.pop(unified(topic.name))
    if len(names) > 1:
        image.unified[unified(topic.name)] = {each: None for each in names if each != topic.name}
    image.configs.pop((TOPIC, topic.name), None)
    changes.deleted[topic.topic_id] = topic
    changes.created.pop(topic.topic_id, None)
    for index, state in topic.partitions.items():
        _leads(image, state.leader, -1)
        changes.partitions.pop((topic.topic_id, index), None)


def unified(name: str) -> str:
    """A topic's name as metrics spell it, where dots and underscores are the same."""
    return name.replace(".", "_")


def _topic(image: Image, topic_id: bytes) -> Topic:
    topic = image.by_id.get(topic_id)
    if topic is None:
        raise ImageConflict(f"no topic has the id {topic_id.hex()}")
    return topic


def _put(image: Image, state: PartitionState, changes: Changes) -> None:
    topic = _topic(image, state.topic_id)
    if not image.has_own(topic.topic_id):
        topic = replace(topic, partitions=dict(topic.partitions))
        image.topics[topic.name] = image.by_id[topic.topic_id] = topic
    old = topic.partitions.get(state.index)
    topic.partitions[state.index] = state
    _leads(image, state.leader, 1)
    if old is not None:
        _leads(image, old.leader, -1)
    changes.partitions[state.topic_id, state.index] = None


def _leads(image: Image, broker_id: int, more: int) -> None:
    if broker_id == NO_LEADER:
        return
    count = image.led.get(broker_id, 0) + more
    if count:
        image.led[broker_id] = count
    else:
        del image.led[broker_id]


def _set_partition(image: Image, record: m.PartitionRecord, changes: Changes) -> None:
    state = PartitionState(
        topic_id=record.topic_id,
        index=record.partition_id,
        replicas=tuple(record.replicas),
        isr=tuple(record.isr),
        leader=record.leader,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        directories=tuple(record.directories),
        adding_replicas=tuple(record.adding_replicas),
        removing_replicas=tuple(record.removing_replicas),
        elr=tuple(record.eligible_leader_replicas or ()),
        last_known_elr=tuple(record.last_known_elr or ()),
        leader_recovery_state=record.leader_recovery_state,
    )
    _put(image, state, changes)


def _change_partition(image: Image, record: m.PartitionChangeRecord, changes: Changes) -> None:
    topic = _topic(image, record.topic_id)
    old = topic.partitions.get(record.partition_id)
    if old is None:
        raise ImageConflict(f"{topic.name} has no partition {record.partition_id}")
    _put(image, changed_partition(old, record), changes)


def changed_partition(old: PartitionState, record: m.PartitionChangeRecord) -> PartitionState:
    """A partition after a PartitionChangeRecord; the leader epoch rises by being given a leader."""
    has_leader = record.leader != NO_LEADER_CHANGE
    replicas = _given(record.replicas, old.replicas)
    directories = _given(record.directories, old.directories)
    if record.directories is None and replicas != old.replicas:
        # Those who stay keep their directory, newcomers have none assigned.
        known = dict(zip(old.replicas, old.directories, strict=False))
        directories = tuple(known.get(replica, bytes(16)) for replica in replicas)
    recovery = record.leader_recovery_state
    return PartitionState(
        topic_id=old.topic_id,
        index=old.index,
        replicas=replicas,
        isr=_given(record.isr, old.isr),
        leader=record.leader if has_leader else old.leader,
        leader_epoch=old.leader_epoch + has_leader,
        partition_epoch=old.partition_epoch + 1,
        directories=directories,
        adding_replicas=_given(record.adding_replicas, old.adding_replicas),
        removing_replicas=_given(record.removing_replicas, old.removing_replicas),
        elr=_given(record.eligible_leader_replicas, old.elr),
        last_known_elr=_given(record.last_known_elr, old.last_known_elr),
        leader_recovery_state=old.leader_recovery_state if recovery == -1 else recovery,
    )


def _given(new: list[T] | None, old: tuple[T, ...]) -> tuple[T, ...]:
    return old if new is None else tuple(new)


def _clear_elr(image: Image, record: m.ClearElrRecord, changes: Changes) -> None:
    """Forgets the eligible replicas of one topic, or with an empty name of all."""
    topics = list(image.topics.values())
    if record.topic_name:
        topic = image.topics.get(record.topic_name)
        if topic is None:
            raise ImageConflict(f"there is no topic {record.topic_name}")
        topics = [topic]
    for each in topics:
        for state in tuple(each.partitions.values()):
            if state.elr or state.last_known_elr:
                epoch = state.partition_epoch + 1
                cleared = replace(state, elr=(), last_known_elr=(), partition_epoch=epoch)
                _put(image, cleared, changes)


def _values(image: Image, all_values: dict[K, dict[str, T]], key: K) -> dict[str, T]:
    """What has this key, to be changed in place."""
    values = all_values.get(key)
    if not image.has_own(key) or values is None:
        values = all_values[key] = dict(values or {})
    return values


def _set_config(image: Image, record: m.ConfigRecord, changes: Changes) -> None:
    key = (record.resource_type, record.resource_name)
    settings = _values(image, image.configs, key)
    if record.value is None:
        settings.pop(record.name, None)
    else:
        settings[record.name] = record.value
    if not settings:
        del image.configs[key]
    changes.configs[key] = None


def _set_feature(image: Image, record: m.FeatureLevelRecord, changes: Changes) -> None:
    if record.feature_level == 0:
        image.features.pop(record.name, None)
    else:
        image.features[record.name] = record.feature_level
    changes.features[record.name] = None


def _set_quota(image: Image, record: m.ClientQuotaRecord, changes: Changes) -> None:
    entity = quota_entity(record.entity)
    values = _values(image, image.quotas, entity)
    if record.remove:
        values.pop(record.key, None)
    else:
        values[record.key] = record.value
    if not values:
        del image.quotas[entity]
    changes.quotas[entity] = None


def quota_entity(parts: list[Any]) -> QuotaEntity:
    """The parts of a quota's entity in one order, so that equal entities are equal keys."""
    entity = ((each.entity_type, each.entity_name) for each in parts)
    return tuple(sorted(entity, key=lambda part: (part[0], part[1] is not None, part[1] or "")))


def _set_credential(image: Image, record: m.UserScramCredentialRecord, changes: Changes) -> None:
    image.scram[record.name, record.mechanism] = record
    changes.credentials[record.name, record.mechanism] = None


def _remove_credential(
    image: Image, record: m.RemoveUserScramCredentialRecord, changes: Changes
) -> None:
    if image.scram.pop((record.name, record.mechanism), None) is None:
        raise ImageConflict(f"user {record.name} has no credential {record.mechanism}")
    changes.credentials[record.name, record.mechanism] = None


def _take_producer_ids(image: Image, record: m.ProducerIdsRecord, changes: Changes) -> None:
    if record.next_producer_id < image.next_producer_id:
        raise ImageConflict(f"producer ids fall to {record.next_producer_id}")
    image.next_producer_id = record.next_producer_id


def _set_token(image: Image, record: m.DelegationTokenRecord, changes: Changes) -> None:
    image.tokens[record.token_id] = record


def _remove_token(image: Image, record: m.RemoveDelegationTokenRecord, changes: Changes) -> None:
    image.tokens.pop(record.token_id, None)


def _set_acl(image: Image, record: m.AccessControlEntryRecord, changes: Changes) -> None:
    acl = Acl(
        record.resource_type, record.resource_name, record.pattern_type, record.principal,
        record.host, record.operation, record.permission_type,
    )  # fmt: skip
    old = image.acls.get(record.id)
    if old is not None:
        _forget_acl(image, old, record.id, changes)
    image.acls[record.id] = acl
    image.acl_ids[acl] = record.id
    changes.acls[acl] = None


def _remove_acl(image: Image, record: m.RemoveAccessControlEntryRecord, changes: Changes) -> None:
    acl = image.acls.pop(record.id, None)
    if acl is None:
        raise ImageConflict(f"there is no access rule {record.id.hex()}")
    _forget_acl(image, acl, record.id, changes)


def _forget_acl(image: Image, acl: Acl, acl_id: bytes, changes: Changes) -> None:
    """Unless the same rule is there under another id."""
    if image.acl_ids.get(acl) == acl_id:
        del image.acl_ids[acl]
    changes.acls[acl] = None


def _register_controller(
    image: Image, record: m.RegisterControllerRecord, changes: Changes
) -> None:
    image.controllers[record.controller_id] = record


def _set_migration_state(image: Image, record: m.ZkMigrationStateRecord, changes: Changes) -> None:
    image.zk_migration_state = record.zk_migration_state


def _nothing(image: Image, record: object, changes: Changes) -> None:
    """A record that marks time, or the bounds of a transaction (the replay holds those back)."""


Fold = Callable[[Image, Any, Changes], None]
FOLDS: dict[str, Fold] = {
    "RegisterBrokerRecord": _register_broker,
    "UnregisterBrokerRecord": _unregister_broker,
    "TopicRecord": _create_topic,
    "PartitionRecord": _set_partition,
    "ConfigRecord": _set_config,
    "PartitionChangeRecord": _change_partition,
    "FenceBrokerRecord": _fence_broker,
    "UnfenceBrokerRecord": _unfence_broker,
    "RemoveTopicRecord": _remove_topic,
    "DelegationTokenRecord": _set_token,
    "UserScramCredentialRecord": _set_credential,
    "FeatureLevelRecord": _set_feature,
    "ClientQuotaRecord": _set_quota,
    "ProducerIdsRecord": _take_producer_ids,
    "BrokerRegistrationChangeRecord": _alter_broker,
    "AccessControlEntryRecord": _set_acl,
    "RemoveAccessControlEntryRecord": _remove_acl,
    "NoOpRecord": _nothing,
    "ZkMigrationStateRecord": _set_migration_state,
    "RemoveUserScramCredentialRecord": _remove_credential,
    "BeginTransactionRecord": _nothing,
    "EndTransactionRecord": _nothing,
    "AbortTransactionRecord": _nothing,
    "RemoveDelegationTokenRecord": _remove_token,
    "RegisterControllerRecord": _register_controller,
    "ClearElrRecord": _clear_elr,
}
