"""Kafka Connect: distributed workers with exactly-once sources, on both brokers.

Lines of a file go to a topic and from there to a file, while workers die and start again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.compat.brokers import Broker
from tests.compat.connect import INTERNAL, JSON, Workers
from tests.compat.transactional_clients import gather

WAIT_S = 20

# One worker of pytest runs them, with two of Connect for each broker.
pytestmark = [
    pytest.mark.slow, pytest.mark.xdist_group("connect"), pytest.mark.timeout(600)
]


@pytest.fixture(scope="session")
def workers(
    broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    """Two workers that all tests share."""
    folder = tmp_path_factory.mktemp("connect")
    workers = Workers(folder, broker.bootstrap, folder.name)
    try:
        workers.start(2)
        yield workers
    finally:
        workers.stop()


@pytest.fixture
def own_workers(
    broker: Broker, tmp_path: Path, unique: Callable[[str], str]
) -> Iterator[Workers]:
    """Workers that a test starts and ends as it likes."""
    workers = Workers(tmp_path, broker.bootstrap, unique("connect"))
    yield workers
    workers.stop()


class Route:
    """From the file `source` over a topic to the file `target`, by a connector for each half."""

    def __init__(self, workers: Workers, broker: Broker, topic: str, folder: Path) -> None:
        self.workers, self.broker, self.topic = workers, broker, topic
        self.source, self.target = folder / "source.txt", folder / "target.txt"
        self.reads, self.writes = f"{topic}-reads", f"{topic}-writes"
        self.written: list[str] = []
        self.source.touch()

    def write(self, count: int, other: str = "= {} =") -> None:
        """So many lines more; some are empty, some wide, some as is said.

        The source takes a place in a file that is not of ASCII for less than it is when it goes
        on there, so that is said only where it need not.
        """
        first = len(self.written)
        kinds = ("line {}", "", "  {} with blanks  ", other, "{}" + "-" * 3_000)
        lines = [kinds[number % 5].format(number) for number in range(first, first + count)]
        with self.source.open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        self.written += lines

    def connect(self) -> None:
        self.workers.create(
            self.reads, connector_class="FileStreamSource", file=str(self.source),
            topic=self.topic, exactly_once_support="required",
        )
        self.workers.create(
            self.writes, connector_class="FileStreamSink", file=str(self.target),
            topics=self.topic, consumer_override_auto_offset_reset="earliest",
        )

    def came(self) -> list[str]:
        """The lines of the target."""
        if not self.target.exists():
            return []
        return self.target.read_text(encoding="utf-8").split("\n")[:-1]

    def await_target(self, expected: list[str]) -> None:
        self.workers.until(lambda: len(self.came()) >= len(expected))
        assert self.came() == expected

    def records(self, count: int) -> list[str]:
        return [value.decode() for value in read(self.broker, self.topic, count)]


def read(broker: Broker, topic: str, count: int) -> list[bytes]:
    """The values of a topic of one partition, of transactions that were committed."""
    return [message.value() for message in messages(broker, topic, count)]


def messages(broker: Broker, topic: str, count: int) -> list[confluent_kafka.Message]:
    consumer = Consumer({
        "bootstrap.servers": broker.bootstrap, "group.id": "none",
        "isolation.level": "read_committed",
    })
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[confluent_kafka.Message] = []

    def poll() -> list[bytes]:
        more = consumer.consume(count, 0.3)
        found.extend(more)
        return [message.value() for message in more]

    gather(poll, count)
    consumer.close()
    return found


@pytest.fixture
def route(workers: Workers, broker: Broker, topic: str, tmp_path: Path) -> Iterator[Route]:
    route = Route(workers, broker, topic, tmp_path)
    yield route
    for name in (route.reads, route.writes):
        workers.ask("DELETE", f"/connectors/{name}")


def test_lines_of_a_file_come_to_a_file(route: Route) -> None:
    route.write(500, "строка {} ☃")
    route.connect()
    route.await_target(route.written)
    route.write(500, "строка {} ☃")
    route.await_target(route.written)
    assert route.records(1_000) == route.written


def test_connect_makes_its_topics_compacted(workers: Workers, broker: Broker) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    names = [f"{workers.name}-{what}" for what in INTERNAL]
    known = admin.list_topics(timeout=WAIT_S).topics
    assert [len(known[name].partitions) for name in names] == [1, 3, 2]
    topic = confluent_kafka.admin.ConfigResource.Type.TOPIC
    asked = [confluent_kafka.admin.ConfigResource(topic, name) for name in names]
    told = [future.result(WAIT_S) for future in admin.describe_configs(asked).values()]
    assert [settings["cleanup.policy"].value for settings in told] == ["compact"] * 3


def test_offsets_are_told_and_changed_over_rest(route: Route, topic: str) -> None:
    route.write(100)
    route.connect()
    route.await_target(route.written)
    first, size = route.written[0], route.source.stat().st_size
    of_source = {"filename": str(route.source)}
    of_sink = {"kafka_topic": topic, "kafka_partition": 0}
    workers = route.workers
    assert workers.offsets(route.reads) == [(of_source, {"position": size})]
    # With each transaction goes a marker, which has an offset of its own.
    end = messages(route.broker, topic, 100)[-1].offset() + 1
    ends = [[(of_sink, {"kafka_offset": offset})] for offset in (end, end + 1)]
    workers.until(lambda: workers.offsets(route.writes) in ends)
    for name in (route.reads, route.writes):
        workers.halt(name)
    again = [{"partition": of_source, "offset": {"position": len(first) + 1}}]
    workers.ask("PATCH", f"/connectors/{route.reads}/offsets", {"offsets": again})
    assert workers.offsets(route.reads) == [(of_source, {"position": len(first) + 1})]
    workers.ask("DELETE", f"/connectors/{route.writes}/offsets")
    assert workers.offsets(route.writes) == []
    route.target.unlink()
    workers.resume(route.reads)
    workers.resume(route.writes)
    route.await_target([*route.written, *route.written[1:]])


def test_bad_records_go_to_the_dead_letters(
    workers: Workers, broker: Broker, topic: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    dead, name, target = unique("dead"), unique("sink"), tmp_path / "target.txt"
    values = [b"17", b"not JSON", b'"text"', b"{", b"true"]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, b"key-%d" % number, headers=[("number", b"%d" % number)])
    assert producer.flush(WAIT_S) == 0
    workers.create(
        name, connector_class="FileStreamSink", file=str(target), topics=topic,
        value_converter=JSON, value_converter_schemas_enable="false",
        consumer_override_auto_offset_reset="earliest", errors_tolerance="all",
        errors_deadletterqueue_topic_name=dead,
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )
    workers.until(lambda: target.exists() and target.read_text() == "17\ntext\ntrue\n")
    letters = messages(broker, dead, 2)
    assert [(each.key(), each.value()) for each in letters] == [
        (b"key-1", b"not JSON"), (b"key-3", b"{")
    ]
    for number, letter in zip((1, 3), letters, strict=True):
        headers = dict(letter.headers())
        assert headers["number"] == b"%d" % number
        assert headers["__connect.errors.topic"] == topic.encode()
        assert headers["__connect.errors.offset"] == b"%d" % number
        assert headers["__connect.errors.connector.name"] == name.encode()
    workers.ask("DELETE", f"/connectors/{name}")


def test_connectors_survive_kills_and_restarts_of_workers(
    own_workers: Workers, broker: Broker, topic: str, tmp_path: Path
) -> None:
    """The source's lines come once in any case; the sink may write twice what it had written when
    it was killed, and nothing of what it had committed."""
    workers = own_workers
    workers.start(2)
    route = Route(workers, broker, topic, tmp_path)
    route.write(2_000)
    route.connect()
    for victim in (route.reads, route.writes):
        workers.until(lambda: len(route.came()) > 0)
        workers.worker_of(victim).kill()
        route.write(1_000)
        workers.until(lambda: bool(route.came()) and route.came()[-1] == route.written[-1])
        workers.start(1)
    assert route.records(4_000) == route.written
    once = list(dict.fromkeys(enumerated(route.came())))
    assert once == list(dict.fromkeys(enumerated(route.written)))
    workers.stop()
    before = len(route.came())
    route.write(500)
    workers.start(2)
    workers.until(lambda: len(route.came()) >= before + 500)
    assert route.came()[before:] == route.written[4_000:]
    assert route.records(4_500) == route.written
    assert set(workers.ask("GET", "/connectors")) == {route.reads, route.writes}


def enumerated(lines: list[str]) -> list[str]:
    """Lines that tell themselves apart from all others."""
    return [line for line in lines if any(character.isdigit() for character in line)]
