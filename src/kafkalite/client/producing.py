"""Lines that become records: batches for the partitions of one topic, each written exactly once.

Owns sequence numbers: one batch per partition is on its way at a time, and is sent again under its
number until it is acknowledged, so a lost answer writes nothing twice. Partitions of keys are those
that Apache Kafka's own clients choose.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalite.client.cluster import ClientFailed, Cluster, Patience, Topic, TryAgain
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import InitProducerIdRequest, ProduceRequest
from kafkalite.records.record import BatchBuilder

BATCH_BYTES = 500_000
PENDING_BYTES = 4_000_000
REQUEST_TIMEOUT_MS = 30_000
HIGHEST_SEQUENCE = 0x7FFFFFFF
SHOWN_SPANS = 5
_TOO_LARGE = (Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE)
_WRITTEN = (Error.NONE, Error.DUPLICATE_SEQUENCE_NUMBER)
_OVERHEAD = 30  # of a record, and of a header, more or less

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(slots=True)
class Line:
    """A record to write, and the number of its line."""

    number: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class Producer:
    """Writes to one topic; `add` gathers, `flush` returns when all of it is acknowledged."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        partition: int | None,
        headers: Headers,
        codec: int,
        timeout_s: float,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self._now_ms = now_ms
        self._cluster = cluster
        self._name = topic
        self._partition = partition
        self._headers = headers
        self._overhead = _OVERHEAD + sum(
            len(name.encode()) + len(value or b"") + _OVERHEAD for name, value in headers
        )
        self._codec = codec
        self._patience = Patience(timeout_s)
        self._pending: dict[int, deque[list[Line]]] = defaultdict(deque)
        self._pending_bytes = self._count = 0
        self._batch_bytes: dict[int, int] = defaultdict(int)
        self._sequences: dict[int, int] = defaultdict(int)
        self.written = 0
        self._topic = self._found_topic()
        self._id, self._epoch = self._producer_id()
        self._keyless = self._another()

    @property
    def is_full(self) -> bool:
        return self._pending_bytes >= PENDING_BYTES

    def add(self, key: bytes | None, value: bytes | None) -> None:
        self._count += 1
        line = Line(self._count, key, value, self._now_ms())
        index = self._index_of(key)
        size = len(key or b"") + len(value or b"") + self._overhead
        batches = self._pending[index]
        if not batches or self._batch_bytes[index] + size > BATCH_BYTES:
            batches.append([])
            self._batch_bytes[index] = 0
        batches[-1].append(line)
        self._batch_bytes[index] += size
        self._pending_bytes += size

    def flush(self) -> None:
        """ClientFailed says also which lines are not acknowledged."""
        try:
            self._flush()
        except ClientFailed as failure:
            raise ClientFailed(f"{failure}; {self._left()}") from failure

    def _flush(self) -> None:
        self._patience.renew()
        while self._pending:
            try:
                self._send_some()
            except TryAgain as failure:
                self._patience.wait_after(failure)
                self._topic = self._found_topic()
        self._pending_bytes = 0
        self._keyless = self._another()

    def _left(self) -> str:
        """What is not acknowledged; the lines behind have not been read."""
        numbers = sorted(
            line.number for batches in self._pending.values() for each in batches for line in each
        )
        spans = _spans(numbers)
        shown = ", ".join(spans[:SHOWN_SPANS]) + (" and others" * (len(spans) > SHOWN_SPANS))
        which = f"line {shown}" if len(numbers) == 1 else f"lines {shown}"
        return f"not acknowledged: {which}, and nothing behind line {self._count} was sent"

    # --- where to -----------------------------------------------------------------------------

    def _found_topic(self) -> Topic:
        """The topic, made by the broker if that makes topics on demand."""
        while True:
            try:
                topic = self._cluster.topic(self._name, may_create=True)
                break
            except TryAgain as failure:
                self._patience.wait_after(failure)
        if self._partition is not None and self._partition not in topic.leaders:
            raise ClientFailed(
                f"topic {self._name} has no partition {self._partition}: it has "
                f"{len(topic.leaders)}, from 0 on"
            )
        return topic

    def _producer_id(self) -> tuple[int, int]:
        while True:
            try:
                answer = self._cluster.ask_any(
                    InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
                )
                _raise_for(Error(answer.error_code), "no producer id is given out")
                return answer.producer_id, answer.producer_epoch
            except TryAgain as failure:
                self._patience.wait_after(failure)

    def _index_of(self, key: bytes | None) -> int:
        if self._partition is not None:
            return self._partition
        if key is None:
            return self._keyless
        return (murmur2(key) & 0x7FFFFFFF) % len(self._topic.leaders)

    def _another(self) -> int:
        """Where the next lines without a key go, all of them: one large batch is better than many
        small ones. To a partition that has a leader, if there is one."""
        led = [index for index, leader in self._topic.leaders.items() if leader >= 0]
        return random.choice(led or list(self._topic.leaders))

    # --- sending --------------------------------------------------------------------------------

    def _send_some(self) -> None:
        """The first batch that waits for each partition, leader by leader."""
        by_leader: dict[int, list[int]] = defaultdict(list)
        for index in self._pending:
            by_leader[self._topic.leaders.get(index, -1)].append(index)
        trouble: TryAgain | None = None
        for leader, indexes in by_leader.items():
            try:
                if leader < 0:
                    raise TryAgain(f"{self._name}-{indexes[0]} has no leader: is its broker up?")
                self._send_to(leader, indexes)
            except TryAgain as failure:
                trouble = failure
        if trouble is not None:
            raise trouble

    def _send_to(self, leader: int, indexes: list[int]) -> None:
        data = [
            ProduceRequest.PartitionData(index=index, records=self._batch(index))
            for index in indexes
        ]
        request = ProduceRequest(
            transactional_id=None, acks=-1, timeout_ms=REQUEST_TIMEOUT_MS,
            topic_data=[ProduceRequest.TopicData(name=self._name, partition_data=data)],
        )  # fmt: skip
        answer = self._cluster.ask(leader, request)
        trouble: TryAgain | None = None
        for each in answer.responses[0].partition_responses:
            try:
                self._answered(each)
            except TryAgain as failure:
                trouble = failure
        if trouble is not None:
            raise trouble

    def _batch(self, index: int) -> bytearray:
        builder = BatchBuilder()
        for line in self._pending[index][0]:
            builder.append(line.timestamp, line.key, line.value, self._headers)
        return builder.build(
            producer_id=self._id, producer_epoch=self._epoch,
            base_sequence=self._sequences[index], compression=self._codec,
        )  # fmt: skip

    def _answered(self, answer: Any) -> None:
        batches, code = self._pending[answer.index], Error(answer.error_code)
        batch = batches[0]
        if code in _WRITTEN:
            self._patience.renew()
            self._sequences[answer.index] += len(batch)
            self._sequences[answer.index] &= HIGHEST_SEQUENCE  # and then 0, as everywhere
            self.written += len(batch)
            batches.popleft()
            if not batches:
                del self._pending[answer.index]
        elif code in _TOO_LARGE and len(batch) > 1:
            half = len(batch) // 2
            batches[0] = batch[:half]
            batches.insert(1, batch[half:])
        else:
            _raise_for(code, self._refused(batch, answer), answer.error_message)

    def _refused(self, batch: list[Line], answer: Any) -> str:
        """Which lines, as near as the broker tells."""
        wrong = [batch[each.batch_index].number for each in answer.record_errors]
        first, last = (wrong or [batch[0].number])[0], (wrong or [batch[-1].number])[-1]
        which = f"line {first} is" if first == last else f"lines {first} to {last} are"
        return f"{which} not written to {self._name}-{answer.index}, {self.written} others are"


def _spans(numbers: list[int]) -> list[str]:
    """Rising numbers, those that follow each other as one."""
    spans: list[tuple[int, int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return [f"{first}" if first == last else f"{first} to {last}" for first, last in spans]


def _raise_for(code: Error, what: str, message: str | None = None) -> None:
    if code is Error.NONE:
        return
    kind = TryAgain if code.is_retriable else ClientFailed
    raise kind(f"{what}: {code.name}: {message or code.message}")


def murmur2(data: bytes) -> int:
    """The hash by which Apache Kafka's clients choose the partition of a key."""
    length, factor, mask = len(data), 0x5BD1E995, 0xFFFFFFFF
    value = 0x9747B28C ^ length
    whole = length & ~3
    for position in range(0, whole, 4):
        part = int.from_bytes(data[position : position + 4], "little") * factor & mask
        part = (part ^ part >> 24) * factor & mask
        value = value * factor & mask ^ part
    if length > whole:
        value = (value ^ int.from_bytes(data[whole:], "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return value ^ value >> 15
