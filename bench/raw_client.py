"""A raw client for load: frames made once, several requests in flight, every reply checked.

Speaks to any broker of the protocol, so that two can be compared in one run. It decodes a reply in
full when its bytes are not those expected, and then raises: a load that fails is no measurement.
Produce v9 and Fetch v12 are spoken, which Apache Kafka 4 and kafkalite both serve.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, TypeVar

from crc32c import crc32c

from kafkalite.protocol import codec, headers
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafkalite.records.batch import Compression
from kafkalite.records.record import BatchBuilder

T = TypeVar("T")
PRODUCE_VERSION, FETCH_VERSION = 9, 12
CLIENT_ID = "bench"
TIMEOUT_SECONDS = 30
REPLY_BYTES = 64 * 1024 * 1024
READ_AHEAD_BYTES = 65_536
# Of fetched records every reply's headers are checked, and the checksums of one reply in so many.
CHECKSUM_EVERY = 50

_HEAD = struct.Struct(">ii")
_BATCH = struct.Struct(">qiibI")  # base offset, length, leader epoch, magic, checksum
_BATCH_OVERHEAD, _CHECKED_FROM = 12, 21


@dataclass(slots=True)
class Result:
    """What a load came to."""

    requests: int = 0
    payload_bytes: int = 0
    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list, repr=False)

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds

    @property
    def megabytes_per_second(self) -> float:
        return self.payload_bytes / 1e6 / self.seconds

    def latency_ms(self, fraction: float) -> float:
        """A percentile, 0 to 1."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * fraction))]


class RawClient:
    """One blocking connection."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(1 << 20)
        self._start = self._end = 0  # what has been received and not been taken
        self._correlation_id = 0

    def close(self) -> None:
        self._socket.close()

    def leave(self) -> None:
        """Closes it so that its port can be had again at once: for those who come by thousands."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, *parts: bytes | memoryview) -> None:
        sent = self._socket.sendmsg(parts)
        if sent < sum(map(len, parts)):
            self._socket.sendall(memoryview(b"".join(parts))[sent:])

    def receive(self) -> memoryview:
        """The next reply without its size; valid until the next call."""
        self._fill(4)
        (size,) = struct.unpack_from(">i", self._buffer, self._start)
        if not 4 <= size <= REPLY_BYTES:
            raise AssertionError(f"a reply of {size} bytes")
        self._fill(4 + size)
        start = self._start + 4
        self._start = start + size
        return memoryview(self._buffer)[start : start + size]

    def _fill(self, count: int) -> None:
        """Receives until `count` bytes are there to be taken, and few more: those would be moved
        to the front before the next reply."""
        if self._start == self._end:
            self._start = self._end = 0
        if self._start + count > len(self._buffer):
            self._move_to_front(count)
        while self._end - self._start < count:
            stop = max(self._start + count, self._end + READ_AHEAD_BYTES)
            got = self._socket.recv_into(memoryview(self._buffer)[self._end : stop])
            if got == 0:
                raise ConnectionError("the broker ended the connection")
            self._end += got

    def _move_to_front(self, count: int) -> None:
        """Makes room behind what is there; in the same memory if it is enough."""
        rest = memoryview(self._buffer)[self._start : self._end]
        if count > len(self._buffer):
            self._buffer = bytearray(2 * count)
        memoryview(self._buffer)[: len(rest)] = rest
        self._start, self._end = 0, len(rest)

    def call(self, request: Any, version: int, response: type[T]) -> T:
        """One request and its response, encoded and decoded in full."""
        self._correlation_id += 1
        self.send(frame_of(request, version, self._correlation_id))
        reply = self.receive()
        assert struct.unpack_from(">i", reply)[0] == self._correlation_id
        return decode_reply(reply, response, version)


def frame_of(request: Any, version: int, correlation_id: int) -> bytes:
    """A request as it goes over the wire; its correlation id lies 8 bytes from the start."""
    has_tags = headers.request_header_version(request.API_KEY, version) == 2
    name = CLIENT_ID.encode()
    head = struct.pack(">hhih", request.API_KEY, version, correlation_id, len(name)) + name
    body = head + (b"\0" if has_tags else b"") + codec.encode(request, version)
    return struct.pack(">i", len(body)) + body


def decode_reply(reply: memoryview, response: type[T], version: int) -> T:
    key = response.API_KEY  # type: ignore[attr-defined]
    return codec.decode(response, version, reply, 4 + headers.response_header_version(key, version))


# --- topics ---------------------------------------------------------------------------------------


def make_topic(client: RawClient, name: str, partitions: int = 1, **configs: str) -> None:
    """Creates a topic and returns when its first partition can be written to."""
    topic = CreateTopicsRequest.Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreateTopicsRequest.Config(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    answer = client.call(request, 5, CreateTopicsResponse)
    assert answer.topics[0].error_code == 0, answer
    empty_read = fetch_request(name, 0, 0, 1)
    for _ in range(200):
        found = client.call(empty_read, FETCH_VERSION, FetchResponse)
        if found.responses and found.responses[0].partitions[0].error_code == 0:
            return
        time.sleep(0.02)
    raise AssertionError(f"{name} has no leader: {found}")


def delete_topic(client: RawClient, name: str) -> None:
    request = DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000)
    answer = client.call(request, 4, DeleteTopicsResponse)
    assert answer.responses[0].error_code == 0, answer


def make_batch(
    batch_bytes: int, record_bytes: int, compression: Compression = Compression.NONE
) -> tuple[bytes, int]:
    """A batch of about this size before compression, and how many records are in it."""
    builder = BatchBuilder()
    value = bytes(i * 7 % 251 for i in range(max(1, record_bytes - 16)))
    timestamp = int(time.time() * 1000)
    while builder.count == 0 or builder.size + record_bytes <= batch_bytes:
        builder.append(timestamp, None, value)
    return bytes(builder.build(compression=compression)), builder.count


# --- loads ----------------------------------------------------------------------------------------


class Produce:
    """The same batch again and again; each reply must carry the next offset and no error."""

    def __init__(self, topic: str, batch: bytes, records: int, acks: int = 1) -> None:
        self.payload_bytes = len(batch)
        self._records = records
        self._next_offset = 0
        partition = ProduceRequest.PartitionData(index=0, records=batch)
        topic_data = ProduceRequest.TopicData(name=topic, partition_data=[partition])
        request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic_data])
        self.frame = frame_of(request, PRODUCE_VERSION, 0)
        # tags, two array sizes of one byte, the name and its size; index and error come before it
        self.offset_at = 4 + 1 + 1 + 1 + len(topic.encode()) + 1 + 4 + 2

    def request(self, number: int) -> tuple[bytes | memoryview, ...]:
        return self.frame[:8], number.to_bytes(4, "big"), memoryview(self.frame)[12:]

    def check(self, number: int, reply: memoryview) -> int:
        """The payload that this reply acknowledges; AssertionError when it does not."""
        at = self.offset_at
        error, base_offset = struct.unpack_from(">hq", reply, at - 2)
        if error or base_offset != self._next_offset:
            if number == 0 and not error:
                self._next_offset = base_offset  # the topic was not empty
            else:
                answer = decode_reply(reply, ProduceResponse, PRODUCE_VERSION)
                raise AssertionError(f"expected offset {self._next_offset}: {answer}")
        self._next_offset += self._records
        return self.payload_bytes


class Fetch:
    """So many whole batches per request, round and round a topic that was filled before."""

    def __init__(
        self, topic: str, batch_bytes: int, records: int, batches: int, topic_batches: int
    ) -> None:
        self._topic = topic
        self._step = records * batches
        self._positions = max(1, topic_batches // batches)
        self._payload = batch_bytes * batches
        self._frames = [
            frame_of(fetch_request(topic, 0, i * self._step, self._payload), FETCH_VERSION, 0)
            for i in range(self._positions)
        ]

    def request(self, number: int) -> tuple[bytes | memoryview, ...]:
        frame = self._frames[number % self._positions]
        return frame[:8], number.to_bytes(4, "big"), frame[12:]

    def check(self, number: int, reply: memoryview) -> int:
        offset = number % self._positions * self._step
        if number % CHECKSUM_EVERY and len(reply) >= self._payload:
            self._check_place(reply, offset)
        else:
            self._check_in_full(reply, offset)
        return self._payload

    def _check_place(self, reply: memoryview, offset: int) -> None:
        """No error, and the batch that was asked for begins where it must."""
        start = len(reply) - self._payload - 3  # three empty sections of tags come last
        base_offset, length, _, magic, _ = _BATCH.unpack_from(reply, start)
        (error,) = struct.unpack_from(">h", reply, 9)
        if error or base_offset != offset or magic != 2 or length <= 0:
            self._check_in_full(reply, offset)

    def _check_in_full(self, reply: memoryview, offset: int) -> None:
        answer = decode_reply(reply, FetchResponse, FETCH_VERSION)
        assert answer.error_code == 0, answer
        (partition,) = answer.responses[0].partitions
        assert partition.error_code == 0, answer
        records = partition.records
        assert records is not None
        position = 0
        while position < len(records):
            base_offset, length, _, magic, checksum = _BATCH.unpack_from(records, position)
            assert base_offset == offset or position, (base_offset, offset)
            assert magic == 2
            end = position + _BATCH_OVERHEAD + length
            assert checksum == crc32c(records[position + _CHECKED_FROM : end])
            position = end
        assert position == self._payload, f"{position} bytes instead of {self._payload}"


def fetch_request(topic: str, partition: int, offset: int, max_bytes: int) -> FetchRequest:
    """One partition, without a session and without waiting."""
    wanted = FetchRequest.Partition(
        partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=REPLY_BYTES // 2,
        session_epoch=-1,
        topics=[FetchRequest.Topic(topic=topic, partitions=[wanted])],
    )


def run(
    client: RawClient,
    load: Produce | Fetch,
    *,
    in_flight: int,
    seconds: float = 0.0,
    requests: int = 0,
) -> Result:
    """Keeps so many requests in flight for a time or a number of requests, then waits for all."""
    result = Result()
    clock = time.perf_counter
    begun: deque[float] = deque()
    started = clock()
    end = started + seconds
    number = 0
    while True:
        now = clock()
        may_send = number < requests if requests else now < end
        if may_send and len(begun) < in_flight:
            begun.append(now)
            client.send(*load.request(number))
            number += 1
            continue
        if not begun:
            break
        reply = client.receive()
        result.latencies.append(clock() - begun.popleft())
        if struct.unpack_from(">i", reply)[0] != result.requests & 0x7FFFFFFF:
            raise AssertionError("replies are out of order")
        result.payload_bytes += load.check(result.requests, reply)
        result.requests += 1
    result.seconds = clock() - started
    return result
