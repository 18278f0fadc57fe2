"""What 21 projects write into their files of compose: variables, command and health check of their
Kafka. Facts, each with the project, file and commit that they are from.

Every advertised name is to be served, or the start is refused with a word that names the reason.
Clusters of several nodes are listed with that; brokers that know nothing of each other would split
their data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

RAFT = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
}
INSIDE_AND_OUTSIDE = "PLAINTEXT://{0}:29092,PLAINTEXT_HOST://localhost:9092"
# What three projects mount beside their file and run first.
UPDATE_RUN = """\
#!/bin/sh
sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure
sed -i 's/cub zk-ready/echo ignore zk-ready/' /etc/confluent/docker/ensure
echo "kafka-storage format --ignore-formatted -t $(kafka-storage random-uuid) \
-c /etc/kafka/kafka.properties" >> /etc/confluent/docker/ensure
"""
UPDATED = (
    "bash", "-c",
    "if [ ! -f /tmp/update_run.sh ]; then echo \"ERROR: Did you forget the update_run.sh file that"
    " came with this docker-compose.yml file?\" && exit 1 ; else /tmp/update_run.sh"
    " && /etc/confluent/docker/run ; fi",
)  # fmt: skip
LOG4J = (
    "kafka.controller=INFO,kafka.producer.async.DefaultEventHandler=INFO,state.change.logger=INFO"
)


@dataclass(slots=True, frozen=True)
class Compose:
    """One project's broker."""

    source: str
    variables: dict[str, str]
    names: tuple[str, ...]  # HOST:PORT that clients are told
    host: str = "kafka"
    command: tuple[str, ...] = ()
    health: str | None = None
    mount: str | None = None  # where a volume of its own is
    topics: dict[str, int] = field(default_factory=dict)
    secured: dict[str, str] = field(default_factory=dict)  # the protocol of other HOST:PORTs
    refused: str | None = None

    @property
    def name(self) -> str:
        return self.source.split()[0]


FILES = (
    Compose(
        "getsentry/self-hosted docker-compose.yml @005c4931",
        {
            "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
            "KAFKA_LOG_RETENTION_HOURS": "24",
            "KAFKA_MESSAGE_MAX_BYTES": "50000000",
            "KAFKA_MAX_REQUEST_SIZE": "50000000",
            "CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
            "KAFKA_LOG4J_LOGGERS": "kafka.cluster=WARN,kafka.controller=WARN,kafka.log=WARN",
            "KAFKA_LOG4J_ROOT_LOGLEVEL": "WARN",
            "KAFKA_TOOLS_LOG4J_LOGLEVEL": "WARN",
        },
        ("kafka:9092",), health="nc -z localhost 9092", mount="/var/lib/kafka/data",
    ),
    Compose(
        "PostHog/posthog docker-compose.base.yml @00cbfd23",
        {
            "KAFKA_BROKER_ID": "1001",
            "KAFKA_CFG_RESERVED_BROKER_MAX_ID": "1001",
            "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092",
            "KAFKA_CFG_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092",
            "KAFKA_CFG_ZOOKEEPER_CONNECT": "zookeeper:2181",
            "ALLOW_PLAINTEXT_LISTENER": "true",
        },
        ("kafka:9092",),
        health="kafka-cluster.sh cluster-id --bootstrap-server localhost:9092 || exit 1",
    ),
    Compose(
        "open-telemetry/opentelemetry-demo src/kafka/Dockerfile @008d65a0",
        {
            **RAFT,
            "KAFKA_PROCESS_ROLES": "controller,broker",
            "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@0.0.0.0:9093",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
            "KAFKA_METADATA_LOG_SEGMENT_MS": "15000",
            "KAFKA_METADATA_MAX_RETENTION_MS": "60000",
            "KAFKA_METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS": "2800",
            "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "true",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
            "KAFKA_HEAP_OPTS": "-Xmx400m -Xms400m",
            "KAFKA_OPTS": (
                "-javaagent:/tmp/opentelemetry-javaagent.jar -Dotel.jmx.target.system=kafka-broker"
            ),
            "CLUSTER_ID": "ckjPoprWQzOf0-FuNkGfFQ",
        },
        ("kafka:9092",), health="nc -z kafka 9092",
    ),
    Compose(
        "ag2ai/faststream docker-compose.yaml @0cc0f68b",
        {
            **RAFT,
            "KAFKA_BROKER_ID": "1",
            "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://127.0.0.1:9092",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka:9093",
            "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
        },
        ("127.0.0.1:9092",),
    ),
    Compose(
        "DataDog/dd-trace-py docker-compose.yml @0052a196",
        {
            **RAFT,
            "ALLOW_PLAINTEXT_LISTENER": "yes",
            "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093,EXTERNAL://:29092",
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092,EXTERNAL://localhost:29092",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                "CONTROLLER:PLAINTEXT,EXTERNAL:PLAINTEXT,PLAINTEXT:PLAINTEXT"
            ),
            "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka:9093",
            "CLUSTER_ID": "5L6g3nShT-eMCtK--X86sw",
        },
        ("kafka:9092", "localhost:29092"),
    ),
    Compose(
        "DataDog/dd-trace-js docker-compose.yml @00400f90",
        {
            "CLUSTER_ID": "5Yr1SIgYQz-b-dgRabWx4g",
            "NODE_ID": "1",
            "CREATE_TOPICS": '"test-topic:1:1"',
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka:9093",
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://127.0.0.1:9092",
            "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        },
        ("127.0.0.1:9092",), topics={"test-topic": 1},
    ),
    Compose(
        "ClickHouse/ClickHouse tests/integration/compose/docker_compose_kafka.yml @022a8859",
        {
            "KAFKA_ADVERTISED_LISTENERS": "INSIDE://localhost:9092,OUTSIDE://kafka1:19092",
            "KAFKA_ADVERTISED_HOST_NAME": "kafka1",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "KAFKA_INTER_BROKER_LISTENER_NAME": "INSIDE",
            "KAFKA_BROKER_ID": "1",
            "KAFKA_ZOOKEEPER_CONNECT": "kafka_zookeeper:2181",
            "KAFKA_LOG4J_LOGGERS": LOG4J,
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        },
        ("localhost:9092", "kafka1:19092"), host="kafka1",
    ),
    Compose(
        "segmentio/kafka-go docker-compose.yml @0ea8d5da",
        {
            "KAFKA_VERSION": "0.10.1.0",
            "KAFKA_CREATE_TOPICS": "test-writer-0:3:1,test-writer-1:3:1",
            "KAFKA_ADVERTISED_HOST_NAME": "localhost",
            "KAFKA_ADVERTISED_PORT": "9092",
            "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
            "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "true",
        },
        ("localhost:9092",), topics={"test-writer-0": 3, "test-writer-1": 3},
    ),
    Compose(
        "karafka/karafka docker-compose.yml @0e1e6eac",
        {
            "KAFKA_ADVERTISED_HOST_NAME": "localhost",
            "KAFKA_ADVERTISED_PORT": "9092",
            "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
            "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "true",
            "KAFKA_CREATE_TOPICS": ", ".join(
                [*(f"integrations_{n:02}_02:2:1" for n in range(22)), "benchmarks_00_10:10:1"]
            ),
        },
        ("localhost:9092",), topics={"integrations_00_02": 2, "benchmarks_00_10": 10},
    ),
    Compose(
        "kafbat/kafka-ui documentation/compose/kafka-ui.yaml @6e1597f7",
        {
            **RAFT,
            "KAFKA_BROKER_ID": "1",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT"
            ),
            "KAFKA_ADVERTISED_LISTENERS": INSIDE_AND_OUTSIDE.format("kafka0"),
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_JMX_PORT": "9997",
            "KAFKA_JMX_OPTS": "-Dcom.sun.management.jmxremote -Djava.rmi.server.hostname=kafka0",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka0:29093",
            "KAFKA_LISTENERS": (
                "PLAINTEXT://kafka0:29092,CONTROLLER://kafka0:29093,PLAINTEXT_HOST://0.0.0.0:9092"
            ),
            "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
            "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
        },
        ("kafka0:29092", "localhost:9092"), host="kafka0", command=UPDATED,
    ),
    Compose(
        "tchiotludo/akhq docker-compose.yml @0109bea7",
        {
            "KAFKA_BROKER_ID": "0",
            "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
            "KAFKA_NUM_PARTITIONS": "12",
            "KAFKA_COMPRESSION_TYPE": "gzip",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092",
            "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
            "KAFKA_JMX_PORT": "9091",
            "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "true",
        },
        ("kafka:9092",), mount="/var/lib/kafka",
    ),
    Compose(
        "confluentinc/cp-all-in-one cp-all-in-one-kraft/docker-compose.yml @01f37142",
        {
            **RAFT,
            "KAFKA_BROKER_ID": "1",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT"
            ),
            "KAFKA_ADVERTISED_LISTENERS": INSIDE_AND_OUTSIDE.format("broker"),
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_JMX_PORT": "9101",
            "KAFKA_JMX_HOSTNAME": "localhost",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
            "KAFKA_LISTENERS": (
                "PLAINTEXT://broker:29092,CONTROLLER://broker:29093,PLAINTEXT_HOST://0.0.0.0:9092"
            ),
            "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
            "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
        },
        ("broker:29092", "localhost:9092"), host="broker", command=UPDATED,
    ),
    Compose(
        "vectordotdev/vector scripts/integration/kafka/compose.yaml @0fc5cc59",
        {
            "KAFKA_BROKER_ID": "1",
            "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
            "ZOOKEEPER_SASL_ENABLED": "false",
            "KAFKA_LISTENERS": "PLAINTEXT://:9091,SSL://:9092,SASL_PLAINTEXT://:9093",
            "KAFKA_ADVERTISED_LISTENERS": (
                "PLAINTEXT://kafka:9091,SSL://kafka:9092,SASL_PLAINTEXT://kafka:9093"
            ),
            "KAFKA_SSL_KEYSTORE_TYPE": "PKCS12",
            "KAFKA_SSL_KEY_CREDENTIALS": "kafka.pass",
            "KAFKA_SSL_KEYSTORE_CREDENTIALS": "kafka.pass",
            "KAFKA_SSL_KEYSTORE_FILENAME": "kafka.p12",
            "KAFKA_SSL_CLIENT_AUTH": "required",
            "KAFKA_SSL_TRUSTSTORE_TYPE": "PKCS12",
            "KAFKA_SSL_TRUSTSTORE_FILENAME": "kafka.p12",
            "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "kafka.pass",
            "KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM": "none",
            "KAFKA_OPTS": "-Djava.security.auth.login.config=/etc/kafka/kafka_server_jaas.conf",
            "KAFKA_SASL_ENABLED_MECHANISMS": "PLAIN",
            "KAFKA_SASL_MECHANISM_INTER_BROKER_PROTOCOL": "PLAIN",
        },
        ("kafka:9091",), secured={"kafka:9092": "SSL", "kafka:9093": "SASL_PLAINTEXT"},
    ),
    Compose(
        "tulios/kafkajs docker-compose.2_4.yml @274df30f (a cluster of 3)",
        {
            "KAFKA_BROKER_ID": "0",
            "KAFKA_ZOOKEEPER_CONNECT": "zookeeper:2181",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                "PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT,SSL:SSL,SSL_HOST:SSL"
            ),
            "KAFKA_ADVERTISED_LISTENERS": (
                "PLAINTEXT://kafka1:29092,PLAINTEXT_HOST://localhost:9092,SSL://kafka1:29093,"
                "SSL_HOST://localhost:9093"
            ),
            "KAFKA_SSL_KEYSTORE_FILENAME": "kafka.server.keystore.jks",
            "KAFKA_SSL_KEYSTORE_CREDENTIALS": "keystore_creds",
        },
        ("kafka1:29092",), host="kafka1",
        refused="KAFKA_SSL_KEYSTORE_CREDENTIALS: /etc/kafka/secrets",
    ),
    Compose(
        "jaegertracing/jaeger docker-compose/kafka/docker-compose.yml @0b74f50f",
        {
            "KAFKA_BROKER_ID": "1",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_CFG_ZOOKEEPER_CONNECT": "zookeeper:2181",
            "ALLOW_PLAINTEXT_LISTENER": "yes",
            "KAFKA_LISTENERS": "INTERNAL://0.0.0.0:9092,OUTSIDE://0.0.0.0:9094",
            "KAFKA_ADVERTISED_LISTENERS": "INTERNAL://kafka:9092,OUTSIDE://localhost:9094",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INTERNAL:PLAINTEXT,OUTSIDE:PLAINTEXT",
            "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
        },
        ("kafka:9092", "localhost:9094"),
        health="kafka-topics.sh --list --bootstrap-server 127.0.0.1:9092",
    ),
    Compose(
        "grafana/mimir development/mimir-ingest-storage/docker-compose.yml @01adcfdf (of 3)",
        {
            **RAFT,
            "CLUSTER_ID": "zH1GDqcNTzGMDCXm5VZQdg",
            "KAFKA_NUM_PARTITIONS": "100",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT"
            ),
            "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
            "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka_1:9093,2@kafka_2:9093,3@kafka_3:9093",
            "KAFKA_BROKER_ID": "1",
            "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093,PLAINTEXT_HOST://:29092",
            "KAFKA_ADVERTISED_LISTENERS": (
                "PLAINTEXT://kafka_1:9092,PLAINTEXT_HOST://localhost:29092"
            ),
        },
        ("kafka_1:9092",), host="kafka_1", refused="controller.quorum.voters",
        health="nc -z localhost 9092 || exit -1",
    ),
    Compose(
        "debezium/debezium-examples tutorial/docker-compose-mysql.yaml @5e29db6f",
        {
            "ZOOKEEPER_CONNECT": "zookeeper:2181",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CLIENT:PLAINTEXT,EXTERNAL:PLAINTEXT",
            "KAFKA_LISTENERS": "CLIENT://:9092,EXTERNAL://:9093",
            "KAFKA_ADVERTISED_LISTENERS": "CLIENT://kafka:9092,EXTERNAL://localhost:9093",
            "KAFKA_INTER_BROKER_LISTENER_NAME": "CLIENT",
        },
        ("kafka:9092", "localhost:9093"),
    ),
    Compose(
        "milvus-io/milvus deployments/docker/dev/docker-compose.yml @055cbe1a",
        {
            "KAFKA_BROKER_ID": "0",
            "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092",
            "KAFKA_CFG_ADVERTISED_LISTENERS": "PLAINTEXT://127.0.0.1:9092",
            "KAFKA_CFG_ZOOKEEPER_CONNECT": "zookeeper:2181",
            "ALLOW_PLAINTEXT_LISTENER": "yes",
            "KAFKA_CFG_MAX_PARTITION_FETCH_BYTES": "5242880",
            "KAFKA_CFG_MAX_REQUEST_SIZE": "5242880",
            "KAFKA_CFG_MESSAGE_MAX_BYTES": "5242880",
            "KAFKA_CFG_REPLICA_FETCH_MAX_BYTES": "5242880",
            "KAFKA_CFG_FETCH_MESSAGE_MAX_BYTES": "5242880",
            "KAFKA_CFG_AUTO_CREATE_TOPICS_ENABLE": "true",
        },
        ("127.0.0.1:9092",),
    ),
    Compose(
        "conduktor/kafka-stack-docker-compose zk-single-kafka-single.yml @0731986f",
        {
            "KAFKA_ADVERTISED_LISTENERS": (
                "LISTENER_DOCKER_INTERNAL://kafka1:19092,LISTENER_DOCKER_EXTERNAL://127.0.0.1:9092"
            ),
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                "LISTENER_DOCKER_INTERNAL:PLAINTEXT,LISTENER_DOCKER_EXTERNAL:PLAINTEXT"
            ),
            "KAFKA_INTER_BROKER_LISTENER_NAME": "LISTENER_DOCKER_INTERNAL",
            "KAFKA_ZOOKEEPER_CONNECT": "zoo1:2181",
            "KAFKA_BROKER_ID": "1",
            "KAFKA_LOG4J_LOGGERS": LOG4J,
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        },
        ("kafka1:19092", "127.0.0.1:9092"), host="kafka1", mount="/var/lib/kafka/data",
    ),
    Compose(
        "bitnami/containers bitnami/kafka/docker-compose.yml @027f234d",
        {
            "KAFKA_CFG_NODE_ID": "0",
            "KAFKA_CFG_PROCESS_ROLES": "controller,broker",
            "KAFKA_CFG_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "KAFKA_CFG_ADVERTISED_LISTENERS": "PLAINTEXT://:9092",
            "KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "KAFKA_CFG_CONTROLLER_QUORUM_VOTERS": "0@kafka:9093",
            "KAFKA_CFG_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "ALLOW_PLAINTEXT_LISTENER": "yes",
        },
        ("kafka:9092",), mount="/bitnami",
        command=("/opt/bitnami/scripts/kafka/entrypoint.sh", "/opt/bitnami/scripts/kafka/run.sh"),
    ),
)  # fmt: skip
# One node of five that only ZooKeeper knows to be a cluster: nothing in its variables tells.
LEFT_OUT = {"IBM/sarama": "docker-compose.yml @0e0c8e04, a cluster of 5"}
