"""What the modules of testcontainers say to a container, family by family: its variables, its
command, the script that is put into it once it runs, and the line that they wait for.

Facts, taken from their sources: Python 4.15, and of 2026 those for Java, Go, Node and .NET.
"""

from __future__ import annotations

from dataclasses import dataclass

ID = "MkU3OEVBNTcwNTJENDM2Qk"
STARTED = r"\[KafkaServer id=\d+\] started"
RAFT_STARTED = "Kafka Server started"
RUNNING = "Transitioning from RECOVERY to RUNNING"
FOREVER = "9223372036854775807"
ONE = {
    "KAFKA_BROKER_ID": "1",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": FOREVER,
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
}
CLASSIC = {
    **ONE,
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
}
KRAFT = {
    **ONE,
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
        "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    ),
}
ZOOKEEPER = """\
echo 'clientPort=2181' > zookeeper.properties
echo 'dataDir=/var/lib/zookeeper/data' >> zookeeper.properties
echo 'dataLogDir=/var/lib/zookeeper/log' >> zookeeper.properties
zookeeper-server-start zookeeper.properties &
"""
NO_CHECKS = "echo '' > /etc/confluent/docker/ensure\n"
NO_ZOOKEEPER = "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure\n"


@dataclass(slots=True, frozen=True)
class Starter:
    """One family of harnesses. In its script {address} is where clients outside reach the port."""

    name: str
    port: int
    path: str  # of the script
    call: str  # of the script, by the shell that waits for it
    script: str
    ready: str
    variables: dict[str, str]
    command: str = "while [ ! -f {path} ]; do sleep 0.1; done; {call}"
    mode: int = 0o755
    aliases: tuple[str, ...] = ()
    zookeeper: bool = False


STARTERS = (
    Starter(
        "python-zookeeper", 9093, "/tc-start.sh", "sh /tc-start.sh",
        "#!/bin/bash\n" + ZOOKEEPER + """\
export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{address},BROKER://$(hostname -i):9092
. /etc/confluent/docker/bash-config
/etc/confluent/docker/configure
/etc/confluent/docker/launch
""",
        STARTED, {**CLASSIC, "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "10000000"},
        mode=0o644, zookeeper=True,
    ),
    Starter(
        "python-kraft", 9093, "/tc-start.sh", "sh /tc-start.sh",
        "#!/bin/bash\n" + NO_ZOOKEEPER + f"""\
echo 'kafka-storage format --ignore-formatted -t {ID} -c /etc/kafka/kafka.properties' \
>> /etc/confluent/docker/configure
""" + """\
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{address},BROKER://$(hostname -i | cut -d' ' -f1):9092
. /etc/confluent/docker/bash-config
/etc/confluent/docker/configure
/etc/confluent/docker/launch
""",
        RAFT_STARTED,
        {
            **KRAFT, "CLUSTER_ID": ID,
            "KAFKA_LISTENERS": (
                "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094"
            ),
        },
        mode=0o644,
    ),
    Starter(
        "java-apache", 9092, "/tmp/testcontainers_start.sh", "/tmp/testcontainers_start.sh",
        """\
#!/bin/bash
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{address},BROKER://$(hostname -i):9093,TC-0://kafka:19092
/etc/kafka/docker/run
""",
        RUNNING,
        {
            **KRAFT,
            "KAFKA_LISTENERS": (
                "TC-0://kafka:19092,CONTROLLER://:9094,PLAINTEXT://:9092,BROKER://:9093"
            ),
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                "TC-0:PLAINTEXT,BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
            ),
        },
        aliases=("kafka",),
    ),
    Starter(
        "java-confluent", 9092, "/tmp/testcontainers_start.sh", "/tmp/testcontainers_start.sh",
        """\
#!/bin/bash
export KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{address},BROKER://$(hostname -i):9093
/etc/confluent/docker/run
""",
        RUNNING,
        {**KRAFT, "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094"},
    ),
    Starter(
        "java-old", 9093, "/testcontainers_start.sh", "/testcontainers_start.sh",
        "#!/bin/bash\nexport KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{address},"
        "BROKER://$(hostname -i):9092\n" + ZOOKEEPER + NO_CHECKS + "/etc/confluent/docker/run\n",
        STARTED, {**CLASSIC, "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181"}, zookeeper=True,
    ),
    Starter(
        "go", 9093, "/usr/sbin/testcontainers_start.sh", "bash /usr/sbin/testcontainers_start.sh",
        """\
#!/bin/bash
source /etc/confluent/docker/bash-config
export KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://{address},BROKER://$(hostname):9092"
echo Starting Kafka KRaft mode
""" + NO_ZOOKEEPER + """\
echo 'kafka-storage format --ignore-formatted -t "$(kafka-storage random-uuid)" \
-c /etc/kafka/kafka.properties' >> /etc/confluent/docker/configure
""" + NO_CHECKS + "/etc/confluent/docker/configure\n/etc/confluent/docker/launch",
        RUNNING,
        {
            **KRAFT,
            "KAFKA_LISTENERS": (
                "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094"
            ),
            "KAFKA_REST_BOOTSTRAP_SERVERS": (
                "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094"
            ),
        },
    ),
    Starter(
        "node", 9093, "/testcontainers_start.sh", "/testcontainers_start.sh",
        "#!/bin/bash\nexport KAFKA_ADVERTISED_LISTENERS=BROKER://$(hostname):9092,"
        "PLAINTEXT://{address}\n" + NO_CHECKS + ZOOKEEPER + "/etc/confluent/docker/run \n",
        STARTED,
        {
            **CLASSIC, "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
            "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
        },
        command="echo 'Waiting for script...'; while [ ! -f {path} ]; do sleep 0.1; done; {call}",
        mode=0o777, zookeeper=True,
    ),
    Starter(
        "node-kraft", 9093, "/testcontainers_start.sh", "/testcontainers_start.sh",
        "#!/bin/bash\nexport KAFKA_ADVERTISED_LISTENERS=BROKER://$(hostname):9092,"
        "PLAINTEXT://{address}\n/etc/confluent/docker/run \n",
        RUNNING,
        {
            **KRAFT,
            "KAFKA_LISTENERS": (
                "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094"
            ),
            "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
        },
        mode=0o777,
    ),
    Starter(
        "dotnet", 9092, "/testcontainers.sh", "/testcontainers.sh",
        "#!/bin/bash\nexport KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{address},"
        "BROKER://$(hostname -i):9093,\nexec /etc/kafka/docker/run\n",
        RUNNING,
        {**KRAFT, "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094"},
    ),
)  # fmt: skip
