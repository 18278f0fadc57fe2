"""Kafka Streams with exactly_once_v2, its broker and its application killed again and again.

Every count must be there once: neither a kill of the broker nor one of the application may lose a
word or count it twice.
"""

import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalite.jvm import jars, java
from tests.compat import brokers
from tests.compat.brokers import KAFKALITE, Broker
from tests.compat.java_classes import compile_classes

PARTITIONS = 2
WORDS = [f"word-{number}" for number in range(50)]
SOURCE, TARGET = "words", "counts"
WAIT_S = 20
# By protocol: who groups are told of an application that is killed, and how soon.
CLASSIC = ("consumer.session.timeout.ms=6000", "consumer.heartbeat.interval.ms=1000")
STREAMS = ("group.protocol=streams",)
SOON = {
    "group.streams.session.timeout.ms": "6000", "group.streams.min.session.timeout.ms": "6000",
    "group.streams.heartbeat.interval.ms": "500", "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "1000",
}  # fmt: skip

pytestmark = [pytest.mark.xdist_group("java-clients"), pytest.mark.theirs_in_full]


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    source = Path(__file__).parent / "java" / "WordCount.java"
    compile_classes([source], folder, ["streams"])
    return folder


class Scene:
    """A broker on one port for all its lives, and instances of an application, each with its state
    folder."""

    def __init__(
        self, folder: Path, classes: Path, kind: str = KAFKALITE,
        settings: tuple[str, ...] = CLASSIC, overrides: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.classes = classes
        self.kind, self.settings, self.overrides = kind, settings, overrides
        [self.port] = brokers.free_ports(1)
        self.broker: Broker = self._start_broker()
        self.instances: list[subprocess.Popen[bytes]] = []
        self.kills = {"broker": 0, "application": 0, "one instance": 0}

    def _start_broker(self) -> Broker:
        return brokers.start(self.kind, self.folder / "broker", self.overrides, port=self.port)

    def start_application(self) -> None:
        """Another instance."""
        class_path = f"{self.classes}:{jars.class_path('streams')}"
        state = self.folder / f"state-{len(self.instances)}"
        words = (self.broker.bootstrap, "word-count", SOURCE, TARGET, str(state), *self.settings)
        call = java.command(class_path, "WordCount", *words, heap="256M")
        call[1:1] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        with (self.folder / "application.log").open("ab") as log:
            self.instances.append(subprocess.Popen(call, stdout=log, stderr=log))

    def kill(self, what: str) -> None:
        self.kills[what] += 1
        if what == "broker":
            self.broker.kill()
            self.broker = self._start_broker()
        else:
            self.end_instance()
            if what == "application":
                self.start_application()

    def end_instance(self) -> None:
        """Kills the last one; what it had on disk is there for the next."""
        instance = self.instances.pop()
        instance.send_signal(signal.SIGKILL)
        instance.wait(WAIT_S)

    def close(self) -> None:
        while self.instances:
            self.end_instance()
        self.broker.kill()


@pytest.fixture
def scene(tmp_path: Path, classes: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path, classes)
    yield scene
    scene.close()


def feed(scene: Scene, count: int) -> dict[str, int]:
    """Writes so many words, and says how often each is among them."""
    admin = AdminClient({"bootstrap.servers": scene.broker.bootstrap})
    made = admin.create_topics([NewTopic(SOURCE, PARTITIONS), NewTopic(TARGET, PARTITIONS)])
    for future in made.values():
        future.result(WAIT_S)
    producer = Producer({"bootstrap.servers": scene.broker.bootstrap, "enable.idempotence": True})
    words = Random(1).choices(WORDS, k=count)
    for number, word in enumerate(words):
        while True:
            try:
                producer.produce(SOURCE, word, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(WAIT_S) == 0
    return {word: words.count(word) for word in WORDS}


class Counts:
    """What came out, read committed, in the order of its partition."""

    def __init__(self, scene: Scene) -> None:
        self._consumer = Consumer({
            "bootstrap.servers": f"127.0.0.1:{scene.port}", "group.id": "none",
            "isolation.level": "read_committed", "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        })
        self._consumer.assign([TopicPartition(TARGET, index, 0) for index in range(PARTITIONS)])
        self.by_word: dict[str, list[int]] = {word: [] for word in WORDS}
        self.total = 0

    def poll(self) -> None:
        for message in self._consumer.consume(1_000, 0.2):
            if message.error() is None:
                self.by_word[message.key().decode()].append(int(message.value()))
                self.total += 1

    def close(self) -> None:
        self._consumer.close()


def run(
    scene: Scene, count: int, kills: list[str], timeout_s: int, instances: int = 1
) -> None:
    expected = feed(scene, count)
    for _ in range(instances):
        scene.start_application()
    counts = Counts(scene)
    # One kill after each of these shares of the whole has come out.
    due = [(count * (turn + 1) // (len(kills) + 2), what) for turn, what in enumerate(kills)]
    deadline = time.monotonic() + timeout_s
    while counts.total < count:
        assert time.monotonic() < deadline, f"{counts.total} of {count}: {said(scene)}"
        counts.poll()
        if due and counts.total >= due[0][0]:
            scene.kill(due.pop(0)[1])
    counts.poll()
    counts.close()
    assert not due
    wrong = {
        word: found
        for word, found in counts.by_word.items()
        if found != list(range(1, expected[word] + 1))
    }
    assert not wrong, {word: found[:10] for word, found in wrong.items()}
    print(f"{count} records counted exactly, kills: {scene.kills}")


def said(scene: Scene) -> str:
    log = (scene.folder / "application.log").read_text(errors="replace")
    return f"{log[-3000:]}\n{scene.broker.log()[-2000:]}"


def test_words_are_counted_once(scene: Scene) -> None:
    run(scene, 5_000, ["broker", "application"], timeout_s=110)


@pytest.mark.timeout(240)
def test_a_streams_group_goes_on_without_one_of_its_instances(
    broker_kind: str, tmp_path: Path, classes: Path
) -> None:
    """The newer protocol (KIP-1071): tasks and internal topics are the broker's to give."""
    scene = Scene(tmp_path, classes, broker_kind, STREAMS, SOON)
    try:
        run(scene, 5_000, ["one instance"], timeout_s=200, instances=2)
    finally:
        scene.close()


@pytest.mark.slow
@pytest.mark.timeout(1_500)
def test_many_words_are_counted_once_over_many_kills(scene: Scene) -> None:
    kills = ["broker", "application", "broker", "broker", "application", "broker", "application"]
    run(scene, 100_000, [*kills, "broker"], timeout_s=1_400)
