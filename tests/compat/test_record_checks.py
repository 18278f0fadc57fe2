"""Batches with something wrong inside: kafkalite takes nothing that Apache Kafka refuses.

The checksum is right in all of them, so each broker has to read the records to know. Apache Kafka
never compares the length of a compressed record with its fields, and so takes some that no consumer
can read afterwards; kafkalite refuses these.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from crc32c import crc32c

from bench.raw_client import PRODUCE_VERSION, RawClient, make_topic
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ProduceRequest, ProduceResponse
from kafkalite.records import compression
from kafkalite.records.batch import (
    ATTRIBUTES_POSITION,
    CRC,
    CRC_POSITION,
    HEADER_BYTES,
    read_header,
)
from kafkalite.records.errors import CorruptRecords
from kafkalite.records.record import BatchBuilder
from tests.compat import brokers
from tests.unit.records.building import scan
from tests.unit.records.mutations import mutated

BASE = 1_600_000_000_000
SAMPLE, FULL = 400, 6_000
# Apache Kafka's answer where it stumbles: over a stream that cannot be decompressed, and over
# compressed records that it must give other offsets. It makes idempotent producers duplicate;
# kafkalite never gives it for what a peer sent: it refuses the former and mends the latter.
NAMELESS = Error.UNKNOWN_SERVER_ERROR

Peers = tuple[RawClient, RawClient]


@pytest.fixture
def peers(run_folder: Path) -> Iterator[Peers]:
    ours, theirs = (brokers.shared(kind, run_folder) for kind in brokers.BROKERS)
    clients = RawClient(ours.host, ours.port), RawClient(theirs.host, theirs.port)
    with closing(clients[0]), closing(clients[1]):
        yield clients


def random_batch(chance: random.Random) -> bytearray:
    """Few records of many kinds or many of one kind, as producers send them."""
    builder = BatchBuilder()
    is_uniform = chance.random() < 0.5
    size, key = chance.choice((0, 5, 60, 100, 200)), chance.choice((None, b"", b"key"))
    for index in range(chance.choice((9, 20, 63, 64, 65, 90)) if is_uniform else 4):
        if not is_uniform:
            size, key = chance.randrange(200), chance.choice((None, b"", b"k" * 70))
        headers = [("h", chance.choice((None, b"x")))] if chance.random() < 0.1 else []
        builder.append(BASE + index * chance.randrange(3), key, b"v" * size, headers)
    return builder.build(0)


def sealed(batch: bytearray, codec: int) -> bytes:
    """With its records in a codec, and a checksum that fits."""
    body = bytes(compression.compress(codec, bytes(batch[HEADER_BYTES:])))
    batch = batch[:HEADER_BYTES] + body
    batch[ATTRIBUTES_POSITION + 1] |= codec
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    CRC.pack_into(batch, CRC_POSITION, crc32c(bytes(batch[ATTRIBUTES_POSITION:])))
    return bytes(batch)


def answer(peer: RawClient, topic: str, batch: bytes) -> Error:
    partition = ProduceRequest.PartitionData(index=0, records=batch)
    data = ProduceRequest.TopicData(name=topic, partition_data=[partition])
    request = ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[data])
    reply = peer.call(request, PRODUCE_VERSION, ProduceResponse)
    return Error(reply.responses[0].partition_responses[0].error_code)


def needs_offsets(batch: bytes) -> bool:
    """Whether the records are whole, but not at the offsets 0, 1, 2, …"""
    try:
        return not scan(batch, read_header(batch)).is_dense
    except CorruptRecords:
        return False


@pytest.mark.parametrize(
    ("seed", "count"), [(1, SAMPLE), pytest.param(2, FULL, marks=pytest.mark.full)]
)
def test_changed_records_are_refused_where_apache_kafka_refuses_them(peers, seed, count):
    ours, theirs = peers
    topic = f"record-checks-{uuid.uuid4().hex[:8]}"
    for peer in peers:
        make_topic(peer, topic)
    chance = random.Random(seed)
    seen: Counter[Error] = Counter()
    for number in range(count):
        codec = chance.choice((0, 0, 0, 1, 2, 3, 4))
        batch = sealed(mutated(random_batch(chance), chance), codec)
        expected, found = answer(theirs, topic, batch), answer(ours, topic, batch)
        seen[expected] += 1
        allowed = {expected}
        if expected == NAMELESS:
            allowed = {Error.NONE if needs_offsets(batch) else Error.INVALID_RECORD}
        elif expected == Error.NONE and codec:
            allowed.add(Error.INVALID_RECORD)
        assert found in allowed, f"batch {number}: {expected.name}, {batch.hex()}"
    assert seen[Error.NONE] > count // 20
    assert seen[Error.INVALID_RECORD] > count // 5
