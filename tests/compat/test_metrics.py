"""`kafkalite metrics` beside both brokers: its numbers are those that librdkafka is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from kafkalite.cli._as_program import INTERRUPTED, NOBODY_ANSWERS
from tests.compat.brokers import Broker
from tests.compat.conftest import MakeTopic

PATIENCE_S = 30
RECORDS, READ = 30, 12

Row = tuple[str, ...]
Series = dict[str, dict[Row, float]]


def series(text: str) -> Series:
    """Each name's values, by the values of its labels in the order of the labels' names."""
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in sorted(sample.labels))
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def page(broker: Broker, path: str) -> Series:
    done = subprocess.run(
        [sys.executable, "-m", "kafkalite", "metrics", "-b", broker.bootstrap, "--once",
         "--page", path],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return series(done.stdout)


@contextmanager
def reading(broker: Broker, topic: str, group: str, protocol: str) -> Iterator[Consumer]:
    """A member that has read and committed some, and stays."""
    consumer = Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": group, "group.protocol": protocol,
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })  # fmt: skip
    try:
        consumer.subscribe([topic])
        read = 0
        while read < READ:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "nothing came"
            assert message.error() is None
            consumer.commit(message, asynchronous=False)
            read += 1
        yield consumer
    finally:
        consumer.close()


@pytest.fixture
def topic(broker: Broker, make_topic: MakeTopic) -> str:
    name = make_topic(3)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        producer.produce(name, f"value {number}", partition=number % 2)
    assert producer.flush(PATIENCE_S) == 0
    return name


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_numbers_are_what_librdkafka_is_told(
    broker: Broker, topic: str, protocol: str
) -> None:
    group = f"metrics-{uuid4()}"
    with reading(broker, topic, group, protocol) as consumer:
        exporter, kminion = page(broker, "/metrics"), page(broker, "/metrics/kminion")
        places = [TopicPartition(topic, index) for index in range(3)]
        behind = 0
        told = {each.partition: each.offset for each in consumer.committed(places, PATIENCE_S)}
        for place in places:
            low, high = consumer.get_watermark_offsets(place, PATIENCE_S)
            index = str(place.partition)
            of_place, of_group = (index, topic), (group, index, topic)
            assert exporter["kafka_topic_partition_current_offset"][of_place] == high
            assert exporter["kafka_topic_partition_oldest_offset"][of_place] == low
            assert exporter["kafka_topic_partition_under_replicated_partition"][of_place] == 0
            assert exporter["kafka_topic_partition_leader_is_preferred"][of_place] == 1
            committed = told[place.partition]
            name = "kminion_kafka_consumer_group_topic_partition_lag"
            if committed < 0:  # nothing was
                assert exporter["kafka_consumergroup_current_offset"][of_group] == -1
                assert exporter["kafka_consumergroup_lag"][of_group] == -1
                assert (group, index, topic) not in kminion[name]
            else:
                assert exporter["kafka_consumergroup_current_offset"][of_group] == committed
                assert exporter["kafka_consumergroup_lag"][of_group] == high - committed
                behind += high - committed
                assert kminion[name][group, index, topic] == high - committed
    assert exporter["kafka_consumergroup_lag_sum"][group, topic] == behind
    assert exporter["kafka_consumergroup_members"][group,] == 1
    assert kminion["kminion_kafka_consumer_group_topic_assigned_partitions"][group, topic] == 3
    assert kminion["kminion_kafka_topic_high_water_mark_sum"][topic,] == RECORDS
    assert kminion["kminion_kafka_topic_log_dir_size_total_bytes"][topic,] > 0
    assert kminion["kminion_kafka_topic_info"]["delete", "3", "1", topic] == 1
    [(brokers, *_)] = kminion["kminion_kafka_cluster_info"]
    assert brokers == "1"


@pytest.mark.theirs_in_full
def test_it_serves_until_it_is_told_to_end(broker: Broker, topic: str) -> None:
    words = ["metrics", "-b", broker.bootstrap, "--listen", "127.0.0.1:0", "--look-every", "1"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    program = subprocess.Popen(
        [sys.executable, "-m", "kafkalite", *words],
        stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    try:
        assert program.stderr is not None
        url = program.stderr.readline().split()[-1]
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            found = series(answer.read().decode())
        assert found["kafka_topic_partitions"][topic,] == 3
        _see_a_group_stall(broker, topic, url.removesuffix("/metrics"))
        program.send_signal(signal.SIGINT)
        assert program.wait(PATIENCE_S) in (0, INTERRUPTED)
    finally:
        program.kill()
        program.communicate()


def _see_a_group_stall(broker: Broker, topic: str, url: str) -> None:
    """A member that has records before it and commits the same offset again."""

    def ask(path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{url}/v3/kafka{path}", timeout=PATIENCE_S) as answer:
            found: dict[str, Any] = json.loads(answer.read())
        return found

    [cluster] = ask("")["clusters"]
    group = f"stalls-{uuid4()}"
    with reading(broker, topic, group, "classic") as consumer:
        [place] = [each for each in consumer.position(consumer.assignment()) if each.offset > 0]
        deadline = time.monotonic() + PATIENCE_S
        status = ""
        while status != "STALL":
            assert time.monotonic() < deadline, status
            consumer.commit(offsets=[place], asynchronous=False)
            time.sleep(1.2)
            if group in ask(f"/{cluster}/consumer")["consumers"]:
                found = ask(f"/{cluster}/consumer/{group}/status")["status"]
                status = found["partitions"][0]["status"] if found["partitions"] else ""
    assert found["status"] == "ERR"


def test_nobody_there_is_one_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kafkalite", "metrics", "-b", "127.0.0.1:1", "--once"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == NOBODY_ANSWERS
    assert len(done.stderr.splitlines()) == 1
    assert "127.0.0.1:1" in done.stderr
    assert done.stdout == ""
