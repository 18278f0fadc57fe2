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
from itertools import repeat
from typing import Any

from kafkalite.client.cluster import ClientFailed, Cluster, Patience, Topic, TryAgain
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import InitProducerIdRequest, ProduceRequest
from kafkalite.records.record import BatchBuilder

BATCH_BYTES = 1_000_000  # as librdkafka; brokers take a little more
PENDING_BYTES = 4_000_000
REQUEST_TIMEOUT_MS = 30_000
HIGHEST_SEQUENCE = 0x7FFFFFFF
SHOWN_SPANS = 5
_TOO_LARGE = (Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE)
_WRITTEN = (Error.NONE, Error.DUPLICATE_SEQUENCE_NUMBER)
_OVERHEAD = 30  # of a record, and of a header, more or less

Headers = tuple[tuple[str | bytes, bytes | None], ...]


# A record to write: the number of its line, key, value, timestamp and headers.
Line = tuple[int, bytes | None, bytes | None, int, Headers]


@dataclass(slots=True)
class Refusal:
    """A record that a broker does not take: for itself, or for others in its batch when there is no
    code."""

    key: bytes | None
    value: bytes | None
    code: Error | None
    message: str | None


class Producer:
    """Writes to one topic; `add` gathers, `flush` returns when all of it is acknowledged.

    refuse: told each record that is not taken, and the rest is written; without it the first such
    record ends all."""

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
        acks: int = -1,
        batch_bytes: int = BATCH_BYTES,
        refuse: Callable[[Refusal], None] | None = None,
    ) -> None:
        self._acks, self._most_bytes, self._refuse = acks, batch_bytes, refuse
        self._now_ms = now_ms
        self._cluster = cluster
        self._name = topic
        self._partition = partition
        self._headers = headers
        self._codec = codec
        self._timeout_s = timeout_s
        self._patience = Patience(timeout_s)
        self._pending: dict[int, deque[list[Line]]] = defaultdict(deque)
        self._pending_bytes = self._count = 0
        self._batch_bytes: dict[int, int] = defaultdict(int)
        self._sequences: dict[int, int] = defaultdict(int)
        self.written = self._unanswered = 0
        self._asked: int | None = None  # the broker whose answer is on its way
        self._topic = self._found_topic()
        self._id, self._epoch = self._producer_id()
        self._keyless = self._another()

    @property
    def so_far(self) -> str:
        """What is told of it when it is interrupted."""
        more = f", and {self._unanswered} more may be" if self._unanswered else ""
        return f"{self.written} records are written{more}"

    @property
    def is_full(self) -> bool:
        return self._pending_bytes >= PENDING_BYTES

    def add(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> None:
        """headers: behind those that all records have; timestamp: else now."""
        self._count += 1
        at_ms = self._now_ms() if timestamp is None else timestamp
        whole = self._headers + headers if headers else self._headers
        index = self._index_of(key) if partition is None else self._there(partition)
        size = _OVERHEAD + (len(key) if key else 0) + (len(value) if value else 0)
        if whole:
            size += _size(whole)
        self._batch_for(index, size).append((self._count, key, value, at_ms, whole))

    def add_values(self, values: list[bytes]) -> None:
        """Values without keys, all of one moment."""
        index, size = self._index_of(None), _OVERHEAD * len(values) + sum(map(len, values))
        if self._headers:
            size += _size(self._headers) * len(values)
        if size > self._most_bytes:
            for value in values:
                self.add(None, value)
            return
        batch = self._batch_for(index, size)
        first = self._count + 1
        self._count += len(values)
        batch.extend(zip(
            range(first, self._count + 1), repeat(None), values, repeat(self._now_ms()),
            repeat(self._headers), strict=False,
        ))  # fmt: skip

    def _batch_for(self, index: int, size: int) -> list[Line]:
        """The one to which what has so many bytes is added."""
        batches = self._pending[index]
        if not batches or self._batch_bytes[index] + size > self._most_bytes:
            batches.append([])
            self._batch_bytes[index] = 0
        self._batch_bytes[index] += size
        self._pending_bytes += size
        return batches[-1]

    def push(self) -> None:
        """Has a full batch sent while more is gathered; flushes when there is much."""
        self._act(self._flush if self.is_full else self._push)

    def flush(self) -> None:
        """ClientFailed says also which lines are not acknowledged."""
        self._act(self._flush)

    def _act(self, act: Callable[[], None]) -> None:
        try:
            act()
        except ClientFailed as failure:
            if self._refuse is not None:
                self._give_up(self._refuse)
                return
            raise ClientFailed(f"{failure}; {self._left()}") from failure

    def _push(self) -> None:
        try:
            if self._asked is not None and self._cluster.has_answer(self._asked):
                self._take()
            if self._asked is None:
                self._send_full()
        except TryAgain:
            self._flush()

    def _send_full(self) -> None:
        for index, batches in self._pending.items():
            leader = self._topic.leaders.get(index, -1)
            if len(batches) > 1 and leader >= 0:
                self._ask(leader, [index])
                return

    def _flush(self) -> None:
        self._patience.renew()
        while self._pending:
            try:
                if self._asked is not None:
                    self._take()
                self._send_some()
            except TryAgain as failure:
                self._patience.wait_after(failure)
                self._topic = self._found_topic()
        self._pending_bytes = 0
        self._keyless = self._another()

    def _give_up(self, refuse: Callable[[Refusal], None]) -> None:
        for index, batches in self._pending.items():
            for batch in batches:
                message = (
                    f"Expiring {len(batch)} record(s) for {self._name}-{index}:"
                    f"{1000 * self._timeout_s:.0f} ms has passed since batch creation"
                )
                for _, key, value, _, _ in batch:
                    refuse(Refusal(key, value, Error.REQUEST_TIMED_OUT, message))
        self._pending.clear()
        self._pending_bytes = 0

    def _left(self) -> str:
        """What is not acknowledged; the lines behind have not been read."""
        numbers = sorted(
            line[0] for batches in self._pending.values() for each in batches for line in each
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
        if self._partition is not None:
            _check_partition(topic, self._partition)
        return topic

    def _there(self, partition: int) -> int:
        if partition not in self._topic.leaders:
            self.flush()
        _check_partition(self._topic, partition, f"; {self.written} records are written")
        return partition

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
        self._ask(leader, indexes)
        self._take()

    def _ask(self, leader: int, indexes: list[int]) -> None:
        data = [
            ProduceRequest.PartitionData(index=index, records=self._batch(index))
            for index in indexes
        ]
        request = ProduceRequest(
            transactional_id=None, acks=self._acks, timeout_ms=REQUEST_TIMEOUT_MS,
            topic_data=[ProduceRequest.TopicData(name=self._name, partition_data=data)],
        )  # fmt: skip
        self._unanswered = sum(len(self._pending[index][0]) for index in indexes)
        self._cluster.begin(leader, request)
        self._asked = leader

    def _take(self) -> None:
        """The answer that is on its way."""
        assert self._asked is not None
        leader, self._asked = self._asked, None
        answer = self._cluster.finish(leader)
        self._unanswered = 0
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
        _fill(builder, self._pending[index][0])
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
            self._done(answer.index)
        elif code in _TOO_LARGE and len(batch) > 1:
            half = len(batch) // 2
            batches[0] = batch[:half]
            batches.insert(1, batch[half:])
        elif self._refuse is not None and not code.is_retriable:
            self._patience.renew()
            self._done(answer.index)
            for refusal in _refusals(batch, answer):
                self._refuse(refusal)
        else:
            _raise_for(code, self._refused(batch, answer), answer.error_message)

    def _done(self, index: int) -> None:
        self._pending[index].popleft()
        if not self._pending[index]:
            del self._pending[index]

    def _refused(self, batch: list[Line], answer: Any) -> str:
        """Which lines, as near as the broker tells."""
        wrong = [batch[each.batch_index][0] for each in answer.record_errors]
        first, last = (wrong or [batch[0][0]])[0], (wrong or [batch[-1][0]])[-1]
        which = f"line {first} is" if first == last else f"lines {first} to {last} are"
        return f"{which} not written to {self._name}-{answer.index}, {self.written} others are"


def _fill(builder: BatchBuilder, lines: list[Line]) -> None:
    _, keys, values, times, headers = zip(*lines, strict=True)
    if any(headers) or keys.count(None) < len(keys) or None in values:
        for _, key, value, at_ms, each in lines:
            builder.append(at_ms, key, value, each)
    else:
        builder.extend(times, values)


def _check_partition(topic: Topic, partition: int, so_far: str = "") -> None:
    if partition not in topic.leaders:
        raise ClientFailed(
            f"topic {topic.name} has no partition {partition}: it has {len(topic.leaders)}, from 0 "
            f"on{so_far}"
        )


def _refusals(batch: list[Line], answer: Any) -> list[Refusal]:
    """What a broker says of each record of a batch that it does not take."""
    said = {each.batch_index: each.batch_index_error_message for each in answer.record_errors}
    code, message = Error(answer.error_code), answer.error_message
    if not said:
        return [Refusal(line[1], line[2], code, message) for line in batch]
    of_many = code if len(said) == 1 else Error.INVALID_RECORD
    return [
        Refusal(line[1], line[2], of_many, said[index] or message) if index in said
        else Refusal(line[1], line[2], None, None)
        for index, line in enumerate(batch)
    ]  # fmt: skip


def _size(headers: Headers) -> int:
    return sum(len(name) + len(value or b"") + _OVERHEAD for name, value in headers)


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
    raise kind(f"{what}: {code.name}: {message or code.message}", code)


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
