"""How long nobody acknowledges anything when a leader goes: killed, or stopped in good order.

Three brokers and their controller, each a process; a topic of one partition with three replicas, of
which two have to be in sync; a producer of confluent-kafka with acks=all and its own defaults, that
sends a record every few milliseconds. What is measured is from the signal to the acknowledgement of
the first record that was sent after it. Brokers talk to each other over a proxy (tests/cluster),
both kinds alike.
"""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient

from bench import pair
from bench.pair import OURS, THEIRS, Run
from bench.rows import Row
from tests.cluster.load import QUIET
from tests.cluster.nodes import ALL, Cluster, running, until
from tests.cluster.nodes import BROKERS as IDS
from tests.cluster.rounds import create
from tests.compat.brokers import APACHE_KAFKA, BROKERS

SUITE = "fail-over"
TOPIC = "fail-over"
EVERY_S = 0.005
PATIENCE_S = 90
USUAL = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}
SHORT = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "200"}
KILL_LIMIT_S, STOP_LIMIT_S = 2.0, 0.5


def measure(run: Run) -> Iterator[Row]:
    killed, stopped = _signalled(run, "a session of 1.5 s", SHORT)
    yield Row(SUITE, "a leader is killed, a session of 1.5 s", "s", killed[OURS], killed[THEIRS],
              limit=KILL_LIMIT_S, is_rate=False)  # fmt: skip
    yield Row(SUITE, "a leader is stopped", "s", stopped[OURS], stopped[THEIRS],
              limit=STOP_LIMIT_S, is_rate=False)  # fmt: skip
    killed, _ = _signalled(run, "the usual session", USUAL)
    yield Row(SUITE, "a leader is killed, the usual session of 9 s", "s", killed[OURS],
              killed[THEIRS], goal=1.0, is_rate=False)  # fmt: skip


Seconds = dict[str, list[float]]


def _signalled(run: Run, what: str, settings: dict[str, str]) -> tuple[Seconds, Seconds]:
    """After SIGKILL, and after SIGTERM."""
    killed: Seconds = {OURS: [], THEIRS: []}
    stopped: Seconds = {OURS: [], THEIRS: []}
    for kind in BROKERS:
        with (
            tempfile.TemporaryDirectory(prefix="kafkalite-bench-") as folder,
            running(
                Path(folder), kafka=ALL if kind == APACHE_KAFKA else (), settings=settings
            ) as cluster,
        ):
            create(cluster, {TOPIC: 1})
            with Sender(cluster.servers) as sender:
                for number in range(1 if run.is_quick else run.rounds):
                    run.tell(f"{kind}, {what}: fail-over {number + 1}")
                    for sent, found in ((signal.SIGKILL, killed), (signal.SIGTERM, stopped)):
                        found[pair.NAMES[kind]].append(_fail_over(cluster, sender, sent))
    return killed, stopped


def _fail_over(cluster: Cluster, sender: Sender, sent: signal.Signals) -> float:
    """All replicas are in sync before it, and none is at its end."""
    leader = cluster.brokers[_settled_leader(cluster)]
    sender.goes_on_for(1)
    began = time.perf_counter()
    if sent is signal.SIGKILL:
        leader.kill()
        took = sender.first_after(began) - began
    else:
        leader.ask_to_stop()
        took = sender.first_after(began) - began
        leader.stop()
    leader.start()
    return took


def _settled_leader(cluster: Cluster) -> int:
    admin, found = AdminClient({"bootstrap.servers": cluster.servers, **QUIET}), [-1]

    def is_settled() -> bool:
        state = admin.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions[0]
        found[0] = state.leader
        return state.leader in IDS and sorted(state.isrs) == list(IDS)

    until(is_settled, PATIENCE_S, lambda: "not all replicas get in sync")
    return found[0]


class Sender:
    """Sends, and knows when what was sent when was acknowledged."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "acks": "all", **QUIET})
        self._after = 0.0
        self._acknowledged: list[float] = []  # when, of what was sent after that

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.purge()
        self._producer.flush(1)

    def goes_on_for(self, seconds: float) -> None:
        """Everything that was sent is acknowledged then."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self._send()
        assert self._producer.flush(PATIENCE_S) == 0, "records are not acknowledged"

    def first_after(self, began: float) -> float:
        """When the first one was acknowledged that is sent now."""
        self._after = began
        self._acknowledged.clear()
        while not self._acknowledged:
            assert time.perf_counter() - began < PATIENCE_S, "nothing is acknowledged any more"
            self._send()
        return self._acknowledged[0]

    def _send(self) -> None:
        sent = time.perf_counter()

        def delivered(error: object, message: Message) -> None:
            if error is None and sent >= self._after:
                self._acknowledged.append(time.perf_counter())

        self._producer.produce(TOPIC, b"x", on_delivery=delivered)
        self._producer.poll(EVERY_S)
