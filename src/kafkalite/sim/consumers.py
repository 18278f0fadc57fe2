"""Consumers of a simulation, and the chain that consumes, transforms and produces.

A consumer reads a partition from its beginning, drops what was aborted as real consumers do, and
notes what it saw. The chain goes on from the offset that its group has committed; its transactions
carry the copies and the offset together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchRequest, OffsetFetchRequest
from kafkalite.records.batch import iterate_headers
from kafkalite.records.control import read_batch_marker
from kafkalite.records.record import iterate_records
from kafkalite.sim.client import Ask, Script, Sleep
from kafkalite.sim.history import Attempt, History, Partition, Reading
from kafkalite.sim.producers import GROUP_KEY, PASSING, TransactionalProducer

FETCH_VERSION = 12
FETCH_BYTES = 600  # little, so that consumers stop inside transactions
COPIES = 6


def fetch_request(reading: Reading, max_bytes: int = FETCH_BYTES) -> FetchRequest:
    topic, index = reading.partition
    wanted = FetchRequest.Partition(
        partition=index, fetch_offset=reading.position, partition_max_bytes=max_bytes
    )
    return FetchRequest(
        max_wait_ms=200, min_bytes=1, isolation_level=int(reading.is_committed_only),
        session_epoch=-1, topics=[FetchRequest.Topic(topic=topic, partitions=[wanted])],
    )


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
        [answer] = yield Ask([(fetch_request(reading), FETCH_VERSION)])
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
        elif code in PASSING:
            yield Sleep(20)
        else:
            history.complain(f"a consumer of {reading.partition} was told {code.name}")
            return


class Chain(TransactionalProducer):
    """Copies what it reads, exactly once."""

    source: Partition = ("in", 0)
    target: Partition = ("out", 0)
    group = "chain"

    def transact(self) -> Script:
        offset = yield from self._committed_offset()
        self._reading = Reading(self.source, is_committed_only=True, position=offset)
        [answer] = yield Ask([(fetch_request(self._reading), FETCH_VERSION)])
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
