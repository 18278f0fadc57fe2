"""librdkafka's own mock broker as a store of batches: what it is given is fetched as it was.

A batch that librdkafka produced can so be looked at, and one of ours be put before its consumer.
"""

import socket
import struct
from itertools import count
from typing import Any

from confluent_kafka import Producer

from kafkalite.protocol import codec
from kafkalite.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ProduceResponse,
)
from kafkalite.records import batch

TIMEOUT_S = 10.0
PRODUCE_VERSION = 7
FETCH_VERSION = 11
MAX_BYTES = 10_000_000


class MockBroker:
    """The mock cluster lives as long as the client that started it."""

    def __init__(self) -> None:
        self._owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._owner.list_topics(timeout=TIMEOUT_S).brokers.values()
        self.address = (broker.host, broker.port)
        self.bootstrap = f"{broker.host}:{broker.port}"

    def create(self, topic: str) -> None:
        self._owner.list_topics(topic, timeout=TIMEOUT_S)

    def put(self, topic: str, records: bytes) -> None:
        partition = ProduceRequest.PartitionData(index=0, records=records)
        data = ProduceRequest.TopicData(name=topic, partition_data=[partition])
        request = ProduceRequest(acks=1, timeout_ms=1_000, topic_data=[data])
        reply = self._ask(request, ProduceResponse, PRODUCE_VERSION)
        assert reply.responses[0].partition_responses[0].error_code == 0

    def fetch_all(self, topic: str, record_count: int) -> bytes:
        """Every batch; the mock broker gives one at a time."""
        batches = bytearray()
        offset = 0
        while offset < record_count:
            fetched = self._fetch(topic, offset)
            offset = batch.read_header(fetched).next_offset
            batches += fetched
        return bytes(batches)

    def _fetch(self, topic: str, offset: int) -> bytes:
        partition = FetchRequest.Partition(
            partition=0, fetch_offset=offset, partition_max_bytes=MAX_BYTES
        )
        wanted = FetchRequest.Topic(topic=topic, partitions=[partition])
        request = FetchRequest(
            max_wait_ms=100, min_bytes=1, max_bytes=MAX_BYTES, session_epoch=-1, topics=[wanted]
        )
        reply = self._ask(request, FetchResponse, FETCH_VERSION)
        return bytes(reply.responses[0].partitions[0].records)

    def _ask(self, request: Any, reply: type[Any], version: int) -> Any:
        correlation_id = next(_CORRELATION_IDS)
        header = struct.pack(">hhih", request.API_KEY, version, correlation_id, -1)
        frame = header + codec.encode(request, version)
        with socket.create_connection(self.address, TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            (size,) = struct.unpack(">i", _receive(connection, 4))
            answer = _receive(connection, size)
        assert struct.unpack_from(">i", answer) == (correlation_id,)
        return codec.decode(reply, version, answer, 4)


_CORRELATION_IDS = count(1)


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = connection.recv(size - len(received))
        assert chunk, "the mock broker closed the connection"
        received += chunk
    return bytes(received)
