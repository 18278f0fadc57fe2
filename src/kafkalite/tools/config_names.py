"""The settings that `kafka-configs --help` names for each type of entity."""

from __future__ import annotations

from kafkalite.tools.topics import CONFIG_NAMES

NAMES: dict[str, list[str]] = {
    "topics": CONFIG_NAMES,
    "brokers": """
background.threads compression.gzip.level compression.lz4.level compression.type
compression.zstd.level config.providers cordoned.log.dirs
follower.fetch.last.tiered.offset.enable follower.replication.throttled.rate
group.consumer.assignment.interval.ms group.coordinator.cached.buffer.max.bytes
group.share.assignment.interval.ms group.streams.assignment.interval.ms
leader.replication.throttled.rate listener.security.protocol.map listeners
log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size log.cleaner.delete.retention.ms
log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size log.cleaner.io.max.bytes.per.second
log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio
log.cleaner.min.compaction.lag.ms log.cleaner.threads log.cleanup.policy
log.flush.interval.messages log.flush.interval.ms log.index.interval.bytes
log.index.size.max.bytes log.local.retention.bytes log.local.retention.ms
log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms
log.message.timestamp.type log.preallocate log.retention.bytes log.retention.ms
log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms
max.connection.creation.rate max.connections max.connections.per.ip
max.connections.per.ip.overrides message.max.bytes metric.reporters min.insync.replicas
num.io.threads num.network.threads num.recovery.threads.per.data.dir num.replica.fetchers
principal.builder.class producer.id.expiration.ms remote.fetch.max.wait.ms
remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
remote.log.manager.follower.thread.pool.size remote.log.reader.threads
replica.alter.log.dirs.io.max.bytes.per.second sasl.enabled.mechanisms sasl.jaas.config
sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.mechanism.inter.broker.protocol share.coordinator.cached.buffer.max.bytes ssl.cipher.suites
ssl.client.auth ssl.enabled.protocols ssl.endpoint.identification.algorithm
ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm
ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
ssl.truststore.password ssl.truststore.type transaction.partition.verification.enable
unclean.leader.election.enable
""".split(),
    "users": """
SCRAM-SHA-256 SCRAM-SHA-512 consumer_byte_rate controller_mutation_rate producer_byte_rate
request_percentage
""".split(),
    "clients": """
consumer_byte_rate controller_mutation_rate producer_byte_rate request_percentage
""".split(),
    "ips": ["connection_creation_rate"],
    "client-metrics": ["interval.ms", "match", "metrics"],
    "groups": """
consumer.assignment.interval.ms consumer.heartbeat.interval.ms consumer.session.timeout.ms
share.assignment.interval.ms share.auto.offset.reset share.delivery.count.limit
share.heartbeat.interval.ms share.isolation.level share.partition.max.record.locks
share.record.lock.duration.ms share.renew.acknowledge.enable share.session.timeout.ms
streams.assignment.interval.ms streams.heartbeat.interval.ms streams.initial.rebalance.delay.ms
streams.num.standby.replicas streams.session.timeout.ms
""".split(),
}
