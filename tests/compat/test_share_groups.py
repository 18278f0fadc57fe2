"""Share groups (KIP-932) on both brokers: Java's and librdkafka's members, and a broker that dies.

Each record is accepted once, or handed out as often as the group allows.
"""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from kafkalite.jvm import jars, java
from kafkalite.protocol.errors import Error
from kafkalite.testing.embedded import EmbeddedKafka
from tests.compat.admin_peer import GROUP, SET, Admin
from tests.compat.brokers import Broker
from tests.compat.conftest import StartBroker
from tests.compat.java_classes import compile_classes

pytestmark = pytest.mark.xdist_group("java-clients")

Start = Callable[..., "subprocess.Popen[str]"]
FIRST_WAIT_MS = 20_000  # until there is an assignment
PATIENT = "test.idle.ms=10000"  # beside other tests a broker takes a while to come back


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    source = Path(__file__).parent / "java" / "Share.java"
    compile_classes([source], folder, ["reference"])
    return folder


@pytest.fixture
def start(classes: Path) -> Iterator[Start]:
    """Starts a member, as a process."""
    started: list[subprocess.Popen[str]] = []

    def go(broker: Broker, group: str, topic: str, *settings: str) -> subprocess.Popen[str]:
        words = [broker.bootstrap, group, topic, str(FIRST_WAIT_MS), *settings]
        class_path = f"{classes}:{jars.class_path('reference')}"
        call = java.command(class_path, "Share", *words, heap="128M")
        call[1:1] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        started.append(
            subprocess.Popen(
                call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        )
        return started[-1]

    yield go
    for each in started:
        each.kill()
        each.communicate()


def prepare(broker: Broker, group: str, **settings: str) -> None:
    """The group reads from the beginning."""
    changes = {"share.auto.offset.reset": "earliest"}
    changes |= {name.replace("_", "."): value for name, value in settings.items()}
    with closing(Admin(broker)) as admin:
        for name, value in changes.items():
            assert admin.alter(GROUP, group, (name, SET, value)).error_code == Error.NONE


def produce(broker: Broker, topic: str, count: int, first: int = 0) -> list[str]:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    values = [str(number) for number in range(first, first + count)]
    for value in values:
        producer.produce(topic, value)
        producer.poll(0)
    assert producer.flush(30) == 0
    return values


def said_by(member: subprocess.Popen[str]) -> list[str]:
    """All that it printed, until it ended or has taken too long."""
    with suppress(subprocess.TimeoutExpired):
        return member.communicate(timeout=60)[0].splitlines()
    member.kill()
    return member.communicate()[0].splitlines()


def got_by(*members: subprocess.Popen[str]) -> Counter[tuple[str, int]]:
    """Values, each with the delivery in which a member had it."""
    found: Counter[tuple[str, int]] = Counter()
    for member in members:
        for line in said_by(member):
            word, _, rest = line.partition(" ")
            assert word != "refused", line
            if word == "got":
                value, count = rest.split()
                found[value, int(count)] += 1
    return found


@pytest.mark.timeout(180)
def test_members_share_records_and_each_is_handed_out_once(
    broker: Broker, start: Start, make_topic, unique
) -> None:
    group, topic = unique("group"), make_topic(partitions=2)
    prepare(broker, group)
    values = produce(broker, topic, 3_000)
    members = [start(broker, group, topic) for _ in range(2)]
    found = got_by(*members)
    assert found == Counter((value, 1) for value in values)


@pytest.mark.timeout(180)
def test_what_is_released_comes_again_and_what_is_rejected_does_not(
    broker: Broker, start: Start, make_topic, unique
) -> None:
    group, topic = unique("group"), make_topic(partitions=1)
    prepare(broker, group)
    values = produce(broker, topic, 200)
    found = got_by(start(broker, group, topic, "share.acknowledgement.mode=explicit"))
    again = [value for value in values if value.endswith("3")]
    assert found == Counter([(value, 1) for value in values] + [(value, 2) for value in again])


@pytest.mark.theirs_in_full
@pytest.mark.timeout(180)
def test_so_many_records_and_no_more(
    broker: Broker, start: Start, make_topic, unique
) -> None:
    group, topic = unique("group"), make_topic(partitions=1)
    prepare(broker, group)
    values = produce(broker, topic, 500)
    limits = ("share.acquire.mode=record_limit", "max.poll.records=70")
    found = got_by(*[start(broker, group, topic, *limits) for _ in range(2)])
    assert found == Counter((value, 1) for value in values)


@pytest.mark.full  # beside other tests some records came to nobody in time, and why is not known
@pytest.mark.timeout(180)
def test_librdkafka_shares_with_java(
    broker: Broker, start: Start, make_topic, unique
) -> None:
    group, topic = unique("group"), make_topic(partitions=2)
    prepare(broker, group)
    member = ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    member.subscribe([topic])
    found: Counter[tuple[str, int]] = Counter()
    values = produce(broker, topic, 1_000)
    other = start(broker, group, topic)
    deadline = time.monotonic() + 40
    quiet_polls = 0
    while time.monotonic() < deadline and (other.poll() is None or quiet_polls < 6):
        messages = member.poll(0.5)
        quiet_polls = 0 if messages else quiet_polls + 1
        for message in messages:
            assert message.error() is None, message.error()
            found[message.value().decode(), 1] += 1
    member.close()
    assert found + got_by(other) == Counter((value, 1) for value in values)


@pytest.mark.full  # it wants a machine that has nothing else to do
@pytest.mark.timeout(240)
def test_a_member_and_then_the_broker_are_killed(
    start_broker: StartBroker, start: Start, make_topic, unique
) -> None:
    """What was accepted before is not handed out again, and nothing is lost."""
    broker = start_broker()
    group = unique("group")
    with closing(Admin(broker)) as admin:
        admin.create("t", 2)
    prepare(broker, group, share_record_lock_duration_ms="15000")
    values = produce(broker, "t", 2_000)
    members = [start(broker, group, "t", PATIENT) for _ in range(3)]
    time.sleep(8)
    members[0].kill()
    port = broker.port
    broker.kill()
    broker = start_broker(folder=broker.folder, port=port)
    values += produce(broker, "t", 500, first=2_000)
    time.sleep(20)  # until the locks of who was killed have expired
    late = start(broker, group, "t", PATIENT)
    found: Counter[str] = Counter()
    for member in (*members, late):
        for line in said_by(member):
            if line.startswith("got "):
                found[line.split()[1]] += 1
    assert set(found) == set(values)
    assert max(found.values()) <= 5


@pytest.mark.timeout(120)
def test_brokers_ask_each_other_for_the_states_of_partitions() -> None:
    """Kafkalite alone, of which three run: leaders and coordinators lie on any of them."""
    with EmbeddedKafka(brokers=3) as kafka:
        kafka.create_topic("t", partitions=6)
        asked = {"bootstrap.servers": kafka.bootstrap_servers}
        resource = ConfigResource(ResourceType.GROUP, "g", incremental_configs=[
            ConfigEntry(
                "share.auto.offset.reset", "earliest",
                incremental_operation=AlterConfigOpType.SET,
            )
        ])  # fmt: skip
        admin = AdminClient(asked)
        admin.incremental_alter_configs([resource])[resource].result(20)
        producer = Producer(asked)
        for number in range(600):
            producer.produce("t", str(number), partition=number % 6)
        assert producer.flush(20) == 0
        member = ShareConsumer({**asked, "group.id": "g"})
        member.subscribe(["t"])
        found: Counter[str] = Counter()
        deadline = time.monotonic() + 60
        while len(found) < 600 and time.monotonic() < deadline:
            for message in member.poll(0.5):
                assert message.error() is None, message.error()
                found[message.value().decode()] += 1
        member.close()
        assert found == Counter(str(number) for number in range(600))
