"""Members of a group, each a process of a stock client, a load beside them, and the judgement.

`Crowd` starts members, tells them what to do, kills and freezes them, and keeps every line they
say. `judge` reads the lines of all: nobody owned what another owned, every record came, in order
and once, but for what a member that was killed or cut off had not committed; commits never fell,
and none was taken from a member whose partition was another's by then.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO

import confluent_kafka

from kafkalite.jvm import jars, java
from tests.compat.brokers import Broker

ROOT = Path(__file__).parents[2]
PATIENCE_S = 45
LOAD_PER_S = 300
SESSION_MS, HEARTBEAT_MS = 3_000, 300
# Sessions short enough to wait for their end.
SETTINGS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": str(HEARTBEAT_MS),
}


@dataclass(slots=True, frozen=True)
class Kind:
    """A client as it takes part: which, by which protocol, with which assignor."""

    client: str
    protocol: str = "classic"
    assignor: str = "range"

    @property
    def is_incremental(self) -> bool:
        """A partition that stays is not taken away for a moment."""
        return self.protocol == "consumer" or self.assignor == "cooperative"

    def __str__(self) -> str:
        words = [self.client, self.protocol, self.assignor]
        return "-".join(word for word in words if word not in ("classic", "range"))


@dataclass(slots=True, frozen=True)
class Event:
    at: int
    member: str
    what: str
    words: tuple[str, ...]


@dataclass(slots=True)
class Member:
    """One process, and what it said so far."""

    name: str
    kind: Kind
    process: subprocess.Popen[str]
    complaints: IO[str]
    instance: str | None = None
    events: list[Event] = field(default_factory=list)
    owned: frozenset[str] = frozenset()
    last_record_at: int = 0
    reader: threading.Thread | None = None

    def listen(self, seen: set[tuple[str, ...]]) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            at, what, *words = line.split()
            if what == "record":
                seen.add(tuple(words))
                self.last_record_at = int(at)
            elif what == "assigned":
                self.owned = self.owned.union(words[1:])
            elif what in ("revoked", "lost"):
                self.owned = self.owned.difference(words)
            self.events.append(Event(int(at), self.name, what, tuple(words)))

    def said(self, *what: str, after: int = 0) -> list[Event]:
        return [each for each in list(self.events) if each.what in what and each.at > after]

    def heard_since(self, at: int) -> bool:
        return self.last_record_at > at

    def tell(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        """Waits for its end, and for the last of its lines."""
        self.process.wait(PATIENCE_S)
        assert self.reader is not None
        self.reader.join(PATIENCE_S)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def complained(self) -> str:
        self.complaints.seek(0)
        return self.complaints.read()[-2_000:]


class Load:
    """Records into every partition of a topic, round and round, until it is stopped; a context
    that stops it."""

    def __init__(self, broker: Broker, topic: str, partitions: int) -> None:
        self.acknowledged: dict[str, set[int]] = defaultdict(set)
        self._topic, self._partitions = topic, partitions
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker.bootstrap, "enable.idempotence": True,
                "linger.ms": 1, "log_level": 0,
            }
        )
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        number = 0
        while not self._is_over.wait(1 / LOAD_PER_S):
            index = number % self._partitions
            self._producer.produce(
                self._topic, b"%d" % number, partition=index, on_delivery=self._delivered
            )
            self._producer.poll(0)
            number += 1

    def _delivered(self, error: object, message: confluent_kafka.Message) -> None:
        assert error is None, error
        self.acknowledged[f"{message.topic()}:{message.partition()}"].add(message.offset())

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_S) == 0


class Crowd:
    """The members of one group; a context that leaves no process behind."""

    def __init__(
        self, broker: Broker, group: str, topics: Iterable[str], classes: Path | None = None
    ) -> None:
        self.broker, self.group, self.topics, self.classes = broker, group, list(topics), classes
        self.session_ms = SESSION_MS
        self.members: list[Member] = []
        self.seen: set[tuple[str, ...]] = set()  # places and offsets of all records that came

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            if member.process.poll() is None:
                member.process.kill()
            member.end()
            member.complaints.close()

    def join(
        self, name: str, kind: Kind, *, instance: str | None = None, reset: str = "earliest"
    ) -> Member:
        is_java = kind.client.startswith("java")
        call = self._java(kind, instance, reset) if is_java else self._python(kind, instance, reset)
        complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the crowd
        process = subprocess.Popen(
            call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints,
            text=True, cwd=ROOT,
        )
        member = Member(name, kind, process, complaints, instance)
        member.reader = threading.Thread(target=member.listen, args=(self.seen,))
        member.reader.start()
        self.members.append(member)
        return member

    def _python(self, kind: Kind, instance: str | None, reset: str) -> list[str]:
        options = {
            "bootstrap": self.broker.bootstrap, "group": self.group, "topics": self.topics,
            "is_regex": self.topics[0].startswith("^"), "protocol": kind.protocol,
            "assignor": kind.assignor, "instance": instance, "reset": reset,
            "session_ms": self.session_ms, "heartbeat_ms": HEARTBEAT_MS,
        }
        module = ["-m", "tests.compat.group_member", kind.client, json.dumps(options)]
        return [sys.executable, *module]

    def _java(self, kind: Kind, instance: str | None, reset: str) -> list[str]:
        version = kind.client.partition("-")[2]
        config = {
            "bootstrap.servers": self.broker.bootstrap, "group.id": self.group,
            "auto.offset.reset": reset,
        }
        if kind.protocol == "consumer":
            config["group.protocol"] = "consumer"
        else:
            assignor = {"cooperative": "CooperativeStickyAssignor"}.get(kind.assignor)
            name = f"org.apache.kafka.clients.consumer.{assignor or 'RangeAssignor'}"
            config["partition.assignment.strategy"] = name
            config["session.timeout.ms"] = str(self.session_ms)
            config["heartbeat.interval.ms"] = str(HEARTBEAT_MS)
        if instance:
            config["group.instance.id"] = instance
        class_path = f"{self.classes}:{jars.class_path(f'kafka-clients-{version}')}"
        pairs = [f"{key}={value}" for key, value in config.items()]
        call = java.command(
            class_path, "GroupMember", ",".join(self.topics), *pairs, heap="96M"
        )
        return [call[0], "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *call[1:]]

    def leave(self, member: Member) -> None:
        member.tell("leave")
        member.end()
        assert member.said("left"), self.story(member)

    def kill(self, member: Member) -> None:
        at = time.monotonic_ns()
        member.process.kill()
        member.end()
        member.events.append(Event(at, member.name, "killed", ()))

    def freeze(self, member: Member) -> None:
        member.process.send_signal(signal.SIGSTOP)

    def thaw(self, member: Member) -> None:
        member.process.send_signal(signal.SIGCONT)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            is_late = time.monotonic() > deadline
            fell = [one.name for one in self.members if one.process.poll() not in (None, 0, -9)]
            assert not is_late, f"{what}\n{self.story(*self.members)}"
            assert not fell, f"{what}: {fell} ended\n{self.story(*self.members)}"
            time.sleep(0.02)

    def settled(self, places: set[str], *members: Member) -> None:
        """Waits until these own all partitions, each has some, and each hears of new records."""
        def is_shared() -> bool:
            shares = [member.owned for member in members]
            return all(shares) and sum(map(len, shares)) == len(places)

        self.until(is_shared, f"{[one.name for one in members]} do not share all partitions")
        since = time.monotonic_ns()
        for member in members:
            self.until(partial(member.heard_since, since), f"{member.name} gets no records")

    def story(self, *members: Member) -> str:
        lines = []
        for member in members:
            lines.append(f"{member.name} ({member.kind}), ended {member.process.poll()}")
            told = [each for each in member.events if each.what not in ("record", "committed")]
            lines += [f"  {each.at / 1e9:.3f} {each.what} {' '.join(each.words)}" for each in told]
            lines.append(f"  {len(member.said('record'))} records\n{member.complained()}")
        return "\n".join(lines)


# --- the judgement --------------------------------------------------------------------------------


@dataclass(slots=True)
class Tenure:
    """The time in which one member owned one partition."""

    member: str
    start: int
    end: int = -1
    how: str = "open"
    offsets: list[int] = field(default_factory=list)
    commits: list[tuple[int, int]] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        """It was given back, with everything that was read committed."""
        return self.how == "revoked"


def judge(crowd: Crowd, acknowledged: dict[str, set[int]]) -> dict[str, int]:
    """Raises AssertionError on what must not be; returns how much there was to look at."""
    tenures: dict[str, list[Tenure]] = defaultdict(list)
    for member in crowd.members:
        for place, tenure in tenures_of(member):
            tenures[place].append(tenure)
    for place, held in tenures.items():
        held.sort(key=lambda tenure: tenure.start)
        judge_owners(place, held)
        judge_offsets(place, held)
        seen = {offset for tenure in held for offset in tenure.offsets}
        assert seen == acknowledged[place], (place, acknowledged[place] ^ seen)
    judge_generations(crowd.members)
    return {
        "tenures": sum(map(len, tenures.values())),
        "records": sum(map(len, acknowledged.values())),
        "again": sum(len(tenure.offsets) for held in tenures.values() for tenure in held)
        - sum(map(len, acknowledged.values())),
    }


def tenures_of(member: Member) -> list[tuple[str, Tenure]]:
    story = _Story(member)
    for event in member.events:
        story.turn(event)
    assert not story.current, f"{member.name} neither left nor was killed"
    return story.ended


@dataclass(slots=True)
class _Story:
    """One member's events, turned into tenures."""

    member: Member
    current: dict[str, Tenure] = field(default_factory=dict)
    ended: list[tuple[str, Tenure]] = field(default_factory=list)
    was_refused: bool = False

    def turn(self, event: Event) -> None:
        if event.what == "assigned":
            self._assigned(event)
        elif event.what == "record":
            self.current[event.words[0]].offsets.append(int(event.words[1]))
        elif event.what == "committed":
            for place, _, offset in (word.partition("=") for word in event.words):
                self.current[place].commits.append((event.at, int(offset)))
        elif event.what == "refused":
            self.was_refused = True
        elif event.what == "revoked":
            self._end(event.words, event.at, "refused" if self.was_refused else "revoked")
        elif event.what == "lost":
            self._end(event.words, event.at, "lost")
        else:
            self._end(list(self.current), event.at, {"left": "revoked"}.get(event.what, "killed"))

    def _assigned(self, event: Event) -> None:
        self.was_refused = False
        for place in event.words[1:]:
            assert place not in self.current, f"{self.member.name} was given {place} twice"
            self.current[place] = Tenure(self.member.name, event.at)

    def _end(self, places: Iterable[str], at: int, how: str) -> None:
        for place in places:
            tenure = self.current.pop(place)
            tenure.end, tenure.how = at, how
            self.ended.append((place, tenure))


def judge_owners(place: str, held: list[Tenure]) -> None:
    """One after the other; whoever was cut off may not know it, but can commit nothing more."""
    for before, after in pairwise(held):
        if before.how in ("revoked", "killed"):
            assert before.end <= after.start, f"{place}: {before} and {after}"
        late = [began for began, _ in before.commits if began > after.start]
        assert not late, f"{place}: {before.member} committed when {after.member} owned it"


def judge_offsets(place: str, held: list[Tenure]) -> None:
    committed, reached = 0, 0
    for before, tenure in zip([None, *held], held, strict=False):
        if tenure.offsets:
            first = tenure.offsets[0]
            if before is None or (before.is_sound and committed == reached):
                assert first == reached, f"{place}: {tenure.member} began at {first}, not {reached}"
            else:
                assert committed <= first <= reached, (place, committed, first, reached)
            expected = list(range(first, first + len(tenure.offsets)))
            assert tenure.offsets == expected, f"{place}: {tenure.member} jumped"
            reached = first + len(expected)
        for _, offset in tenure.commits:
            assert committed <= offset <= reached, f"{place}: a commit of {offset}, {committed}"
            committed = offset


def judge_generations(members: list[Member]) -> None:
    """Within a generation of the classic protocol each partition has one owner, which for a
    static member is its instance."""
    owners: dict[tuple[int, str], str] = {}
    for member in members:
        owned: set[str] = set()
        for event in member.events if member.kind.protocol == "classic" else ():
            if event.what in ("revoked", "lost"):
                owned.difference_update(event.words)
            elif event.what == "assigned":
                owned.update(event.words[1:])
                for place in owned:
                    who = member.instance or member.name
                    owner = owners.setdefault((int(event.words[0]), place), who)
                    assert owner == who, (event, owner)
