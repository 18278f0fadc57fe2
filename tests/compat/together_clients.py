"""Consumers that are connected before they join: what polls each client, and what closes it.

Each is made in the thread that polls it. The first poll subscribes; `note` is told how many
partitions the consumer holds, each time that it is given some.
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from aiokafka import AIOKafkaConsumer
from aiokafka import ConsumerRebalanceListener as AIOListener
from confluent_kafka import Consumer
from kafka import ConsumerRebalanceListener, KafkaConsumer

from kafkalite.jvm import jars, java
from tests.compat.java_classes import compile_classes

TOPIC = "together"
PATIENCE_S = 15
POLL_MS = 50
# Outlasts a join, or its assignment would be lost (see polls.py), but not the half second after
# which kafka-python joins again: it then has newer metadata than when it subscribed.
KAFKA_PYTHON_POLL_MS = 400
SOURCE = Path(__file__).parent / "java" / "Together.java"

# What polls a consumer, and what closes it.
Client = tuple[Callable[[], None], Callable[[], None]]


def librdkafka(bootstrap: str, group: str, note: Callable[[int], None], protocol: str) -> Client:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol}
    )
    consumer.list_topics(TOPIC)  # connected, as an application is that has just started
    is_subscribed = False

    def poll() -> None:
        nonlocal is_subscribed
        if not is_subscribed:
            is_subscribed = True
            consumer.subscribe([TOPIC], on_assign=lambda _, places: note(len(places)))
        consumer.poll(POLL_MS / 1000)

    return poll, consumer.close


class _Listener(ConsumerRebalanceListener):
    def __init__(self, note: Callable[[int], None]) -> None:
        self.note = note

    def on_partitions_revoked(self, revoked: object) -> None:
        """Told again with the next assignment."""

    def on_partitions_assigned(self, assigned: list[object]) -> None:
        self.note(len(assigned))


def kafka_python(bootstrap: str, group: str, note: Callable[[int], None], _: str) -> Client:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
    consumer.partitions_for_topic(TOPIC)
    is_subscribed = False

    def poll() -> None:
        nonlocal is_subscribed
        if not is_subscribed:
            is_subscribed = True
            consumer.subscribe([TOPIC], listener=_Listener(note))
        consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS)

    return poll, consumer.close


class _AIOListener(AIOListener):
    def __init__(self, note: Callable[[int], None]) -> None:
        self.note = note

    async def on_partitions_revoked(self, revoked: object) -> None:
        """Told again with the next assignment."""

    async def on_partitions_assigned(self, assigned: Iterable[object]) -> None:
        self.note(len(list(assigned)))


def aiokafka(bootstrap: str, group: str, note: Callable[[int], None], _: str) -> Client:
    """On a loop of its own, which turns while it is polled."""
    loop = asyncio.new_event_loop()

    async def start() -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
        await consumer.start()
        return consumer

    consumer = loop.run_until_complete(start())
    is_subscribed = False

    async def turn() -> None:
        nonlocal is_subscribed
        if not is_subscribed:
            is_subscribed = True
            consumer.subscribe([TOPIC], listener=_AIOListener(note))
        await consumer.getmany(timeout_ms=POLL_MS)

    def close() -> None:
        loop.run_until_complete(consumer.stop())
        loop.close()

    return lambda: loop.run_until_complete(turn()), close


class JavaMembers:
    """One JVM with all Java consumers, and what each of them said last."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        compile_classes([SOURCE], Path(self._folder.name), ["reference"])
        path = f"{self._folder.name}:{jars.class_path('reference')}"
        self._jvm = subprocess.Popen(
            java.command(path, "Together"), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._numbers = itertools.count()
        self._heard: dict[str, tuple[threading.Event, Callable[[int], None]]] = {}
        threading.Thread(target=self._listen, daemon=True).start()
        atexit.register(self.end)

    def _listen(self) -> None:
        assert self._jvm.stdout is not None
        for line in self._jvm.stdout:
            what, *words = line.split()
            if what == "holds":
                self._heard[words[0]][1](int(words[1]))
            elif what in ("opened", "closed"):  # and not what a library tells its log
                self._heard[words[0]][0].set()

    def _say(self, *words: str) -> None:
        assert self._jvm.stdin is not None
        self._jvm.stdin.write(" ".join(words) + "\n")
        self._jvm.stdin.flush()

    def _ask(self, name: str, what: str, *words: str) -> None:
        heard, _ = self._heard[name]
        heard.clear()
        self._say(what, name, *words)
        assert heard.wait(PATIENCE_S), f"the Java consumer did not {what}"

    def member(
        self, bootstrap: str, group: str, note: Callable[[int], None], protocol: str
    ) -> Client:
        name = str(next(self._numbers))
        self._heard[name] = threading.Event(), note
        self._ask(name, "open", bootstrap, group, protocol, TOPIC)
        is_subscribed = False

        def poll() -> None:
            nonlocal is_subscribed
            if not is_subscribed:
                is_subscribed = True
                self._say("subscribe", name)
            time.sleep(POLL_MS / 1000)

        return poll, lambda: self._ask(name, "close")

    def end(self) -> None:
        self._jvm.kill()
        self._jvm.communicate()
        self._folder.cleanup()


_starting_java = threading.Lock()  # a crowd that begins would else start a JVM each


@lru_cache
def _the_java_members() -> JavaMembers:
    return JavaMembers()


def _java_members() -> JavaMembers:
    with _starting_java:
        return _the_java_members()


def java_client(bootstrap: str, group: str, note: Callable[[int], None], protocol: str) -> Client:
    return _java_members().member(bootstrap, group, note, protocol)


Make = Callable[[str, str, Callable[[int], None], str], Client]

CLIENTS: dict[str, tuple[Make, str]] = {
    "kafka-python": (kafka_python, "classic"),
    "aiokafka": (aiokafka, "classic"),
    "confluent-kafka, classic": (librdkafka, "classic"),
    "confluent-kafka, consumer": (librdkafka, "consumer"),
    "java, classic": (java_client, "classic"),
    "java, consumer": (java_client, "consumer"),
}
