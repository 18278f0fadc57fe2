"""`kafkalite replay`: agreement of brokers in this process on an application's trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition

from kafkalite.cli.main import main
from kafkalite.testing.comparison.replaying import Replay
from kafkalite.testing.comparison.side import Side
from kafkalite.testing.embedded import EmbeddedKafka
from kafkalite.testing.recording.recorder import Recorder
from kafkalite.testing.recording.trace import Said, to_json

COUNT = 3
POLL_S, POLLS = 0.5, 40
CLUSTERS = 8


def application(bootstrap_servers: str) -> None:
    """Writes, reads in a group, commits."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True})
    for number in range(COUNT):
        producer.produce("orders", f"order {number}")
        producer.flush(10)
    consumer = Consumer({
        "bootstrap.servers": bootstrap_servers, "group.id": "clerks",
        "auto.offset.reset": "earliest", "enable.auto.commit": False,
    })
    consumer.subscribe(["orders"])
    found = 0
    for _ in range(POLLS):
        found += consumer.poll(POLL_S) is not None
        if found == COUNT:
            break
    assert found == COUNT
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a broker where ids, offsets and generations are not those of a fresh one."""
    with EmbeddedKafka() as kafka:
        application(kafka.bootstrap_servers)
        with Recorder(kafka.bootstrap_servers) as recorder:
            application(recorder.bootstrap_servers)
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    path.write_text("".join(f"{to_json(each)}\n" for each in recorder.said), encoding="utf-8")
    return path


@pytest.fixture
def oracle() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        yield kafka


def replay(trace: Path, against: EmbeddedKafka, oracle: EmbeddedKafka) -> Result:
    addresses = ["--against", against.bootstrap_servers, "--oracle", oracle.bootstrap_servers]
    return CliRunner().invoke(main, ["replay", str(trace), *addresses])


def positions(kafka: EmbeddedKafka) -> tuple[int, int]:
    """The end of the topic, and what the group has committed."""
    where = TopicPartition("orders", 0)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "clerks"})
    _, end = consumer.get_watermark_offsets(where, timeout=10)
    [committed] = consumer.committed([where], timeout=10)
    consumer.close()
    return end, committed.offset


def test_brokers_that_agree(trace: Path, oracle: EmbeddedKafka) -> None:
    with EmbeddedKafka() as against:
        done = replay(trace, against, oracle)
        end, committed = positions(against)
    assert done.exit_code == 0, done.output
    assert " 0 answered differently" in done.output
    assert (end, committed) == (COUNT, COUNT), "what was recorded further on happens at the start"


def test_broker_that_differs(trace: Path, oracle: EmbeddedKafka) -> None:
    with EmbeddedKafka(settings={"log.message.timestamp.type": "LogAppendTime"}) as against:
        done = replay(trace, against, oracle)
    assert done.exit_code == 1
    assert "log_append_time_ms" in done.output


def recorded_of_a_cluster() -> list[Said]:
    """Of three brokers, until chance has the client ask more than one of them."""
    for _ in range(CLUSTERS):
        with EmbeddedKafka(brokers=3) as kafka, Recorder(f"127.0.0.1:{kafka.port}") as recorder:
            application(recorder.bootstrap_servers)
        if len({each.broker for each in recorder.said}) > 1:
            break
    return list(recorder.said)


def test_trace_of_a_cluster(oracle: EmbeddedKafka) -> None:
    said = recorded_of_a_cluster()
    with EmbeddedKafka() as against:
        ours, theirs = (Side("127.0.0.1", each.port) for each in (against, oracle))
        with closing(ours), closing(theirs):
            exchanges = list(Replay(ours, theirs, said).run())
    assert [str(one) for each in exchanges for one in each.differences] == []
    assert len({each.asked.broker for each in exchanges}) > 1


def test_file_that_is_no_trace(tmp_path: Path, oracle: EmbeddedKafka) -> None:
    path = tmp_path / "no-trace.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    done = replay(path, oracle, oracle)
    assert done.exit_code == 1
    assert "line 1" in done.output
