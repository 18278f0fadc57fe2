"""The image as records: what a snapshot holds.

Owns the order of them (features first, then brokers, topics, settings and the rest) and that
applying them to an empty image gives the same image. The other way is `image.Image.apply`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkalite.coordinators.cluster.image import METADATA_VERSION, Image
from kafkalite.coordinators.cluster.states import BrokerState, PartitionState
from kafkalite.protocol.messages import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    TopicRecord,
    ZkMigrationStateRecord,
)
from kafkalite.security.acl import Acl


def records_of(image: Image) -> Iterator[object]:
    """Records that build this image from nothing."""
    for name in sorted(image.features, key=lambda each: (each != METADATA_VERSION, each)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    for broker_id in sorted(image.brokers):
        yield registration_of(image.brokers[broker_id])
    yield from (image.controllers[each] for each in sorted(image.controllers))
    for name in sorted(image.topics):
        topic = image.topics[name]
        yield TopicRecord(name=name, topic_id=topic.topic_id)
        for index in sorted(topic.partitions):
            yield _partition(topic.partitions[index], has_elr=image.has_elr)
    yield from _configs(image)
    yield from _quotas(image)
    if image.next_producer_id > 0:
        yield ProducerIdsRecord(
            broker_id=-1, broker_epoch=-1, next_producer_id=image.next_producer_id
        )
    yield from (acl_record(each, image.acls[each]) for each in sorted(image.acls))
    yield from (image.scram[each] for each in sorted(image.scram))
    yield from (image.tokens[each] for each in sorted(image.tokens))
    if image.zk_migration_state is not None:
        yield ZkMigrationStateRecord(zk_migration_state=image.zk_migration_state)


def acl_record(acl_id: bytes, acl: Acl) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.kind,
        resource_name=acl.name,
        pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def registration_of(broker: BrokerState) -> RegisterBrokerRecord:
    cordoned = broker.cordoned_log_dirs
    return RegisterBrokerRecord(
        broker_id=broker.broker_id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            RegisterBrokerRecord.EndPoint(
                name=each.name,
                host=each.host,
                port=each.port,
                security_protocol=each.security_protocol,
            )
            for each in broker.endpoints
        ],
        features=[
            RegisterBrokerRecord.Feature(
                name=name, min_supported_version=low, max_supported_version=high
            )
            for name, low, high in broker.features
        ],
        rack=broker.rack,
        fenced=broker.is_fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def _partition(state: PartitionState, *, has_elr: bool) -> PartitionRecord:
    return PartitionRecord(
        partition_id=state.index,
        topic_id=state.topic_id,
        replicas=list(state.replicas),
        isr=list(state.isr),
        removing_replicas=list(state.removing_replicas),
        adding_replicas=list(state.adding_replicas),
        leader=state.leader,
        leader_recovery_state=state.leader_recovery_state,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=list(state.directories),
        eligible_leader_replicas=(has_elr and list(state.elr)) or None,
        last_known_elr=(has_elr and list(state.last_known_elr)) or None,
    )


def _configs(image: Image) -> Iterator[ConfigRecord]:
    for (resource_type, resource_name), settings in sorted(image.configs.items()):
        for name, value in settings.items():
            yield ConfigRecord(
                resource_type=resource_type, resource_name=resource_name, name=name, value=value
            )


def _quotas(image: Image) -> Iterator[ClientQuotaRecord]:
    for entity, values in image.quotas.items():
        for key, value in values.items():
            parts = [
                ClientQuotaRecord.Entity(entity_type=kind, entity_name=name)
                for kind, name in entity
            ]
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False)
