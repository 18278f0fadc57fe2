"""`kafkalite topic copy`, `topic stat`, `consume -J` and `top` on both brokers, beside kcat."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from kafkalite.cli.main import main
from tests.compat import client_builds
from tests.compat.brokers import Broker
from tests.compat.conftest import MakeTopic
from tests.compat.test_kcat import CALL_TIMEOUT_S

Run = Callable[..., Result]
SHAPE = r"%p %o %T %k %s %h %K %S\n"


@pytest.fixture
def run(broker: Broker) -> Run:
    def run(*words: str, typed: bytes = b"") -> Result:
        return CliRunner().invoke(main, [*words, "-b", broker.bootstrap], input=typed)

    return run


def kcat(broker: Broker, *words: str) -> bytes:
    program, around = client_builds.kcat()
    call = [*program, "-q", "-b", broker.bootstrap, *words]
    return subprocess.run(
        call, capture_output=True, timeout=CALL_TIMEOUT_S, check=True, env={**os.environ, **around}
    ).stdout


def filled(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(50):
        producer.produce(
            topic, f"value {number} \u00fc", f"key {number}" if number % 3 else None, number % 2,
            timestamp=1_600_000_000_000 + number, headers=[("h", b"x")] if number % 5 == 0 else [],
        )  # fmt: skip
    assert producer.flush(30) == 0


def test_json_is_kcats(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    topic, again = make_topic(2), make_topic(2)
    filled(broker, topic)
    ours = [json.loads(line) for line in run("consume", "-J", topic).stdout_bytes.splitlines()]
    said = kcat(broker, "-C", "-t", topic, "-e", "-J")
    theirs = [json.loads(line) for line in said.splitlines()]
    for each in theirs:
        each.pop("broker", None)

    def place(each: dict[str, int]) -> tuple[int, int]:
        return each["partition"], each["offset"]

    assert sorted(ours, key=place) == sorted(theirs, key=place)
    result = run("produce", "-J", "--same-partitions", again, typed=said)
    assert result.exit_code == 0, result.output
    assert [
        sorted(run("topic", "read", "-f", SHAPE, each).stdout_bytes.splitlines())
        for each in (topic, again)
    ] == [sorted(kcat(broker, "-C", "-t", topic, "-e", "-f", SHAPE).splitlines())] * 2


def test_copies_and_sums(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    topic, copy = make_topic(2), make_topic(2)
    filled(broker, topic)
    result = run("topic", "copy", topic, copy, "--same-partitions", "--until", "20", "-z", "gzip")
    assert result.stdout == f"{copy}: 40 records are copied from {topic}\n", result.output
    shown = [
        sorted(kcat(broker, "-C", "-t", each, "-e", "-f", SHAPE).splitlines())
        for each in (topic, copy)
    ]
    assert shown[1] == [line for line in shown[0] if int(line.split()[1]) < 20]
    sums = json.loads(run("topic", "stat", copy, "-o", "json").stdout)
    assert [(each["records"], each["codecs"]) for each in sums] == [(20, ["gzip"])] * 2
    assert run("topic", "stat", topic, "--from", "@1600000000048", "-o", "json").stdout.count(
        '"records": 1'
    ) == 2


def test_a_look_at_everything(broker: Broker, run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    filled(broker, topic)
    result = run("top", "-n", "2", "--every", "0.2", "-o", "json")
    assert result.exit_code == 0, result.output
    last = json.loads(result.stdout.splitlines()[1])
    [found] = [each for each in last["topics"] if each["topic"] == topic]
    assert (found["records"], found["partitions"], found["not_in_sync"]) == (50, 2, 0)
    assert found["bytes"] > 0
