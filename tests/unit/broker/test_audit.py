"""The audit log: each denial one line, whatever the disk does, and never more memory than that."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kafkalite.broker.audit import MOST_BYTES, SETTING, audit_of
from kafkalite.config import BrokerConfig, InvalidSetting
from kafkalite.env import Env, manual_env
from kafkalite.security.acl import READ, TOPIC, WRITE
from kafkalite.server.limits import LimitedLog
from kafkalite.testing.embedded import EmbeddedKafka

RULES = ["User:alice all topic *"]
USERS = {"alice": "a-secret", "bob": "b-secret"}


class Waiting:
    """A worker that does nothing until it is told to."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []

    def submit(self, job: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self.jobs.append((job, done))

    def work(self) -> None:
        job, done = self.jobs.pop(0)
        try:
            done(job())
        except OSError as error:
            done(error)


@pytest.fixture
def worker() -> Waiting:
    return Waiting()


@pytest.fixture
def env(worker: Waiting) -> Env:
    found = manual_env()
    found.background = worker
    return found


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def audit(env: Env, path: Path) -> Any:
    found = audit_of(env, BrokerConfig({SETTING: str(path), "node.id": "7"}), LimitedLog(env.clock))
    assert found is not None
    return found


def test_lines_wait_for_a_worker_and_go_together(
    env: Env, worker: Waiting, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    log = audit(env, path)
    for name in ("one", "two\n", "three"):
        log.denied("User:bob", "10.0.0.7", READ, TOPIC, name)
    assert path.read_bytes() == b""
    assert len(worker.jobs) == 1
    worker.work()
    worker.work()
    assert worker.jobs == []
    found = lines_of(path)
    assert [each["resource"] for each in found] == ["one", "two\n", "three"]
    moment = found[0].pop("time")
    assert moment.endswith("Z")
    assert found[0] == {
        "node": 7, "outcome": "denied", "principal": "User:bob", "host": "10.0.0.7",
        "operation": "READ", "resource_type": "TOPIC", "resource": "one",
    }  # fmt: skip


def test_what_memory_has_no_room_for_is_counted(
    env: Env, worker: Waiting, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    log = audit(env, path)
    name = "n" * 100_000
    for _ in range(5_000):
        log.denied("User:bob", "10.0.0.7", WRITE, TOPIC, name)
    assert log._waiting_bytes <= MOST_BYTES
    while worker.jobs:
        worker.work()
    found = lines_of(path)
    left_out = sum(each.get("left_out", 0) for each in found)
    denied = [each for each in found if "outcome" in each]
    assert left_out + len(denied) == 5_000
    assert left_out > 1_000
    assert len(denied[0]["resource"]) < 1_100


def test_a_disk_that_fails_is_told_and_tried_again(
    env: Env, worker: Waiting, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = audit(env, folder / "audit.log")
    (folder / "audit.log").unlink()
    folder.rmdir()
    log.denied("User:bob", "10.0.0.7", READ, TOPIC, "lost")
    worker.work()
    assert "1 lines are not in" in caplog.text
    folder.mkdir()
    log.denied("User:bob", "10.0.0.7", READ, TOPIC, "kept")
    worker.work()
    assert [each.get("resource", each.get("left_out")) for each in lines_of(folder / "audit.log")] \
        == ["kept", 1]


def test_how_many_were_left_out_is_not_forgotten_when_that_cannot_be_written(
    env: Env, worker: Waiting, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = audit(env, folder / "audit.log")
    (folder / "audit.log").unlink()
    folder.rmdir()
    for _ in range(5):
        log.denied("User:bob", "10.0.0.7", READ, TOPIC, "lost")
        worker.work()
    log.denied("User:bob", "10.0.0.7", READ, TOPIC, "lost")
    folder.mkdir()
    worker.work()
    log.denied("User:bob", "10.0.0.7", READ, TOPIC, "kept")
    while worker.jobs:
        worker.work()
    found = lines_of(folder / "audit.log")
    assert sum(each.get("left_out", 1) for each in found) == 7


def test_a_stop_writes_what_waits(
    env: Env, worker: Waiting, tmp_path: Path
) -> None:
    path = tmp_path / "audit.log"
    log = audit(env, path)
    for name in ("one", "two"):
        log.denied("User:bob", "10.0.0.7", READ, TOPIC, name)
    log.stop()
    worker.work()
    assert sorted(each["resource"] for each in lines_of(path)) == ["one", "two"]


def test_a_file_that_cannot_be_written_ends_the_start(env: Env, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=f"{SETTING}: .* cannot be written: Is a directory"):
        audit(env, tmp_path)
    assert audit_of(env, BrokerConfig({}), LimitedLog(env.clock)) is None


def test_each_denial_of_a_stock_client_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    with EmbeddedKafka(
        security="sasl_plaintext", mechanism="PLAIN", users=USERS, acls=RULES,
        topics=["orders"], settings={SETTING: path, "auto.create.topics.enable": False},
    ) as kafka:  # fmt: skip
        kafka.produce("orders", "one")
        for _ in range(3):
            producer = Producer(kafka.client_config("confluent", "bob"))
            producer.produce("orders", b"x")
            producer.flush(10)
        with pytest.raises(KafkaException):
            AdminClient(kafka.client_config("confluent", "bob")).delete_topics(["orders"])[
                "orders"
            ].result(10)
    found = {(each["principal"], each["operation"], each["resource"]) for each in lines_of(path)}
    assert ("User:bob", "DESCRIBE", "orders") in found
    assert {each[0] for each in found} == {"User:bob"}
    described = [each for each in lines_of(path) if each["operation"] == "DESCRIBE"]
    assert len(described) >= 3, "each denial, not the first alone"
