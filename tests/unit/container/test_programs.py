"""The small programs of the image: where ZooKeeper was, `cub`, and the health check."""

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from kafkalite.container import healthy, kafka_ready, zookeeper
from kafkalite.container.asking import NoAnswer, count_brokers
from kafkalite.testing.embedded import EmbeddedKafka


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        yield kafka


def port_of(broker: EmbeddedKafka) -> int:
    return broker.ports[0]


@contextmanager
def answering(*replies: bytes) -> Iterator[int]:
    """A port at which each that comes gets the next of these, and then the end."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for reply in replies:
                connection, _ = server.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(10)


# --- asking ---------------------------------------------------------------------------------------


def test_brokers_are_counted(broker: EmbeddedKafka) -> None:
    assert count_brokers("127.0.0.1", port_of(broker), 5) == 1
    with EmbeddedKafka(brokers=3) as three:
        assert count_brokers("127.0.0.1", three.ports[0], 5) == 3


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (b"", "closed before an answer"),
        (b"\0\0\0\x20short", "closed before an answer"),
        (b"HTTP/1.1 400 Bad Request\r\n", "no broker of Kafka's"),
    ],
)
def test_what_is_no_broker_is_told(reply: bytes, reason: str) -> None:
    with answering(reply) as port, pytest.raises(NoAnswer, match=reason):
        count_brokers("127.0.0.1", port, 5)


# --- the health check -----------------------------------------------------------------------------


def test_a_broker_that_serves_is_healthy(
    broker: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "port"
    assert healthy.main(str(file)) == 1
    assert "does not serve yet" in capsys.readouterr().out
    file.write_text(f"{port_of(broker)}\n")
    assert healthy.main(str(file)) == 0
    assert healthy.main(str(tmp_path / "none"), str(file)) == 0
    with socket.create_server(("127.0.0.1", 0)) as closed:
        file.write_text(f"{closed.getsockname()[1]}\n")
    assert healthy.main(str(file)) == 1
    assert "cannot be reached" in capsys.readouterr().out


def test_the_health_check_costs_little(broker: EmbeddedKafka, tmp_path: Path) -> None:
    """In processor time, which the work of others does not change: and nothing heavy is loaded."""
    file = tmp_path / "port"
    file.write_text(f"{port_of(broker)}\n")
    code = (
        "import sys; from kafkalite.container import healthy; assert not healthy.main(sys.argv[1]);"
        "import time; print(time.process_time(), 'click' in sys.modules, 'ssl' in sys.modules)"
    )
    call = [sys.executable, "-c", code, str(file)]
    said = [subprocess.run(call, capture_output=True, text=True, check=True) for _ in range(3)]
    assert all(each.stdout.endswith("False False\n") for each in said)
    assert min(float(each.stdout.split()[0]) for each in said) < 0.1


# --- cub ------------------------------------------------------------------------------------------


def test_it_waits_until_the_brokers_are_there(
    broker: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    there = f"PLAINTEXT://127.0.0.1:{port_of(broker)}"
    assert kafka_ready.main(["kafka-ready", "-b", there, "1", "5"]) == 0
    assert kafka_ready.main(["kafka-ready", "-b", f"127.0.0.1:1,{there}", "1", "5"]) == 0
    assert kafka_ready.main(["kafka-ready", "-b", there, "2", "0.1"]) == 1
    assert kafka_ready.main(["kafka-ready", "-b", "nowhere", "1", "0"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "not ready after 0.1 seconds: 1 of 2 brokers are there",
        "not ready after 0 seconds: nowhere names no HOST:PORT",
    ]


def test_what_else_it_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kafka_ready.main(["zk-ready", "zookeeper:2181", "40"]) == 0
    assert kafka_ready.main(["ensure", "PATH"]) == 0
    assert kafka_ready.main(["ensure", "NO_SUCH_VARIABLE"]) == 1
    assert kafka_ready.main(["path", str(tmp_path), "writable"]) == 0
    assert kafka_ready.main(["path", str(tmp_path / "gone"), "exists"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "NO_SUCH_VARIABLE is required",
        f"{tmp_path / 'gone'} is not exists",
    ]


# --- ZooKeeper's place ----------------------------------------------------------------------------


def test_the_port_of_zookeeper_answers(tmp_path: Path) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text("clientPort=0\nclientPortAddress=127.0.0.1\ndataDir=/nowhere\n")
    call = [sys.executable, "-m", "kafkalite.container.zookeeper", str(file)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition("/")[2])
            with socket.create_connection(
                ("127.0.0.1", port), 5
            ):  # who says nothing is no hindrance
                assert asked(port, b"ruok") == b"imok"
                assert [asked(port, b"ruok\n") for _ in range(20)] == [b"imok"] * 20  # as of nc
                assert asked(port, b"srvr") == b"Mode: standalone\n"
                assert asked(port, b"what") == b""
        finally:
            process.terminate()


def test_the_silent_are_no_hindrance_however_many_they_are(monkeypatch) -> None:
    monkeypatch.setattr(zookeeper, "MOST", 3)
    with socket.create_server(("127.0.0.1", 0)) as server, ExitStack() as silent:
        port = server.getsockname()[1]
        threading.Thread(target=zookeeper.serve, args=(server,), daemon=True).start()
        come = [
            silent.enter_context(socket.create_connection(("127.0.0.1", port), 5)) for _ in range(5)
        ]
        assert asked(port, b"ruok") == b"imok"
        assert [each.recv(1) for each in come[:2]] == [b"", b""]
        come[-1].sendall(b"ruok")
        assert come[-1].recv(4) == b"imok"


def asked(port: int, word: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 5) as connection:
        connection.sendall(word)
        return connection.recv(100)


def test_its_port_is_the_usual_one_unless_the_file_says() -> None:
    assert zookeeper.address("# nothing\n") == ("", 2181)
    assert zookeeper.address(" clientPort = 3000 \n") == ("", 3000)
