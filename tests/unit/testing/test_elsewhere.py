"""Fixtures and `serve --memory` where there is nothing that Unix alone has: no uvloop, sendfile,
fork, fcntl, resource, no reads at a position, no signals but those of C, no descriptors of
directories. What is written as text is written in an encoding that is named.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ELSEWHERE = [sys.executable, "-X", "warn_default_encoding", "-m", "tests.unit.testing.elsewhere"]
PATIENCE_S = 60

TESTS = '''
import os
import sys

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

from kafkalite.testing.embedded import BrokerFailed, EmbeddedKafka

LARGE = b"x" * 900_000


def test_nothing_of_unix_is_here():
    assert not hasattr(os, "fork") and not hasattr(os, "pread")
    assert sys.modules["fcntl"] is None and sys.modules["uvloop"] is None


def test_a_topic_of_its_own(kafkalite, kafkalite_topic):
    with KafkaProducer(**kafkalite.client_config("kafka-python")) as producer:
        producer.send(kafkalite_topic, b"one pizza").get(20)
    assert kafkalite.records(kafkalite_topic).one().text == "one pizza"


def test_a_large_fetch(fresh_kafkalite):
    config = fresh_kafkalite.client_config("confluent")
    producer = Producer(config)
    for _ in range(5):
        producer.produce("large", LARGE)
    assert producer.flush(20) == 0
    consumer = Consumer({**config, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["large"])
    assert [consumer.poll(20).value() for _ in range(5)] == [LARGE] * 5
    consumer.close()


@pytest.mark.kafkalite(brokers=3, topics={"orders": 3})
def test_several_brokers_with_a_group_and_a_transaction(fresh_kafkalite):
    kafka = fresh_kafkalite
    config = kafka.client_config("confluent")
    producer = Producer({**config, "transactional.id": "t"})
    producer.init_transactions(20)
    producer.begin_transaction()
    for partition in range(3):
        producer.produce("orders", b"one", partition=partition)
    producer.commit_transaction(20)
    with KafkaConsumer("orders", group_id="g", auto_offset_reset="earliest",
                       **kafka.client_config("kafka-python")) as consumer:
        assert [next(consumer).value for _ in range(3)] == [b"one"] * 3
        kafka.wait_for_group("g", members=1)


def test_snapshots_time_and_faults(fresh_kafkalite):
    kafka = fresh_kafkalite
    kafka.create_topic("orders", configs={"retention.ms": 86_400_000})
    kafka.produce("orders", "one")
    snapshot = kafka.snapshot()
    kafka.produce("orders", "two")
    kafka.restore(snapshot)
    assert kafka.records("orders").one().text == "one"
    with kafka.fail("Produce", error="NOT_LEADER_OR_FOLLOWER") as fault:
        kafka.produce("orders", "two")
    assert fault.count == 1
    kafka.clock.advance(days=2)
    kafka.run_retention()
    assert kafka.records("orders", count=0) == []
    kafka.reset()


def test_it_comes_back_on_its_port(fresh_kafkalite):
    port = fresh_kafkalite.port
    fresh_kafkalite.produce("orders", "one")
    fresh_kafkalite.disconnect()
    fresh_kafkalite.stop()
    fresh_kafkalite.start()
    assert fresh_kafkalite.port == port
    assert fresh_kafkalite.records("orders").one().text == "one"


@pytest.mark.kafkalite(profile="kafka-2.8", security="sasl_plaintext", mechanism="SCRAM-SHA-256",
                       users={"alice": "secret"})
def test_logins_and_another_release(fresh_kafkalite):
    fresh_kafkalite.produce("orders", "one")
    assert fresh_kafkalite.records("orders").one().text == "one"


def test_data_in_files_is_refused(tmp_path):
    with pytest.raises(BrokerFailed, match="keep it in memory"):
        EmbeddedKafka(tmp_path).start()
'''


def test_fixtures_work_where_nothing_is_that_unix_alone_has(tmp_path: Path) -> None:
    (tmp_path / "test_there.py").write_text(TESTS)
    plugins = ("-p", "no:cacheprovider", "-p", "no:timeout", "-p", "no:randomly")
    strict = ("-o", r"filterwarnings=error::EncodingWarning:kafkalite\..*")
    call = [*ELSEWHERE, "pytest", "-q", *plugins, *strict, "test_there.py"]
    done = subprocess.run(
        call, cwd=tmp_path, env=_environment(), capture_output=True, text=True,
        timeout=2 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout, done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_in_memory_stops_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    port = tmp_path / "port"
    call = [*ELSEWHERE, "kafkalite", "serve", "--memory", "--listen", "127.0.0.1:0",
            "--port-file", str(port)]  # fmt: skip
    with subprocess.Popen(
        call, cwd=tmp_path, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        end = time.monotonic() + PATIENCE_S
        while not port.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert "kafkalite is stopping" in said


def test_data_in_files_is_refused_in_one_sentence(tmp_path: Path) -> None:
    call = [*ELSEWHERE, "kafkalite", "serve", "--data-dir", str(tmp_path / "data")]
    done = subprocess.run(
        call, cwd=tmp_path, env=_environment(), capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "kafkalite cannot start: data in files needs what this system lacks" in done.stderr
    assert "Traceback" not in done.stderr


def _environment() -> dict[str, str]:
    """Without what hides where kafkalite is looked for."""
    return {**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}"}
