"""Apache Kafka's own Java clients, from 0.9 to 4.3: each writes, each reads what others wrote."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkalite.jvm import jars, java
from tests.compat.brokers import Broker
from tests.compat.java_classes import compile_classes

OLD = ("0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1")
NEW = ("2.8.2", "3.9.2", "4.3.1")
CODECS = [
    pytest.param("gzip"),
    *(pytest.param(codec, marks=pytest.mark.full) for codec in ("none", "snappy", "lz4")),
]
COUNT = 20
CALL_TIMEOUT_S = 60

Run = Callable[..., list[str]]

# One worker runs them: each call is a JVM, and two at once are slower than one after the other.
pytestmark = pytest.mark.xdist_group("java-clients")


@pytest.fixture(scope="session")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    source = Path(__file__).parent / "java" / "Client.java"
    compile_classes([source], folder, ["kafka-clients-0.9.0.1"])
    return folder


@pytest.fixture
def client(broker: Broker, classes: Path) -> Run:
    def run(version: str, action: str, topic: str, number: int, **config: object) -> list[str]:
        class_path = f"{classes}:{jars.class_path(f'kafka-clients-{version}')}"
        pairs = [f"{name.replace('_', '.')}={value}" for name, value in config.items()]
        words = [action, broker.bootstrap, topic, str(number), *pairs]
        call = java.command(class_path, "Client", *words, heap="128M")
        call[1:1] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        done = subprocess.run(
            call, capture_output=True, text=True, timeout=CALL_TIMEOUT_S, check=False
        )
        assert done.returncode == 0, f"{version} {' '.join(words)}\n{done.stderr[-3000:]}"
        return done.stdout.splitlines()

    return run


def lines(count: int = COUNT) -> list[str]:
    return [f"{number} key-{number} value-{number}" for number in range(count)]


@pytest.mark.old_protocol
@pytest.mark.parametrize("version", OLD)
@pytest.mark.parametrize("codec", CODECS)
def test_old_client_writes_and_all_read(version: str, codec: str, client: Run, topic: str) -> None:
    client(version, "produce", topic, COUNT, compression_type=codec)
    assert client(version, "consume", topic, COUNT) == lines()
    assert client("3.9.2", "consume", topic, COUNT) == lines()


@pytest.mark.old_protocol
@pytest.mark.parametrize("version", OLD)
@pytest.mark.parametrize("codec", CODECS)
def test_old_client_reads_what_a_new_one_wrote(
    version: str, codec: str, client: Run, topic: str
) -> None:
    client("3.9.2", "produce", topic, COUNT, compression_type=codec)
    assert client(version, "consume", topic, COUNT) == lines()


@pytest.mark.old_protocol
@pytest.mark.parametrize("version", OLD)
def test_old_client_in_a_group(version: str, client: Run, topic: str, unique) -> None:
    client(version, "produce", topic, COUNT)
    group = unique("group")
    assert client(version, "consume", topic, COUNT, group_id=group) == lines()
    client(version, "produce", topic, COUNT)
    again = client(version, "consume", topic, COUNT, group_id=group)
    assert [line.split()[0] for line in again] == [str(each) for each in range(COUNT, 2 * COUNT)]


@pytest.mark.old_protocol
@pytest.mark.parametrize("version", OLD[1:])
def test_old_client_looks_up_times(version: str, client: Run, topic: str) -> None:
    before = int(time.time() * 1000) - 1
    client(version, "produce", topic, COUNT)
    later = int(time.time() * 1000) + 60_000
    assert client(version, "times", topic, before) == ["0"]
    assert client(version, "times", topic, later) == ["null"]


@pytest.mark.parametrize("version", NEW)
@pytest.mark.parametrize("codec", [*CODECS, pytest.param("zstd", marks=pytest.mark.full)])
def test_client_writes_and_reads(version: str, codec: str, client: Run, topic: str) -> None:
    offsets = client(version, "produce", topic, COUNT, compression_type=codec, acks="all")
    assert offsets == [str(number) for number in range(COUNT)]
    assert client(version, "consume", topic, COUNT) == lines()


@pytest.mark.parametrize("version", NEW)
def test_client_in_a_transaction_and_a_group(
    version: str, client: Run, topic: str, unique
) -> None:
    client(version, "produce", topic, COUNT, transactional_id=unique("transaction"))
    group = {"group_id": unique("group"), "isolation_level": "read_committed"}
    assert client(version, "consume", topic, COUNT, **group) == lines()


def test_client_of_the_new_group_protocol(client: Run, topic: str, unique) -> None:
    client("4.3.1", "produce", topic, COUNT)
    group = {"group_id": unique("group"), "group_protocol": "consumer"}
    assert client("4.3.1", "consume", topic, COUNT, **group) == lines()


@pytest.mark.parametrize("version", NEW)
def test_client_looks_up_times(version: str, client: Run, topic: str) -> None:
    before = int(time.time() * 1000) - 1
    client(version, "produce", topic, COUNT)
    assert client(version, "times", topic, before) == ["0"]
