"""Real clients through the proxy: a broker that is killed and comes back, and TLS to what it is."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import kafka
import pytest
from kafka.errors import KafkaError

from kafkalite.testing.recording.recorder import Recorder
from tests.compat.brokers import free_ports, start

RECORDS, KILLS = 400, 2
DEADLINE_S = 60


def sent(bootstrap: str, topic: str, count: Callable[[int], None]) -> list[int]:
    """The numbers of the records that were acknowledged."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, acks="all", request_timeout_ms=5_000,
        delivery_timeout_ms=40_000, linger_ms=0, reconnect_backoff_max_ms=200,
    )  # fmt: skip
    acknowledged = []
    for number in range(RECORDS):
        try:
            producer.send(topic, str(number).encode()).get(DEADLINE_S)
        except KafkaError:
            continue
        acknowledged.append(number)
        count(len(acknowledged))
    producer.close()
    return acknowledged


def read(bootstrap: str, topic: str) -> set[int]:
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest",
        consumer_timeout_ms=3_000, group_id=f"of-{topic}",
    )  # fmt: skip
    found = {int(record.value) for record in consumer}
    consumer.close()
    return found


@pytest.mark.theirs_in_full
def test_a_client_gets_over_kills_of_the_broker_behind_the_proxy(
    broker_kind: str, tmp_path: Path
) -> None:
    """It loses nothing that was acknowledged, and no connection stays that leads nowhere."""
    broker = start(broker_kind, tmp_path / "broker")
    reached = threading.Semaphore(0)

    def kill() -> None:
        nonlocal broker
        for _ in range(KILLS):
            assert reached.acquire(timeout=DEADLINE_S)
            broker.kill()
            time.sleep(0.5)
            broker = start(broker_kind, tmp_path / "broker", port=broker.port)

    def count(acknowledged: int) -> None:
        if acknowledged % (RECORDS // (KILLS + 1)) == 0:
            reached.release()

    try:
        with Recorder(broker.bootstrap) as recorder:
            killer = threading.Thread(target=kill)
            killer.start()
            acknowledged = sent(recorder.bootstrap_servers, "orders", count)
            killer.join()
            assert len(acknowledged) > RECORDS // 2
            assert set(acknowledged) <= read(recorder.bootstrap_servers, "orders")
            assert {each.broker for each in recorder.said} == {broker.bootstrap}
        assert {each.api for each in recorder.said if each.message} >= {"Produce", "Fetch"}
    finally:
        broker.stop()


@contextmanager
def tls_server(folder: Path) -> Iterator[int]:
    """The port of `openssl s_server`, which turns round each line that it is sent."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
         "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    [port] = free_ports(1)
    server = subprocess.Popen(
        ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-rev", "-quiet",
         "-key", key, "-cert", certificate],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield port
    finally:
        server.kill()
        server.communicate()


def test_openssl_speaks_through_the_proxy(tmp_path: Path, broker_kind: str) -> None:
    if broker_kind != "kafkalite":
        pytest.skip("no broker takes part in it")
    with tls_server(tmp_path) as port, Recorder(f"127.0.0.1:{port}") as recorder:
        deadline = time.monotonic() + DEADLINE_S
        answer = ""
        while "terces" not in answer and time.monotonic() < deadline:
            client = subprocess.Popen(
                ["openssl", "s_client", "-connect", recorder.bootstrap_servers, "-quiet"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdin.write("secret\n")
            client.stdin.flush()
            answer = client.stdout.readline()
            client.kill()
            client.communicate()
    assert answer == "terces\n"
    unread = [each.reason for each in recorder.said]
    assert any("TLS" in each for each in unread)
