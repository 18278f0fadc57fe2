"""One round: clients work, things go wrong, all is put right, and what is there is held against
what the clients were told.

Each round has topics of its own on a cluster that has been through the rounds before.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random

from confluent_kafka.admin import NewTopic
from kafka import TopicPartition

from tests.cluster.copier import COPIES, GROUP, LIBRARIES
from tests.cluster.faults import Scene, admin_of, assign, chosen
from tests.cluster.history import (
    History,
    Log,
    out_of_order,
    unkept_commits,
    wrong_in,
    wrong_in_copies,
)
from tests.cluster.load import PARTITIONS, clients, committed_offsets, working
from tests.cluster.nodes import BROKERS, Cluster, until
from tests.cluster.replicas import differing
from tests.compat.replicas import read_messages

SETTLE_S = 90
SOME = 100  # acknowledged, before anything goes wrong
STUCK_S = 25  # without a commit, while nothing is wrong
AWAY = ", reassigned"
INTERNAL = {"__consumer_offsets": 4, "__transaction_state": 4}
COPIER = [sys.executable, "-m", "tests.cluster.copier"]
Fault = Callable[[Scene], str]


@dataclass(slots=True)
class Round:
    """What was done, how much was written, and what is wrong."""

    seed: int
    faults: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    acknowledged: int = 0
    copied: int = 0
    transactions: int = 0
    copier: str = ""
    copiers: int = 0
    settled_s: float = 0.0
    seconds: float = 0.0


def run(
    cluster: Cluster, seed: int, faults: list[Fault] | None = None, only: str = ""
) -> Round:
    """With these faults, or with some that the seed chooses."""
    began, chance = time.monotonic(), Random(seed)
    faults = chosen(chance, only) if faults is None else faults
    told = Round(seed)
    history, source, target = History(), f"round-{seed}", f"copies-{seed}"
    try:
        create(cluster, {source: PARTITIONS, target: COPIES})
        _work(cluster, chance, faults, told, history, (source, target))
        _check(cluster, told, history, source, target)
        _delete(cluster, [source, target])
    except Exception as error:  # noqa: BLE001 - what is seen is told with the seed
        told.wrong.append(f"{type(error).__name__}: {error}")
    told.seconds = time.monotonic() - began
    return told


def create(cluster: Cluster, topics: dict[str, int]) -> None:
    admin = admin_of(cluster.servers)

    def are_there() -> bool:
        known = admin.list_topics(timeout=5).topics
        wanted = [NewTopic(name, count, 3) for name, count in topics.items() if name not in known]
        for each in admin.create_topics(wanted).values() if wanted else ():
            with suppress(Exception):
                each.result(10)
        return not wanted

    until(are_there, SETTLE_S, lambda: f"{', '.join(topics)} cannot be created")


def _delete(cluster: Cluster, topics: list[str]) -> None:
    admin = admin_of(cluster.servers)
    for each in admin.delete_topics(topics).values():
        each.result(SETTLE_S)


def _work(
    cluster: Cluster, chance: Random, faults: list[Fault], told: Round, history: History,
    topics: tuple[str, str],
) -> None:  # fmt: skip
    source, target = topics

    def settle() -> str:
        told.settled_s = settled(cluster, {source: PARTITIONS, target: COPIES})
        return f"{told.settled_s:.1f}"

    scene = Scene(cluster, chance, source, settle)
    told.copier = chance.choice(sorted(LIBRARIES))
    with _topics_come_and_go(cluster.servers), \
            _copying(cluster.servers, topics, told, history), \
            working(clients(history, cluster.servers, source), told.wrong):  # fmt: skip
        until(lambda: _are_at_work(history, told), SETTLE_S, lambda: "not all clients get to work")
        for fault in faults:
            told.faults.append(fault(scene))
            scene.wait(0, 2)
        cluster.start()
        settle()
        _see_all(history, cluster, source)


def _are_at_work(history: History, told: Round) -> bool:
    """Faults strike those who are at it, however slow the machine is."""
    written = history.acknowledged
    seen = min(len(history.reader(name).values) for name in ("group", "reader"))
    return written >= SOME and seen > 0 and told.transactions > 0


def settled(cluster: Cluster, topics: dict[str, int]) -> float:
    """How long it took until all replicas of these are in sync at all brokers."""
    admin = admin_of(cluster.servers)

    def missing() -> dict[TopicPartition, str]:
        known = admin.list_topics(timeout=5).topics
        found = {}
        for name, count in (topics | INTERNAL).items():
            if name in INTERNAL and name not in known:
                continue
            for index in range(count):
                state = known[name].partitions[index]
                if state.leader < 0 or sorted(state.isrs) != list(BROKERS):
                    is_away = sorted(state.replicas) != list(BROKERS)
                    found[TopicPartition(name, index)] = (
                        f"{name}-{index}: leader {state.leader}, in sync {state.isrs} of "
                        f"{state.replicas}{AWAY if is_away else ''}"
                    )
        return found

    def is_settled() -> bool:
        left = missing()
        moved = [each for each, what in left.items() if what.endswith(AWAY)]
        if moved:
            assign(cluster.servers, {each: list(BROKERS) for each in moved})
        return not left

    def what() -> str:
        with suppress(Exception):
            return f"not settled in {SETTLE_S} s: {'; '.join(missing().values())}"
        return f"not settled in {SETTLE_S} s, and nobody tells why"

    return until(is_settled, SETTLE_S, what)


def _see_all(history: History, cluster: Cluster, source: str) -> None:
    """Readers go on for a moment: what is written last is seen, too."""
    before = sum(len(each) for each in history.reader("reader").values.values())

    def goes_on() -> bool:
        return sum(len(each) for each in history.reader("reader").values.values()) > before

    until(goes_on, SETTLE_S, lambda: "a reader gets nothing more, and all is in sync")


# --- what goes on beside --------------------------------------------------------------------------


@contextmanager
def _topics_come_and_go(servers: str) -> Iterator[None]:
    is_over = threading.Event()

    def work() -> None:
        number, admin = 0, admin_of(servers)
        while not is_over.wait(0.5):
            number += 1
            with suppress(Exception):
                name = f"beside-{number}"
                admin.create_topics([NewTopic(name, 3, 3)])[name].result(5)
            with suppress(Exception):
                name = f"beside-{number - 2}"  # the first two never were
                admin.delete_topics([name])[name].result(5)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(30)


@contextmanager
def _copying(
    servers: str, topics: tuple[str, str], told: Round, history: History
) -> Iterator[None]:
    """A copier, and a new one whenever it has died or done nothing for long."""
    is_over, seen = threading.Event(), history.reader("copier")
    source, target = topics

    def keep() -> None:
        while not is_over.is_set():
            told.copiers += 1
            process = subprocess.Popen(
                [*COPIER, told.copier, servers, source, target], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
            heard = [time.monotonic()]
            reading = threading.Thread(target=listen, args=(process, heard), daemon=True)
            reading.start()
            while process.poll() is None and not is_over.wait(0.2):
                if time.monotonic() - heard[0] > STUCK_S:
                    process.kill()
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(STUCK_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            reading.join()

    def listen(process: subprocess.Popen[str], heard: list[float]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                heard[0] = time.monotonic()
                told.transactions += 1
                for word in line.split():
                    index, _, offset = word.partition(":")
                    seen.commits((source, int(index)), int(offset))

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(3 * STUCK_S)


# --- what is there --------------------------------------------------------------------------------


def _check(cluster: Cluster, told: Round, history: History, source: str, target: str) -> None:
    told.acknowledged = history.acknowledged
    told.wrong += [f"{name} has ended by itself" for name in cluster.ended()]
    written, copies = read(cluster, source, PARTITIONS), read(cluster, target, COPIES)
    told.copied = sum(map(len, copies.values()))
    told.wrong += wrong_in(history, written)
    copied = committed_offsets(cluster.servers, GROUP, source)
    told.wrong += wrong_in_copies(written, copies, copied)
    told.wrong += out_of_order(copies)
    told.wrong += unkept_commits(history.reader("copier").committed, copied)
    of_group = committed_offsets(cluster.servers, "group", source)
    told.wrong += unkept_commits(history.reader("group").committed, of_group)
    topics = {source: PARTITIONS, target: COPIES, **INTERNAL}
    found: list[str] = []

    def are_same() -> bool:
        found[:] = differing(cluster, topics)
        return not found

    until(are_same, SETTLE_S, lambda: "replicas differ: " + "; ".join(found))


def read(cluster: Cluster, topic: str, partitions: int) -> Log:
    found: Log = {(topic, index): [] for index in range(partitions)}
    for message in read_messages(cluster.servers, topic, partitions):
        found[topic, message.partition()].append((message.offset(), message.value()))
    return found
