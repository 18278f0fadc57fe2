"""What exactly-once costs, both brokers in one run: throughput by kind of producer, and commits.

`python -m bench.transactions [--rounds N] [--seconds S]` starts kafkalite and Apache Kafka, takes
them in turns, and prints medians. Records of 1 KB go through librdkafka: plain, idempotent, and in
transactions that are committed every 100 ms and every 10 ms; all with acks=all. Then transactions
of one record, one after the other, by hand in the flow of KIP-890: commits a second.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
import uuid
from pathlib import Path

from confluent_kafka import Producer

from bench.raw_client import RawClient, make_topic
from kafkalite.protocol.errors import Error
from tests.compat import brokers
from tests.compat.brokers import APACHE_KAFKA, KAFKALITE, Broker
from tests.compat.transactional_peer import Peer

VALUE = bytes(number * 7 % 251 for number in range(1_000))
WAIT_S = 60
COMMIT_EVERY_S = {"transactional, 100 ms": 0.1, "transactional, 10 ms": 0.01}
PLAIN = "plain"
KINDS = (PLAIN, "idempotent", *COMMIT_EVERY_S)
COMMITS = "commits of one record"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    options = parser.parse_args()
    measured: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder:
        running = [brokers.start(kind, Path(folder) / kind) for kind in (KAFKALITE, APACHE_KAFKA)]
        try:
            for broker in running:  # a first round that nobody looks at warms both up
                _round(broker, options.seconds / 2, {})
            for _ in range(options.rounds):
                for broker in running:
                    _round(broker, options.seconds, measured)
        finally:
            for broker in running:
                broker.stop()
    _print(measured)


def _round(
    broker: Broker, seconds: float, measured: dict[tuple[str, str], list[float]]
) -> None:
    for kind in KINDS:
        rate, commits = _throughput(broker, kind, seconds)
        measured.setdefault((broker.kind, kind), []).append(rate)
        if commits:
            measured.setdefault((broker.kind, f"{kind}: commits"), []).append(commits)
    measured.setdefault((broker.kind, COMMITS), []).append(_commits(broker, seconds))


def _throughput(broker: Broker, kind: str, seconds: float) -> tuple[float, float]:
    """Records and commits a second, all of them acknowledged."""
    topic = _topic(broker)
    config: dict[str, object] = {
        "bootstrap.servers": broker.bootstrap,
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


def _commits(broker: Broker, seconds: float) -> float:
    """Transactions of one record a second; a new one waits for the end of the one before."""
    peer = Peer(broker, f"id-{uuid.uuid4().hex}")
    topic = _topic(broker)
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


def _topic(broker: Broker) -> str:
    client = RawClient(broker.host, broker.port)
    name = f"transactions-{uuid.uuid4().hex}"
    make_topic(client, name)
    client.close()
    return name


def _print(measured: dict[tuple[str, str], list[float]]) -> None:
    def median(kind: str, what: str) -> float:
        return statistics.median(measured[kind, what])

    print(f"{'per second, medians':<34}{KAFKALITE:>12}{'':>8}{APACHE_KAFKA:>20}")
    for what in dict.fromkeys(what for _, what in measured):
        cells = []
        for kind in (KAFKALITE, APACHE_KAFKA):
            value = median(kind, what)
            against = value / median(kind, PLAIN) - 1
            change = f"{against:+.0%}" if what in KINDS and what != PLAIN else ""
            cells.append((value, change))
        (ours, our_change), (theirs, their_change) = cells
        print(f"{what:<34}{ours:>12,.0f}{our_change:>8}{theirs:>20,.0f}{their_change:>8}")


if __name__ == "__main__":
    main()
