"""Consumers of a simulation, and the chain that consumes, transforms and produces.

A consumer reads a partition from its beginning, drops what was aborted as real consumers do, and
notes what it saw. The chain goes on from the offset that its group has committed; its transactions
carry the copies and the offset together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchRequest, ListOffsetsRequest, OffsetFetchRequest
from kafkalite.records.batch import iterate_headers
from kafkalite.records.control import read_batch_marker
from kafkalite.records.record import iterate_records
from kafkalite.sim.client import Ask, Script, Sleep
from kafkalite.sim.history import Attempt, History, Partition, Reading
from kafkalite.sim.producers import GROUP_KEY, PASSING, TransactionalProducer
from kafkalite.sim.topics import Topics

FETCH_VERSION = 12
FETCH_BY_ID_VERSION = 13
LIST_OFFSETS_VERSION, EARLIEST = 6, -2
FETCH_BYTES = 600  # little, so that consumers stop inside transactions
COPIES = 6


def fetch_request(
    topics: Topics, reading: Reading, max_bytes: int = FETCH_BYTES
) -> tuple[FetchRequest, int]:
    """With the version to send it in: one that names the topic by its id, if that is known."""
    label, index = reading.partition
    wanted = FetchRequest.Partition(
        partition=index, fetch_offset=reading.position, partition_max_bytes=max_bytes
    )
    topic, version = FetchRequest.Topic(topic=label, partitions=[wanted]), FETCH_VERSION
    if label in topics.by_label:
        topic.topic_id, version = topics.by_label[label].topic_id, FETCH_BY_ID_VERSION
    return FetchRequest(
        max_wait_ms=200, min_bytes=1, isolation_level=int(reading.is_committed_only),
        session_epoch=-1, topics=[topic],
    ), version


def take(reading: Reading, fetched: Any) -> list[tuple[int, bytes]]:
    """What a consumer makes of an answer: the records that count, and a new position."""
    taken: list[tuple[int, bytes]] = []
    pending = sorted(
        fetched.aborted_transactions or (), key=lambda aborted: int(aborted.first_offset)
    )
    aborted: set[int] = set()
    records = fetched.records
    start = position = reading.position
    for header in iterate_headers(records) if records else ():
        while pending and pending[0].first_offset <= header.last_offset:
            aborted.add(pending.pop(0).producer_id)
        position = header.last_offset + 1
        if header.is_control:
            marker = read_batch_marker(records, header)
            if marker is None or not marker.is_commit:
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            taken += [
                (record.offset, record.value)
                for record in iterate_records(records, header)
                if record.offset >= start and record.value is not None
            ]
    reading.position = max(position, start)
    reading.seen += taken
    return taken


def consume(history: History, reading: Reading, is_done: Callable[[int], bool]) -> Script:
    """Reads on until it is done: `is_done` is given the end that the broker tells."""
    while True:
        [answer] = yield Ask([fetch_request(history.topics, reading)])
        if answer is None or not answer.responses:
            yield Sleep(20)
            continue
        [fetched] = answer.responses[0].partitions
        code = Error(fetched.error_code)
        if code is Error.NONE:
            take(reading, fetched)
            if is_done(fetched.high_watermark):
                return
            yield Sleep(5)
        elif code in PASSING and not history.topics.is_going(reading.partition):
            yield Sleep(20)
        elif code in PASSING:
            return
        elif code is Error.OFFSET_OUT_OF_RANGE and reading.partition in history.fading:
            yield from skip_to_start(history.topics, reading)
        else:
            history.complain(f"a consumer of {reading.partition} was told {code.name}")
            return


def skip_to_start(topics: Topics, reading: Reading) -> Script:
    """On from where the partition begins now: what was before has had its time."""
    label, index = reading.partition
    wanted = ListOffsetsRequest.Partition(partition_index=index, timestamp=EARLIEST)
    topic = ListOffsetsRequest.Topic(name=topics.by_label[label].name, partitions=[wanted])
    while not topics.is_going(reading.partition):
        request = ListOffsetsRequest(replica_id=-1, topics=[topic])
        [answer] = yield Ask([(request, LIST_OFFSETS_VERSION)])
        if answer is not None:
            [found] = answer.topics[0].partitions
            if found.error_code == Error.NONE:
                reading.position = max(reading.position, found.offset)
                return
        yield Sleep(20)


class Chain(TransactionalProducer):
    """Copies what it reads, exactly once."""

    source: Partition = ("in", 0)
    target: Partition = ("out", 0)
    group = "chain"

    def transact(self) -> Script:
        offset = yield from self._committed_offset()
        self._reading = Reading(self.source, is_committed_only=True, position=offset)
        [answer] = yield Ask([fetch_request(self.history.topics, self._reading)])
        if answer is None or not answer.responses:
            return
        [fetched] = answer.responses[0].partitions
        if fetched.error_code != Error.NONE:
            return
        self._found = take(self._reading, fetched)[:COPIES]
        if self._found:
            yield from super().transact()

    def work(self, attempt: Attempt) -> Script:
        copies = [
            self.history.copy(attempt, "chain", self.target, b"copy of " + value)
            for _, value in self._found
        ]
        yield from self.write(self.target, copies)
        next_offset = self._found[-1][0] + 1
        yield from self.commit_offset(self.group, self.source, next_offset)

    def _committed_offset(self) -> Script:
        yield from self.find_coordinator(self.group, GROUP_KEY)
        topic, index = self.source
        wanted = OffsetFetchRequest.GroupTopic(name=topic, partition_indexes=[index])
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequest.Group(group_id=self.group, topics=[wanted])],
            require_stable=True,
        )
        answer = yield from self.until_told(request, 8, _offset_code)
        return max(0, answer.groups[0].topics[0].partitions[0].committed_offset)


def _offset_code(answer: Any) -> Error:
    group = answer.groups[0]
    return Error(group.error_code or group.topics[0].partitions[0].error_code)
