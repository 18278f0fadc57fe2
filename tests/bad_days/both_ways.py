"""Two mirrors, one each way between kafkalite and Apache Kafka, both killed at random meanwhile.

    python -m tests.bad_days.both_ways --minutes 10 --seed 1

Each cluster has a topic that producers write to all the time, and a copy of the other's. Three
groups move to the other cluster on the way, and read on there. In the end both sides have the same
records, each once and in order, and no group has missed one or read one twice.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.bad_days.counting import WAIT_S, Record, committed, ended, out_of_order, records
from tests.compat import brokers
from tests.compat.spark_connector import SETTINGS

ROOT = Path(__file__).parents[2]
TOPIC, PARTITIONS, KEYS = "orders", 3, 50
RATE, TICKS = 100, 10  # records per second of each producer, and in how many pieces
GROUPS = ("first", "second", "third")
# Of what is there when a group moves, how much it has read.
READ_BEFORE = 0.7
# From one kill of a mirror to the next one of either.
KILL_EVERY_S = (10.0, 50.0)
PATIENCE_S = 600.0


@dataclass(slots=True)
class Side:
    """A cluster, and the producer that writes to it all the time."""

    name: str
    broker: brokers.Broker
    sent: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def servers(self) -> str:
        return self.broker.bootstrap

    def begin(self) -> None:
        new = NewTopic(TOPIC, PARTITIONS, 1, config={"retention.ms": "-1"})
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.create_topics([new])[TOPIC].result(WAIT_S)
        for group in GROUPS:
            self._commit_nothing(group)
        self._thread = threading.Thread(target=self._produce)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _commit_nothing(self, group: str) -> None:
        """A mirror refuses a group that nobody knows."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group})
        begin = [TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)]
        consumer.commit(offsets=begin, asynchronous=False)
        consumer.close()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True})
        while not self._ended.wait(1 / TICKS):
            for _ in range(RATE // TICKS):
                text, key = f"{self.name}-{self.sent}", f"k{self.sent % KEYS}"
                producer.produce(TOPIC, text, key, headers=[("h", text.encode())])
                self.sent += 1
            producer.poll(0)
        producer.flush(WAIT_S)


@dataclass(slots=True)
class MirrorProcess:
    """The command that copies from one side to the other, for as long as it is let."""

    source: Side
    target: Side
    folder: Path
    kills: int = 0
    faults: list[str] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = None
    _found: int = 0

    @property
    def copy(self) -> str:
        return f"{self.source.name}.{TOPIC}"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.copy}.log"

    def copied(self) -> int:
        return ended(self.target.servers, self.copy, PARTITIONS)

    def has_gone_on(self) -> bool:
        """Whether it has copied something since it was started."""
        return self.copied() > self._found

    def start(self) -> None:
        self._found = self.copied()
        call = [sys.executable, "-m", "kafkalite", "pipeline", "mirror", TOPIC]
        call += ["-b", self.source.servers, "--to-bootstrap-servers", self.target.servers]
        call += ["--rename", self.copy, "--checkpoint", str(self.folder / self.copy)]
        call += ["--trigger", "continuous", "--master", "local[1]"]
        call += ["--progress", "none", "--ledger", "json"]
        call += [word for name, value in SETTINGS.items() for word in ("--conf", f"{name}={value}")]
        call += [word for group in GROUPS for word in ("--group", group)]
        paths = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                call, env=paths, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """`kill -9` of the driver and its JVM, and another start."""
        self._look()
        self._end_all()
        self.kills += 1
        self.start()

    def stop(self) -> None:
        """Ends it in good order."""
        assert self._process is not None
        if self._look():
            self._process.send_signal(signal.SIGTERM)
            code = self._process.wait(PATIENCE_S)
            self.faults += [f"{self.copy}: exit code {code}"] if code else []

    def close(self) -> None:
        if self._process is not None:
            self._end_all()

    def _end_all(self) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(WAIT_S)

    def _look(self) -> bool:
        """Whether it runs still, as it should."""
        assert self._process is not None
        code = self._process.poll()
        if code is not None:
            said = self.log.read_text(errors="replace")[-500:]
            self.faults.append(f"{self.copy} ended by itself with {code}: {said}")
        return code is None


@dataclass(slots=True)
class Reader:
    """A group that reads a topic at home, and its copy after it has moved."""

    group: str
    mirror: MirrorProcess
    seen: Counter[bytes] = field(default_factory=Counter)

    def move(self) -> None:
        """Reads a part of what is there at home, and waits until its offsets have come over."""
        wanted = max(1, int(self.mirror.source.sent * READ_BEFORE))
        consumer = self._consumer(self.mirror.source, TOPIC)
        self._read(consumer, lambda: self.seen.total() >= wanted)
        consumer.commit(asynchronous=False)
        consumer.close()
        self._wait_for_the_offsets()

    def finish(self) -> None:
        """Reads on at the copy, when nobody writes any more; what comes twice may come last."""
        consumer = self._consumer(self.mirror.target, self.mirror.copy)
        self._read(consumer, lambda: self.seen.total() >= self.mirror.source.sent)
        while self._take(consumer):
            pass
        consumer.close()

    def faults(self) -> list[str]:
        twice = sum(count > 1 for count in self.seen.values())
        missing = self.mirror.source.sent - len(self.seen)
        return [f"{self.group}: {twice} twice, {missing} missing"] if twice or missing else []

    def _wait_for_the_offsets(self) -> None:
        """Without transactions and compaction a record and its copy have the same offset."""
        mirror, there = self.mirror, None
        here = committed(mirror.source.servers, self.group, TOPIC, PARTITIONS)
        deadline = time.monotonic() + PATIENCE_S
        while there != here:
            assert time.monotonic() < deadline, f"{self.group}: {here} here, {there} at the copy"
            time.sleep(1.0)
            there = committed(mirror.target.servers, self.group, mirror.copy, PARTITIONS)

    def _read(self, consumer: Consumer, is_done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_done():
            assert time.monotonic() < deadline, f"{self.group}: nothing after {self.seen.total()}"
            self._take(consumer)

    def _take(self, consumer: Consumer) -> int:
        messages = consumer.consume(500, 1.0)
        for message in messages:
            assert message.error() is None, message.error()
            self.seen[message.value()] += 1
        return len(messages)

    def _consumer(self, side: Side, topic: str) -> Consumer:
        settings = {"bootstrap.servers": side.servers, "group.id": self.group}
        begins = {"enable.auto.commit": False, "auto.offset.reset": "error"}
        consumer = Consumer({**settings, **begins})
        consumer.subscribe([topic])
        return consumer


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        faults = run(Path(folder), given.minutes * 60, random.Random(given.seed))
    for fault in faults:
        print(f"FAULT {fault}")
    return 1 if faults else 0


def run(folder: Path, seconds: float, chance: random.Random) -> list[str]:
    """What was wrong after so long."""
    with ExitStack() as opened:
        sides = []
        for name, kind in (("ours", brokers.KAFKALITE), ("theirs", brokers.APACHE_KAFKA)):
            sides.append(Side(name, brokers.start(kind, folder / name)))
            opened.callback(sides[-1].broker.stop)
            opened.callback(sides[-1].end)
        one, other = sides
        mirrors = [MirrorProcess(*pair, folder) for pair in ((one, other), (other, one))]
        for mirror in mirrors:
            opened.callback(mirror.close)
        readers = [Reader(name, mirrors[at % 2]) for at, name in enumerate(GROUPS)]
        meanwhile(sides, mirrors, readers, seconds, chance)
        return to_the_end(mirrors, readers)


def meanwhile(
    sides: Sequence[Side],
    mirrors: Sequence[MirrorProcess],
    readers: Sequence[Reader],
    seconds: float,
    chance: random.Random,
) -> None:
    """Producers write, groups move one after the other, and mirrors are killed."""
    for side in sides:
        side.begin()
    for mirror in mirrors:
        mirror.start()
    over = threading.Event()
    killing = threading.Thread(target=kill_at_random, args=(mirrors, over, chance))
    killing.start()
    began = time.monotonic()
    try:
        for number, reader in enumerate(readers, 1):
            sleep_until(began + seconds * number / (len(readers) + 1))
            reader.move()
            read = reader.seen.total()
            print(f"{reader.group} moves to {reader.mirror.copy} after {read:,}", flush=True)
        sleep_until(began + seconds)
    finally:
        over.set()
        killing.join()
        for side in sides:
            side.end()


def kill_at_random(
    mirrors: Sequence[MirrorProcess], over: threading.Event, chance: random.Random
) -> None:
    """Those that have come as far as copying: else on a slow machine they never would."""
    while not over.wait(chance.uniform(*KILL_EVERY_S)):
        at_work = [mirror for mirror in mirrors if mirror.has_gone_on()]
        if at_work:
            chance.choice(at_work).kill()


def sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def to_the_end(mirrors: Sequence[MirrorProcess], readers: Sequence[Reader]) -> list[str]:
    """Lets both mirrors and all groups come to the end, and counts."""
    faults = []
    for mirror in mirrors:
        source, target = mirror.source, mirror.target
        deadline = time.monotonic() + PATIENCE_S
        while mirror.copied() < source.sent:
            assert time.monotonic() < deadline, f"{mirror.copy} does not come to its end"
            time.sleep(2.0)
        mirror.stop()
        copy = records(target.servers, mirror.copy)
        found = unlike(records(source.servers, TOPIC), copy, source.sent)
        faults += mirror.faults + [f"{mirror.copy}: {each}" for each in found]
        said = f"{mirror.copy}: {len(copy):,} records, killed {mirror.kills} times"
        print(said, "" if found else "and as its source is", flush=True)
    for reader in readers:
        reader.finish()
        print(f"{reader.group}: {reader.seen.total():,} records read", flush=True)
        faults += reader.faults()
    return faults


def unlike(source: Sequence[Record], copy: Sequence[Record], sent: int) -> list[str]:
    """What is wrong with a copy, of whose source so many are known to have been sent."""
    faults = []
    values = {each.value for each in source}
    if len(values) != sent or len(source) != sent:
        faults.append(f"{len(source)} in the source, {len(values)} of them different, {sent} sent")
    counted = Counter(each.value for each in copy)
    twice = sum(count > 1 for count in counted.values())
    missing = len(values - counted.keys())
    if twice or missing or len(counted) != len(values):
        faults.append(f"{twice} twice, {missing} missing, {len(counted.keys() - values)} of nobody")
    said = {each.value: (each.key, each.headers) for each in source}
    changed = sum(said.get(each.value) != (each.key, each.headers) for each in copy)
    if out_of_order(copy, source) or changed:
        faults.append(f"not in the order of its source, or {changed} with another key or header")
    return faults


if __name__ == "__main__":
    sys.exit(main())
