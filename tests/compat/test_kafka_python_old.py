"""kafka-python 2.2, which speaks older versions of the protocol than 3 does, on both brokers.

Two versions of a package cannot live in one process: the older one has a folder of its own beside
the environment's packages, and each test is a program that runs with that folder first.
"""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compat.brokers import Broker

PACKAGES = Path(sys.prefix) / "side" / "kafka-python-old"
PROGRAM_TIMEOUT_S = 60
CODECS = ("None", "'gzip'", "'snappy'", "'lz4'", "'zstd'")

PROLOGUE = """
import sys, time
kind, bootstrap, name = sys.argv[1:]
import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewPartitions, NewTopic
from kafka.structs import OffsetAndMetadata
assert kafka.__version__.startswith("2.2."), kafka.__version__

def producer(**config):
    return KafkaProducer(bootstrap_servers=bootstrap, **config)

def consumer(*topics, **config):
    config = {"auto_offset_reset": "earliest", "consumer_timeout_ms": 15_000, **config}
    return KafkaConsumer(*topics, bootstrap_servers=bootstrap, **config)

def eventually(condition):
    # Apache Kafka's broker follows its controller with a delay; kafkalite has none.
    deadline = time.monotonic() + (0 if kind == "kafkalite" else 20)
    while not condition():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.05)

def take(source, count):
    return [next(source) for _ in range(count)]
"""

Run = Callable[[str], None]


@pytest.fixture
def run(broker: Broker, unique: Callable[[str], str]) -> Run:
    def run_program(text: str) -> None:
        program = PROLOGUE + textwrap.dedent(text)
        done = subprocess.run(
            [sys.executable, "-c", program, broker.kind, broker.bootstrap, unique("it")],
            env={"PYTHONPATH": str(PACKAGES), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=PROGRAM_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]

    return run_program


@pytest.mark.parametrize("codec", CODECS)
def test_codecs(codec: str, run: Run) -> None:
    run(f"""
        values = [b"value %d" % number * 50 for number in range(100)]
        p = producer(compression_type={codec}, linger_ms=20)
        for value in values:
            p.send(name, value, headers=[("trace", b"1")])
        p.flush()
        records = take(consumer(name), 100)
        assert [record.value for record in records] == values
        assert [record.offset for record in records] == list(range(100))
        assert records[0].headers == [("trace", b"1")]
    """)


@pytest.mark.parametrize("version", ["(0, 10, 2)", "(0, 11)", "(1, 0)", "(2, 0)"])
@pytest.mark.old_protocol
def test_protocol_of_older_brokers(version: str, run: Run) -> None:
    run(f"""
        p = producer(api_version={version}, compression_type="gzip")
        sent = [p.send(name, b"%d" % number).get(10).offset for number in range(10)]
        assert sent == list(range(10)), sent
        c = consumer(name, api_version={version}, group_id=name)
        assert [record.value for record in take(c, 10)] == [b"%d" % n for n in range(10)]
        c.commit()
        assert c.committed(TopicPartition(name, 0)) == 10
        c.close()
    """)


def test_idempotent_producer(run: Run) -> None:
    run("""
        p = producer(enable_idempotence=True)
        for number in range(200):
            p.send(name, b"%d" % number)
        p.flush()
        records = take(consumer(name), 200)
        assert [int(record.value) for record in records] == list(range(200))
    """)


def test_transactions(run: Run) -> None:
    run("""
        p = producer(transactional_id=name)
        p.init_transactions()
        for value, end in ((b"aborted", p.abort_transaction), (b"kept", p.commit_transaction)):
            p.begin_transaction()
            p.send(name, value).get(10)
            end()
        [record] = take(consumer(name, isolation_level="read_committed"), 1)
        assert record.value == b"kept"
    """)


def test_offsets_for_times(run: Run) -> None:
    run("""
        base = int(time.time() * 1000) - 1000
        p = producer(linger_ms=50)
        for number in range(10):
            p.send(name, b"x", timestamp_ms=base + 100 * number)
        p.flush()
        c, partition = consumer(), TopicPartition(name, 0)
        assert c.offsets_for_times({partition: base + 450})[partition].offset == 5
        assert c.beginning_offsets([partition]) == {partition: 0}
        assert c.end_offsets([partition]) == {partition: 10}
    """)


def test_group_resumes_from_committed_offsets(run: Run) -> None:
    run("""
        p = producer()
        for number in range(10):
            p.send(name, b"%d" % number)
        p.flush()
        first = consumer(name, group_id=name, enable_auto_commit=False)
        assert [record.offset for record in take(first, 4)] == [0, 1, 2, 3]
        first.commit({TopicPartition(name, 0): OffsetAndMetadata(4, "half way", -1)})
        first.close()
        second = consumer(name, group_id=name, enable_auto_commit=False)
        assert [record.offset for record in take(second, 6)] == [4, 5, 6, 7, 8, 9]
        second.close()
    """)


def test_admin(run: Run) -> None:
    run("""
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)

        def partitions():
            [described] = admin.describe_topics([name])
            return len(described["partitions"])

        admin.create_topics([NewTopic(name, 2, 1, topic_configs={"retention.ms": "100000"})])
        eventually(lambda: partitions() == 2)
        admin.create_partitions({name: NewPartitions(3)})
        eventually(lambda: partitions() == 3)
        admin.delete_topics([name])
        eventually(lambda: name not in admin.list_topics())
    """)
