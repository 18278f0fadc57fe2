"""Records of one topic as a client without a group reads them, up to where its partitions now end.

Owns the positions. Shows what a consumer with read_committed sees unless it is told otherwise:
nothing of aborted transactions, nothing behind open ones, no control record.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kafkalite.client.cluster import ClientFailed, Cluster, Patience, Topic, TryAgain
from kafkalite.client.shown import Shown
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import FetchRequest, ListOffsetsRequest
from kafkalite.records.batch import BatchHeader, iterate_headers, verify
from kafkalite.records.control import ControlType
from kafkalite.records.record import Record, iterate_records

LATEST, EARLIEST = -1, -2
MAX_WAIT_MS = 500
PARTITION_BYTES = 1 << 20
FETCH_BYTES = 16 << 20
CONSUMER = -1  # in the place of a replica's id


Found = tuple[int, Record, BatchHeader]  # a partition, a record of it, and its batch
Batch = tuple[int, BatchHeader, Shown]  # a partition, and what is shown of a batch of it


@dataclass(slots=True)
class Start:
    """Where to begin: at an offset, so many before the end (below 0), or by LATEST, EARLIEST or a
    time in milliseconds as ListOffsets takes it."""

    offset: int | None = None
    timestamp: int = EARLIEST


@dataclass(slots=True)
class _Place:
    """How far one partition is read."""

    position: int
    end: int


class Reader:
    """Reads partitions of a topic; iterate over `records`, or over the batches of each of `rounds`.

    until: where to end, if that is before where the partitions now end."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        partitions: Sequence[int],
        start: Start,
        follows: bool,
        is_committed: bool,
        timeout_s: float,
        tell: Callable[[str], None],
        max_wait_ms: int = MAX_WAIT_MS,
        until: Start | None = None,
    ) -> None:
        self._max_wait_ms = max_wait_ms
        self._is_idle = False  # the last round had nothing
        self._cluster = cluster
        self._name = topic
        self._follows = follows
        self._isolation = int(is_committed)
        self._patience = Patience(timeout_s)
        self._tell = tell
        self._topic = self._found_topic()
        missing = sorted(set(partitions) - set(self._topic.leaders))
        if missing:
            raise ClientFailed(
                f"topic {topic} has no partition {missing[0]}: it has "
                f"{len(self._topic.leaders)}, from 0 on"
            )
        self._places = self._begin(sorted(set(partitions) or self._topic.leaders), start, until)

    @property
    def ends(self) -> dict[int, int]:
        """Where the partitions ended when it began."""
        return {index: place.end for index, place in self._places.items()}

    @property
    def beginnings(self) -> dict[int, int]:
        """The first offsets of the partitions that it reads when it begins at the first."""
        return {index: place.position for index, place in self._places.items()}

    def records(self) -> Iterator[tuple[int, Record]]:
        """Records with their partitions, each partition's in order; to the end, or for ever."""
        for batches in self.rounds():
            for index, _, records in batches:
                for record in records:
                    yield index, record

    def rounds(self, idle_s: float | None = None) -> Iterator[Iterator[Batch]]:
        """Rounds to the end, or for ever; or until nothing has come for so long, of which the time
        that somebody takes for what came is no part, nor a round that failed."""
        idle_since = time.monotonic()
        while self._unfinished():
            self._is_idle = True
            yield self._batches()
            if not self._is_idle:
                idle_since = time.monotonic()
            elif idle_s is not None and time.monotonic() - idle_since >= idle_s:
                return

    def round(self) -> Iterator[Found]:
        """What there is now, asked of each leader once, each record with its batch."""
        for index, header, records in self._batches():
            for record in records:
                yield index, record, header

    def _batches(self) -> Iterator[Batch]:
        try:
            for leader, indexes in self._by_leader(self._unfinished()).items():
                yield from self._read_from(leader, indexes)
        except TryAgain as failure:
            self._is_idle = False
            self._patience.wait_after(failure)
            self._topic = self._found_topic()
        else:
            self._patience.renew()

    def refresh(self) -> None:
        """Looks again for leaders."""
        self._topic = self._found_topic()

    def seek(self, index: int, offset: int) -> None:
        """Where a partition is read next."""
        self._places[index].position = offset

    def _unfinished(self) -> list[int]:
        return [
            index
            for index, place in self._places.items()
            if self._follows or place.position < place.end
        ]

    # --- beginning --------------------------------------------------------------------------------

    def _found_topic(self) -> Topic:
        while True:
            try:
                return self._cluster.topic(self._name, may_create=False)
            except TryAgain as failure:
                self._patience.wait_after(failure)

    def _begin(
        self, indexes: list[int], start: Start, until: Start | None
    ) -> dict[int, _Place]:
        first = self._offsets(indexes, EARLIEST)
        end = self._offsets(indexes, LATEST)
        begin = self._at(start, first, end)
        stop = end if until is None else self._at(until, first, end)
        return {
            index: _Place(max(begin[index], first[index]), min(stop[index], end[index]))
            for index in indexes
        }

    def _at(self, where: Start, first: dict[int, int], end: dict[int, int]) -> dict[int, int]:
        if where.offset is not None:
            offset = where.offset
            return {each: offset if offset >= 0 else end[each] + offset for each in first}
        if where.timestamp == LATEST:
            return end
        if where.timestamp == EARLIEST:
            return first
        found = self._offsets(list(first), where.timestamp)
        return {each: end[each] if found[each] < 0 else found[each] for each in found}

    def _offsets(self, indexes: list[int], timestamp: int) -> dict[int, int]:
        found: dict[int, int] = {}
        while missing := [index for index in indexes if index not in found]:
            try:
                for leader, some in self._by_leader(missing).items():
                    found |= self._offsets_of(leader, some, timestamp)
            except TryAgain as failure:
                self._patience.wait_after(failure)
                self._topic = self._found_topic()
        self._patience.renew()
        return found

    def _offsets_of(self, leader: int, indexes: list[int], timestamp: int) -> dict[int, int]:
        partitions = [
            ListOffsetsRequest.Partition(partition_index=index, timestamp=timestamp)
            for index in indexes
        ]
        request = ListOffsetsRequest(
            replica_id=CONSUMER, isolation_level=self._isolation,
            topics=[ListOffsetsRequest.Topic(name=self._name, partitions=partitions)],
        )  # fmt: skip
        found = {}
        for each in self._cluster.ask(leader, request).topics[0].partitions:
            self._check(each.partition_index, Error(each.error_code))
            found[each.partition_index] = each.offset
        return found

    def _by_leader(self, indexes: list[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for index in indexes:
            leader = self._topic.leaders.get(index, -1)
            if leader < 0:
                raise TryAgain(f"{self._name}-{index} has no leader: is its broker up?")
            found[leader].append(index)
        return found

    def _check(self, index: int, code: Error) -> None:
        if code is not Error.NONE:
            kind = TryAgain if code.is_retriable else ClientFailed
            raise kind(f"{self._name}-{index} cannot be read: {code.name}: {code.message}", code)

    # --- reading ----------------------------------------------------------------------------------

    def _read_from(self, leader: int, indexes: list[int]) -> Iterator[Batch]:
        partitions = [
            FetchRequest.Partition(
                partition=index, fetch_offset=self._places[index].position,
                partition_max_bytes=PARTITION_BYTES,
            )
            for index in indexes
        ]  # fmt: skip
        brokers = len(set(self._topic.leaders.values()))
        request = FetchRequest(
            max_wait_ms=self._max_wait_ms // brokers, min_bytes=1, max_bytes=FETCH_BYTES,
            isolation_level=self._isolation,
            topics=[FetchRequest.Topic(topic=self._name, partitions=partitions)],
        )  # fmt: skip
        self._patience.begin()
        answer = self._cluster.ask(leader, request)
        self._check(indexes[0], Error(answer.error_code))
        silent = []
        for topic in answer.responses:
            for each in topic.partitions:
                yield from self._records_of(each)
                if each.records:
                    self._put_behind(each.partition_index)
                else:
                    silent.append(each.partition_index)
        self._look_for_ends([index for index in silent if index in self._unfinished()])

    def _put_behind(self, index: int) -> None:
        """What was served is asked for last, since brokers fill an answer in the order asked."""
        self._places[index] = self._places.pop(index)

    def _records_of(self, answer: Any) -> Iterator[Batch]:
        index, place = answer.partition_index, self._places[answer.partition_index]
        if Error(answer.error_code) is Error.OFFSET_OUT_OF_RANGE:
            self._come_back(index, place)
            return
        self._check(index, Error(answer.error_code))
        begun = sorted(
            (each.first_offset, each.producer_id) for each in answer.aborted_transactions or ()
        )
        aborted: set[int] = set()
        for header, buffer in _batches(answer.records or b""):
            while begun and begun[0][0] <= header.last_offset:
                aborted.add(begun.pop(0)[1])
            self._is_idle = False
            if self._is_shown(header, buffer, aborted):
                end = math.inf if self._follows else place.end
                yield index, header, Shown(buffer, header, place.position, end)
            place.position = max(place.position, header.next_offset)

    def _is_shown(self, header: BatchHeader, buffer: memoryview, aborted: set[int]) -> bool:
        """Keeps `aborted`, the producers whose open transaction will be, up to this batch."""
        if header.is_control:
            if _marker(buffer, header) is ControlType.ABORT:
                aborted.discard(header.producer_id)
            return False
        is_aborted = header.is_transactional and header.producer_id in aborted
        return not (self._isolation and is_aborted)

    def _come_back(self, index: int, place: _Place) -> None:
        """What was to be read next is gone, by retention or with the topic it was in."""
        self._is_idle = False
        first, end = self._offsets([index], EARLIEST), self._offsets([index], LATEST)
        self._tell(
            f"{self._name}-{index}: offset {place.position} is not there, the partition has "
            f"{first[index]} to {end[index]}"
        )
        place.position = min(max(place.position, first[index]), end[index])
        place.end = min(place.end, end[index])

    def _look_for_ends(self, indexes: list[int]) -> None:
        """Of partitions that have nothing more although their ends were not reached: what was there
        at the beginning may have gone since, with the topic or with a disk, and never comes."""
        if self._follows or not indexes:
            return
        for index, end in self._offsets(indexes, LATEST).items():
            place = self._places[index]
            if end < place.end:
                self._tell(f"{self._name}-{index} ended at {place.end} and now ends at {end}")
                place.end = end


def _batches(records: Any) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Whole batches, each as it was written."""
    buffer = memoryview(records)
    for header in iterate_headers(buffer):
        verify(buffer, header)
        yield header, buffer


def _marker(buffer: memoryview, header: BatchHeader) -> ControlType | None:
    for record in iterate_records(buffer, header):
        kind = int.from_bytes((record.key or b"")[2:4], "big", signed=True)
        return ControlType(kind) if kind in (0, 1) else None
    return None
