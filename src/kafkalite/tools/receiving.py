"""How `kafka-console-consumer` receives: partitions of its own choice, or those that its group has
for it; ends when it has enough, or when nothing came for so long.

Owns the positions of a group's member, which it commits now and then and at the end.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from kafkalite.client.cluster import (
    PAUSE_S,
    ClientFailed,
    Cluster,
    NotLetIn,
    TryAgain,
    Unreachable,
)
from kafkalite.client.consuming import (
    EARLIEST,
    LATEST,
    MAX_WAIT_MS,
    Found,
    Reader,
    Start,
)
from kafkalite.client.membership import Assignment, GroupMember, JoinAgain, Place
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import MetadataRequest
from kafkalite.records.batch import BatchHeader
from kafkalite.records.record import Record
from kafkalite.tools.asking import known_addresses, not_let_in, warn_of_nobody
from kafkalite.tools.client_settings import security_in
from kafkalite.tools.failures import Failure, illegal_argument, kafka, refused, timeout
from kafkalite.tools.message_formatter import Printer
from kafkalite.tools.running import log, tell
from kafkalite.tools.streams import is_output_lost

_NO_CONSUMER = "Failed to construct kafka consumer"
_CLASS = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_ANNOUNCED = (
    "The consumer rebalance protocol (KIP-848) is production-ready! Set group.protocol=consumer to "
    "try it out. See https://kafka.apache.org/documentation/#consumer_rebalance_protocol"
)
_GROUP_PATIENCE_S = 60.0
_ALL = -1  # as many records as there will be
_LOOK_EVERY_S = 5.0
_COMMIT_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class ReceivingSettings:
    """offset: where a partition that is named is begun; reset: where one is of whose position
    nothing is known, None for nowhere."""

    bootstrap: str
    topic: str | None
    include: str | None
    partition: int | None
    offset: int
    reset: int | None
    timeout_ms: int
    skips_errors: bool
    tells_events: bool
    properties: dict[str, str] = field(repr=False)


class Receiving:
    def __init__(self, settings: ReceivingSettings, prints: Printer) -> None:
        self._settings, self._prints = settings, prints
        properties = settings.properties
        self._client = properties.get("client.id", "console-consumer")
        self._addresses = known_addresses(settings.bootstrap, _NO_CONSUMER)
        security = security_in(properties, _NO_CONSUMER)
        self._pattern = _pattern(settings.include)
        self._cluster = Cluster(self._addresses, client_id=self._client, security=security)
        group = properties.get("group.id")
        self._member = GroupMember(self._cluster, group, _GROUP_PATIENCE_S) if group else None
        self._commits = properties.get("enable.auto.commit", "true").lower() == "true"
        self._readers: dict[str, Reader] = {}
        self._positions: dict[Place, int] = {}
        self._topics: list[str] = []
        self._next_look = self._next_commit = 0.0
        self._count = 0

    def run(self, most: int | None) -> None:
        """Prints so many records, or all there will ever be."""
        is_classic = self._settings.properties.get("group.protocol", "classic") == "classic"
        if self._settings.partition is None and is_classic:
            tell(_ANNOUNCED)
        self._check_topics()
        try:
            self._process(_ALL if most is None else most)
        finally:
            self._close()
            tell(f"Processed a total of {self._count} messages")
            if self._settings.tells_events:
                print("shutdown_complete")

    def _check_topics(self) -> None:
        if self._settings.include == "":
            raise illegal_argument("Topic pattern to subscribe to cannot be empty")
        if self._settings.include is None and not (self._settings.topic or "").strip():
            raise illegal_argument(
                "Topic collection to subscribe to cannot contain null or empty topic"
            )

    def _process(self, most: int) -> None:
        try:
            found = self._found()
            while self._count < most or most == _ALL:
                topic, index, record, header = next(found)
                self._count += 1
                self._positions[topic, index] = record.offset + 1
                self._print(index, record, header)
            sys.stdout.flush()
        except _NobodyReads:
            tell("Unable to write to standard out, closing consumer.")
        except NotLetIn as failure:
            self._end(not_let_in(failure, self._addresses, self._shown))
        except ClientFailed as failure:
            self._end(kafka(str(failure)))
        except _Ended as ended:
            self._end(ended.failure)

    def _end(self, failure: Failure) -> None:
        log("ERROR", "Error processing message, terminating consumer process: ", _CLASS)
        tell(failure.stack().removesuffix("\n"))

    def _print(self, index: int, record: Record, header: BatchHeader) -> None:
        try:
            sys.stdout.buffer.write(self._prints(index, record, header))
        except Failure as failure:
            if not self._settings.skips_errors:
                raise
            log("ERROR", "Error processing message, skipping this message: ", _CLASS)
            tell(failure.stack().removesuffix("\n"))

    # --- records ----------------------------------------------------------------------------------

    def _found(self) -> Iterator[tuple[str, int, Record, BatchHeader]]:
        """Each record with its topic, partition and batch."""
        last = time.monotonic()
        while True:
            for topic, reader in self._ready():
                for index, record, header in self._round(topic, reader):
                    yield topic, index, record, header
                    last = time.monotonic()
            sys.stdout.flush()
            if is_output_lost():
                raise _NobodyReads
            if 1000 * (time.monotonic() - last) > self._settings.timeout_ms:
                raise _Ended(timeout("null"))
            if not self._readers:
                time.sleep(PAUSE_S)

    def _round(self, topic: str, reader: Reader) -> Iterator[Found]:
        try:
            yield from reader.round()
        except TryAgain:
            time.sleep(PAUSE_S)
            self._refresh(topic, reader)
        except Unreachable:
            self._wait_for_somebody()

    def _refresh(self, topic: str, reader: Reader) -> None:
        try:
            reader.refresh()
        except (TryAgain, Unreachable):
            self._wait_for_somebody()
        except ClientFailed as failure:
            if failure.code is not Error.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            del self._readers[topic]

    def _wait_for_somebody(self) -> None:
        warn_of_nobody(self._addresses, self._shown)
        time.sleep(PAUSE_S)

    @property
    def _shown(self) -> str:
        group = self._settings.properties.get("group.id", "null")
        return f"Consumer clientId={self._client}, groupId={group}"

    # --- what is read -----------------------------------------------------------------------------

    def _ready(self) -> list[tuple[str, Reader]]:
        """The readers of all topics that are there, after what a member owes its group."""
        try:
            self._look()
            if self._member is not None:
                self._member.beat()
                self._commit_now_and_then(self._member)
        except JoinAgain:
            self._drop()
        except (TryAgain, Unreachable):
            self._wait_for_somebody()
        return list(self._readers.items())

    def _look(self) -> None:
        now = time.monotonic()
        if self._readers and now < self._next_look:
            return
        self._next_look = now + _LOOK_EVERY_S
        topics = [name for name in self._wanted() if self._sizes([name])]
        if self._readers and topics == self._topics:
            return
        self._drop()
        self._topics = topics
        if topics and self._member is not None:
            assignment = self._member.join(topics, self._sizes)
            self._open(assignment, self._member.committed(assignment))
        elif topics:
            self._open({name: self._own(name) for name in topics}, {})

    def _wanted(self) -> list[str]:
        if self._pattern is None:
            return [self._settings.topic or ""]
        answer = self._cluster.ask_any(MetadataRequest(topics=None))
        return sorted(
            each.name for each in answer.topics
            if not each.is_internal and self._pattern.fullmatch(each.name)
        )

    def _sizes(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions topics have, of those that are there."""
        found = {}
        for name in topics:
            try:
                found[name] = len(self._cluster.topic(name, may_create=True).leaders)
            except TryAgain:
                continue
            except ClientFailed as failure:
                if failure.code is Error.INVALID_TOPIC_EXCEPTION:
                    raise _Ended(refused(failure.code, f"Invalid topics: [{name}]")) from failure
                raise
        return found

    def _own(self, topic: str) -> list[int]:
        size, partition = self._sizes([topic]).get(topic, 0), self._settings.partition
        return list(range(size)) if partition is None else [partition] if partition < size else []

    def _open(self, assignment: Assignment, committed: dict[Place, int]) -> None:
        topics = {name: indexes for name, indexes in assignment.items() if indexes}
        wait_ms = min(MAX_WAIT_MS, self._settings.timeout_ms) // max(1, len(topics))
        for name, indexes in topics.items():
            reader = Reader(
                self._cluster, name, partitions=indexes, start=Start(timestamp=EARLIEST),
                follows=True, timeout_s=0, tell=lambda _: None, max_wait_ms=wait_ms,
                is_committed=self._settings.properties["isolation.level"] == "read_committed",
            )  # fmt: skip
            for index, first in reader.beginnings.items():
                place = name, index
                begin = self._begin(place, first, reader.ends[index], committed.get(place))
                self._positions[place] = begin
                reader.seek(index, begin)
            self._readers[name] = reader

    def _begin(self, place: Place, first: int, end: int, committed: int | None) -> int:
        """Where a partition is begun."""
        wanted = committed
        if self._settings.partition is not None:
            wanted = self._settings.offset
            wanted = {EARLIEST: first, LATEST: end}.get(wanted, wanted)
        elif place in self._positions:
            wanted = self._positions[place]
        if wanted is not None and first <= wanted <= end:
            return wanted
        if self._settings.reset is None:
            raise _Ended(Failure(
                "org.apache.kafka.clients.consumer.NoOffsetForPartitionException",
                f"Undefined offset with no reset policy for partitions: [{place[0]}-{place[1]}]",
            ))  # fmt: skip
        return first if self._settings.reset == EARLIEST else end

    # --- the group --------------------------------------------------------------------------------

    def _drop(self) -> None:
        """Gives up what is assigned; a member commits how far it came."""
        self._readers.clear()
        self._topics = []
        if self._member is not None:
            self._commit(self._member)
            self._positions.clear()

    def _commit_now_and_then(self, member: GroupMember) -> None:
        if time.monotonic() >= self._next_commit:
            self._next_commit = time.monotonic() + _COMMIT_EVERY_S
            self._commit(member)

    def _commit(self, member: GroupMember) -> None:
        if self._commits:
            # Where it is not taken, those who have the partitions now read them again.
            with suppress(JoinAgain, ClientFailed):
                member.commit(self._positions)

    def _close(self) -> None:
        if self._member is not None:
            self._commit(self._member)
            with suppress(JoinAgain, ClientFailed):  # it is forgotten when its session ends
                self._member.leave()
        self._cluster.close()


class _NobodyReads(Exception):
    """What is printed is lost."""


class _Ended(Exception):
    """Nothing more is received."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


def _pattern(include: str | None) -> re.Pattern[str] | None:
    if include is None:
        return None
    try:
        return re.compile(include)
    except re.error as error:
        name = "java.util.regex.PatternSyntaxException"
        raise Failure(name, f"{error.msg} near index {error.pos}\n{include}") from error
