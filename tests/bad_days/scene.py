"""A broker, drivers and a filled topic: what a bad day happens to.

Owns the processes. Drivers are started ahead, because a JVM takes long to begin.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.bad_days.counting import WAIT_S, Record, records
from tests.compat import brokers

ROOT = Path(__file__).parents[2]
PARTITIONS, EACH = 4, 200
PER_BATCH = PARTITIONS * EACH // 2
KEYS = 7
# Small fetches, so that tasks take long enough to be caught in the middle.
SLOWLY = ("kafka.max.partition.fetch.bytes=4000", "kafka.fetch.max.bytes=4000")
RUN_S, START_S = 240.0, 120.0
AWAY_S = 2.0
# A point that a driver tells when it is there, if it is.
MIDDLE = "in the middle of a batch"


@dataclass(frozen=True, slots=True)
class Done:
    """How a call ended; without an exit code it was killed."""

    exit_code: int | None
    out: str = ""
    err: str = ""

    @property
    def last_word(self) -> str:
        lines = [line for line in self.err.splitlines() if line.strip()]
        return lines[-1] if lines else ""


class Driver:
    """One driver and its JVM, in a process group of their own."""

    def __init__(self, log: Path) -> None:
        paths = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bad_days.driver"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self._is_ready = False

    def run(
        self, words: list[str], at: Callable[[str], bool] | None = None, timeout_s: float = RUN_S
    ) -> Done:
        """Runs a command. `at` hears of each point, and gives False when the driver is dead."""
        self.ready()
        self._say({"words": words, "watch": at is not None})
        watchdog = threading.Timer(timeout_s, self.kill)
        watchdog.start()
        try:
            while (said := self._line()) is not None and "point" in said:
                assert at is not None, "points of a call that is not watched"
                if not at(said["point"]):
                    return Done(None)
                self._say({})
        finally:
            watchdog.cancel()
        assert said is not None, "the driver is gone, or took too long"
        return Done(said["exit_code"], said["out"], said["err"])

    def kill(self) -> None:
        """`kill -9` of the driver and its JVM."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(WAIT_S)
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def ready(self) -> None:
        """Waits for its session."""
        if not self._is_ready:
            watchdog = threading.Timer(START_S, self.kill)
            watchdog.start()
            said = self._line()
            watchdog.cancel()
            assert said is not None, "the driver did not start"
            self._is_ready = True

    def _line(self) -> dict[str, Any] | None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None

    def _say(self, said: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(said) + "\n")
        self._process.stdin.flush()


@dataclass(slots=True)
class Scene:
    """One kind of broker and the drivers before it, for any number of bad days."""

    kind: str
    folder: Path
    broker: brokers.Broker = field(init=False)
    _driver: Driver | None = None
    _next: Driver | None = None
    _admin: AdminClient | None = None
    _coming_back: threading.Thread | None = None

    def __post_init__(self) -> None:
        self.broker = brokers.start(self.kind, self.folder / "broker")

    def close(self) -> None:
        for each in (self._driver, self._next):
            if each is not None:
                each.kill()
        self.settle()
        self.broker.stop()

    @property
    def driver(self) -> Driver:
        """The one that lives."""
        if self._driver is None:
            self._driver = self._next or self.start_driver()
            self._next = None
        return self._driver

    def start_driver(self) -> Driver:
        return Driver(self.folder / "drivers.log")

    def kill_driver(self) -> None:
        assert self._driver is not None
        self._driver.kill()
        self._driver = None

    def start_ahead(self) -> None:
        """A driver for when this one is dead."""
        self._next = self._next or self.start_driver()

    def begin_anew(self) -> None:
        """After a failure: no driver, and a broker that answers."""
        if self._driver is not None:
            self.kill_driver()
        self.settle()
        if not (self.broker.folder / "pid").exists():
            self.start_broker()

    def kill_broker(self) -> None:
        self.broker.kill()

    def start_broker(self) -> None:
        """Again, on its data and under its address."""
        old = self.broker
        self.broker = brokers.start(old.kind, old.folder, port=old.port)

    def restart_broker(self) -> None:
        """Kills it; it comes back in a while, for which nobody waits."""
        self.kill_broker()

        def come_back() -> None:
            time.sleep(AWAY_S)
            self.start_broker()

        self._coming_back = threading.Thread(target=come_back)
        self._coming_back.start()

    def settle(self) -> None:
        """Waits for a broker that is on its way."""
        if self._coming_back is not None:
            self._coming_back.join()
            self._coming_back = None

    def admin(self) -> AdminClient:
        """Kept, because dropping a client cancels what it was asked."""
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.broker.bootstrap, "log_level": 0})
        return self._admin

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        new = NewTopic(topic, partitions, 1, config={"retention.ms": "-1", **settings})
        self.admin().create_topics([new])[topic].result(WAIT_S)

    def delete(self, topic: str) -> None:
        self.admin().delete_topics([topic])[topic].result(WAIT_S)

    def grow(self, topic: str, partitions: int) -> None:
        asked = [NewPartitions(topic, partitions)]
        self.admin().create_partitions(asked)[topic].result(WAIT_S)

    def change(self, topic: str, settings: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in settings.items()
        ]
        asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self.admin().incremental_alter_configs([asked])[asked].result(WAIT_S)

    def delete_before(self, topic: str, offset: int) -> None:
        asked = [TopicPartition(topic, number, offset) for number in range(PARTITIONS)]
        for each in self.admin().delete_records(asked).values():
            each.result(WAIT_S)

    def produce(self, topic: str, values: list[bytes], partition: int) -> None:
        """In small batches: a reader is given whole ones, however little it asks for."""
        settings = {"batch.num.messages": 10, "log_level": 0}
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, **settings})
        for number, value in enumerate(values):
            headers = [("h", str(number).encode())]
            key = f"k{number % KEYS}"
            producer.produce(topic, value, key, partition=partition, headers=headers)
        assert producer.flush(WAIT_S) == 0

    def records(self, topic: str) -> list[Record]:
        return records(self.broker.bootstrap, topic)
