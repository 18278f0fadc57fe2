"""What exactly-once costs: throughput by kind of producer, and commits.

Records of 1 KB go through librdkafka: plain, idempotent, and in transactions that are committed
every 100 ms and every 10 ms; all with acks=all. Then transactions of one record, one after the
other, by hand in the flow of KIP-890: commits a second.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

from confluent_kafka import Producer

from bench.pair import OURS, THEIRS, Run, Target
from bench.raw_client import RawClient, make_topic
from bench.rows import Row
from kafkalite.protocol.errors import Error
from tests.compat.transactional_peer import Peer

SUITE = "transactions"
VALUE = bytes(number * 7 % 251 for number in range(1_000))
WAIT_S = 60
COMMIT_EVERY_S = {"transactional, 100 ms": 0.1, "transactional, 10 ms": 0.01}
PLAIN = "plain"
KINDS = (PLAIN, "idempotent", *COMMIT_EVERY_S)
COMMITS = "commits of one record"


def measure(run: Run, targets: list[Target]) -> Iterator[Row]:
    seconds = 2.0
    for kind in KINDS:
        if run.wants(kind):
            found = run.turns(targets, lambda target: _throughput(target, kind, seconds), kind)  # noqa: B023
            parts = ("", "records/s"), (": commits", "commits/s")
            for part, (name, unit) in enumerate(parts[: 2 if kind in COMMIT_EVERY_S else 1]):
                ours, theirs = ([each[part] for each in found[side]] for side in (OURS, THEIRS))
                yield Row(SUITE, f"{kind}{name}", unit, ours, theirs)
    if run.wants(COMMITS):
        rates = run.turns(targets, lambda target: _commits(target, seconds), COMMITS)
        yield Row(SUITE, COMMITS, "commits/s", rates[OURS], rates[THEIRS])


def _throughput(target: Target, kind: str, seconds: float) -> tuple[float, float]:
    """Records and commits a second, all of them acknowledged."""
    topic = _topic(target)
    config: dict[str, object] = {
        "bootstrap.servers": target.bootstrap,
        "enable.idempotence": kind != PLAIN,
        "acks": "all",
        "linger.ms": 5,
        "queue.buffering.max.messages": 20_000,
    }
    every_s = COMMIT_EVERY_S.get(kind)
    if every_s is None:
        return _load(Producer(config), topic, seconds), 0.0
    producer = Producer({**config, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    count = commits = 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        producer.begin_transaction()
        count += _fill(producer, topic, time.perf_counter() + every_s)
        producer.commit_transaction(WAIT_S)
        commits += 1
    lasted = time.perf_counter() - started
    return count / lasted, commits / lasted


def _load(producer: Producer, topic: str, seconds: float) -> float:
    started = time.perf_counter()
    count = _fill(producer, topic, started + seconds)
    assert producer.flush(WAIT_S) == 0
    return count / (time.perf_counter() - started)


def _fill(producer: Producer, topic: str, end: float) -> int:
    """Produces as fast as it is taken, until a moment; raises when a record is refused."""
    count = 0
    while time.perf_counter() < end:
        try:
            producer.produce(topic, VALUE, on_delivery=_delivered)
            count += 1
        except BufferError:
            producer.poll(0.005)
        if count % 100 == 0:
            producer.poll(0)
    return count


def _delivered(error: object, _: object) -> None:
    assert error is None, error


def _commits(target: Target, seconds: float) -> float:
    """Transactions of one record a second; a new one waits for the end of the one before."""
    peer = Peer(target.broker, f"id-{uuid.uuid4().hex}")
    topic = _topic(target)
    who = peer.init()
    commits = 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        error, _ = peer.produce(who, 0, topic, VALUE, v=12)
        assert error is Error.NONE, error
        error, who = peer.end(who, commit=True, v=5)
        assert error is Error.NONE, error
        commits += 1
    lasted = time.perf_counter() - started
    peer.close()
    return commits / lasted


def _topic(target: Target) -> str:
    client = RawClient(target.host, target.port)
    name = f"transactions-{uuid.uuid4().hex}"
    make_topic(client, name)
    client.close()
    return name
