"""Stream programs of Python: quixstreams and faust count words, on both brokers.

Each counts half of the words, ends, loses the state on its disk, and goes on: the counts must come
back from the changelog that it keeps in the broker.
"""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import confluent_kafka
import pytest

from tests.compat import client_builds
from tests.compat.brokers import Broker
from tests.compat.conftest import MakeTopic
from tests.compat.transactional_clients import gather

CALL_TIMEOUT_S = 120
WAIT_S = 20
PARTITIONS = 2
WORDS = [f"word-{number % 7}" for number in range(100)]

pytestmark = [pytest.mark.full, pytest.mark.timeout(client_builds.BUILD_TIMEOUT_S)]


def write(broker: Broker, topic: str, words: list[str]) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
    for word in words:
        producer.produce(topic, b"", key=word)
    assert producer.flush(WAIT_S) == 0


def read(broker: Broker, topic: str, count: int) -> list[tuple[str, int]]:
    """Each count that was told, with its word."""
    consumer = confluent_kafka.Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": "none",
        "auto.offset.reset": "earliest", "isolation.level": "read_committed",
    })
    consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
    said: list[tuple[str, int]] = []

    def poll() -> list[bytes]:
        found = consumer.consume(count, 0.3)
        said.extend((each.key().decode(), int(each.value())) for each in found)
        return [each.value() for each in found]

    gather(poll, count)
    consumer.close()
    return said


def run(name: str, folder: Path, *words: str) -> None:
    packages = client_builds.python(name)
    done = subprocess.run(
        [sys.executable, str(packages / "count.py"), *words], cwd=folder, text=True,
        env={**os.environ, "PYTHONPATH": str(packages / "packages")}, timeout=CALL_TIMEOUT_S,
        capture_output=True, check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(
    ("name", "guarantee"),
    [
        ("quixstreams", "at-least-once"), ("quixstreams", "exactly-once"),
        ("faust", "exactly_once"),  # otherwise it may lose what it did last when it ends
    ],
)
def test_counts_survive_the_loss_of_the_disk(
    name: str, guarantee: str, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, target = make_topic(PARTITIONS), make_topic(PARTITIONS)
    half = len(WORDS) // 2
    for number, words in enumerate((WORDS[:half], WORDS[half:])):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(broker, source, words)
        run(name, folder, broker.bootstrap, source, target, str(half), guarantee)
        shutil.rmtree(folder)
    said = read(broker, target, len(WORDS))
    assert dict(sorted(said, key=lambda each: each[1])) == Counter(WORDS)
    assert len(said) == len(WORDS)
