"""Records of four client libraries are read here as they were written, and ours are read there."""

import random
import struct
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from crc32c import crc32c

from kafkalite.records import batch
from kafkalite.records.batch import Compression, TimestampType
from kafkalite.records.control import (
    ControlType,
    EndTransactionMarker,
    build_marker_batch,
    read_batch_marker,
)
from kafkalite.records.convert import Wanted, iterate_any
from kafkalite.records.errors import CorruptRecords
from kafkalite.records.record import Record
from tests.compat.java_classes import compile_classes
from tests.compat.librdkafka_mock import MockBroker
from tests.compat.records_bridge import SOURCE, JavaError, RecordsBridge
from tests.unit.records.building import build_batch, build_message_set, down_convert, up_convert

JAVA_VERSIONS = ("0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2", "3.9.2", "4.3.1")
NEWEST_MAGIC = {"0.9.0.1": 0, "0.10.2.2": 1}
WITH_ZSTD = ("2.8.2", "3.9.2", "4.3.1")
CLIENT_TIMEOUT_S = 20.0
WITH_DOWN_CONVERSION = ("1.1.1", "2.8.2", "3.9.2")


def sample(magic: int, seed: int = 1) -> list[Record]:
    """Records large and small, with every field set and unset, as far as the format has it."""
    dice = random.Random(seed)
    records = []
    for index in range(200):
        headers = tuple(
            (f"h{number}".encode(), dice.choice([None, b"", dice.randbytes(5)]))
            for number in range(index % 4)
        )
        value = dice.choice([None, b"", dice.randbytes(20), b"text " * dice.randrange(2_000)])
        key = dice.choice([None, b"", b"key%d" % index])
        timestamp = -1 if magic == 0 else 1_700_000_000_000 + dice.randrange(-(10**9), 10**9)
        records.append(Record(index, timestamp, key, value, headers if magic == 2 else ()))
    return records


def read_all(buffer: bytes | bytearray) -> list[Record]:
    result: list[Record] = []
    for header in batch.iterate_headers(buffer):
        batch.verify(buffer, header)
        result.extend(iterate_any(buffer, header))
    return result


def build(records: list[Record], magic: int, codec: int) -> bytes:
    if magic == 2:
        return bytes(build_batch(records, compression=codec))
    return bytes(build_message_set(records, magic, codec))


def cases(version: str) -> Iterator[tuple[int, Compression]]:
    for magic in range(NEWEST_MAGIC.get(version, 2) + 1):
        for codec in Compression:
            if codec != Compression.ZSTD or (magic == 2 and version in WITH_ZSTD):
                yield magic, codec


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records-bridge")
    compile_classes([SOURCE], folder, ["kafka-clients-4.3.1"])
    return folder


@pytest.fixture(params=JAVA_VERSIONS)
def bridge(request: pytest.FixtureRequest, classes: Path) -> Iterator[RecordsBridge]:
    bridge = RecordsBridge(classes, request.param)
    yield bridge
    bridge.close()


def test_java_batches_are_read_and_ours_are_read_by_java(bridge: RecordsBridge) -> None:
    for magic, codec in cases(bridge.version):
        records = sample(magic)
        theirs = bridge.write(records, magic, codec)
        assert read_all(theirs) == records, (magic, codec)
        ours = build(records, magic, codec)
        assert bridge.read(ours) == records, (magic, codec)
        if codec == Compression.NONE:
            assert ours == theirs, magic
        _check_up_conversion(theirs, records, codec)
    if bridge.version in WITH_DOWN_CONVERSION:
        _check_down_conversion(bridge)
    if bridge.version not in NEWEST_MAGIC:
        _check_append_time(bridge)
        _check_producer(bridge)
        _check_markers(bridge)


def _check_up_conversion(sent: bytes, records: list[Record], codec: Compression) -> None:
    converted = up_convert(sent, Wanted(base_offset=0))
    assert batch.read_header(converted.batch).compression == codec
    assert read_all(converted.batch) == records


def _check_down_conversion(bridge: RecordsBridge) -> None:
    """Byte for byte where nothing is compressed; record for record where deflaters differ."""
    records = sample(2)
    for magic in (0, 1):
        for codec in (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4):
            stored = bridge.write(records, 2, codec)
            theirs = bridge.down_convert(stored, magic, 7)
            ours = bytes(down_convert(stored, magic, 7))
            assert read_all(ours) == bridge.read(theirs), (magic, codec)
            if codec == Compression.NONE:
                assert ours == theirs


def _check_append_time(bridge: RecordsBridge) -> None:
    for magic in (1, 2):
        for codec in (Compression.NONE, Compression.GZIP):
            records = sample(magic)
            theirs = bridge.write(records, magic, codec, append_time=5_000)
            for record in records:
                record.timestamp = 5_000
            assert read_all(theirs) == records
            header = batch.read_header(theirs)
            assert header.timestamp_type == TimestampType.LOG_APPEND_TIME


def _check_producer(bridge: RecordsBridge) -> None:
    records = sample(2)
    theirs = bridge.write(
        records, 2, 0, producer=(77, 3, 2**31 - 5), is_transactional=True, leader_epoch=9
    )
    assert theirs == build_batch(
        records,
        producer_id=77,
        producer_epoch=3,
        base_sequence=2**31 - 5,
        is_transactional=True,
        partition_leader_epoch=9,
    )
    assert batch.read_header(theirs).last_sequence == 194


def _check_markers(bridge: RecordsBridge) -> None:
    for kind in (ControlType.ABORT, ControlType.COMMIT):
        marker = EndTransactionMarker(kind, 11)
        theirs = bridge.marker(marker.is_commit, 11, 50, 1_000)
        assert theirs == build_marker_batch(
            marker,
            producer_id=7,
            producer_epoch=3,
            timestamp=1_000,
            base_offset=50,
            partition_leader_epoch=4,
        )
        assert read_batch_marker(theirs, batch.read_header(theirs)) == marker


def test_java_notices_a_flipped_bit(classes: Path) -> None:
    """The bridge is not blind: it reads nothing out of a damaged batch."""
    bridge = RecordsBridge(classes, "4.3.1")
    damaged = bytearray(build(sample(2), 2, 0))
    damaged[-1] ^= 1
    with pytest.raises(JavaError, match="Corrupt"):
        bridge.read(bytes(damaged))
    bridge.close()


# Neither library has LZ4 with the wrong checksum of magic 0; Java's clients above have.
PYTHON_CASES = [
    (magic, codec)
    for magic in (0, 1, 2)
    for codec in Compression
    if magic == 2 or (codec != Compression.ZSTD and (magic, codec) != (0, Compression.LZ4))
]


@pytest.mark.parametrize("library", ["kafka", "aiokafka"])
@pytest.mark.parametrize(("magic", "codec"), PYTHON_CASES)
def test_python_batches_are_read_and_ours_are_read_by_python(
    library: str, magic: int, codec: Compression
) -> None:
    default = import_module(f"{library}.record.default_records")
    legacy = import_module(f"{library}.record.legacy_records")
    memory = import_module(f"{library}.record.memory_records")
    records = sample(magic)
    if magic == 2:
        builder = default.DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    else:
        builder = legacy.LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for record in records:
        headers = [(key.decode(), value) for key, value in record.headers]
        timestamp = record.timestamp if magic else None
        assert builder.append(record.offset, timestamp, record.key, record.value, headers)
    assert read_all(bytes(builder.build())) == records

    theirs = memory.MemoryRecords(build(records, magic, codec))
    read: list[Record] = []
    while (found := theirs.next_batch()) is not None:
        assert found.validate_crc()
        read.extend(_from_python(record) for record in found)
    assert read == records


def _from_python(record: Any) -> Record:
    timestamp = -1 if record.timestamp is None else record.timestamp
    headers = tuple((key.encode(), value) for key, value in record.headers or ())
    return Record(record.offset, timestamp, record.key, record.value, headers)


@pytest.fixture(scope="module")
def mock() -> MockBroker:
    return MockBroker()


@pytest.mark.parametrize("codec", Compression)
def test_librdkafka_batches_are_read_and_ours_are_read_by_librdkafka(
    mock: MockBroker, codec: Compression
) -> None:
    theirs, ours = f"theirs-{codec.name}", f"ours-{codec.name}"
    records = sample(2)
    mock.create(theirs)
    mock.create(ours)
    _produce(mock, theirs, records, codec)
    fetched = mock.fetch_all(theirs, len(records))
    # A batch that compression would not make smaller is sent as it is, so only most are packed.
    assert codec in {header.compression for header in batch.iterate_headers(fetched)}
    assert read_all(fetched) == records

    mock.put(ours, build(records, 2, codec))
    assert _consume(mock, ours, len(records)) == records


def _produce(mock: MockBroker, topic: str, records: list[Record], codec: Compression) -> None:
    producer = Producer(
        {
            "bootstrap.servers": mock.bootstrap,
            "compression.codec": codec.name.lower(),
            "linger.ms": 200,
            "batch.num.messages": 100,
        }
    )
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=0,
            timestamp=record.timestamp,
            headers=[(key.decode(), value) for key, value in record.headers],
        )
    assert producer.flush(CLIENT_TIMEOUT_S) == 0


def _consume(mock: MockBroker, topic: str, count: int) -> list[Record]:
    settings = {"bootstrap.servers": mock.bootstrap, "group.id": "readers", "check.crcs": True}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, CLIENT_TIMEOUT_S)
    consumer.close()
    return [
        Record(
            message.offset(),
            message.timestamp()[1],
            message.key(),
            message.value(),
            tuple((key.encode(), value) for key, value in message.headers() or ()),
        )
        for message in messages
    ]


MUTATIONS = 1_000


def test_java_and_we_agree_on_damaged_batches(classes: Path) -> None:
    """Batches with a right checksum and wrong bytes: read alike, or refused by both.

    The one exception: LZ4 frames of a shape that no writer makes, which the LZ4 library refuses
    and Java's reader lets through.
    """
    bridge = RecordsBridge(classes, "4.3.1")
    refused = 0
    for seed in range(MUTATIONS):
        damaged = _damaged(seed)
        ours, theirs = _read_ours(damaged), _read_theirs(bridge, damaged)
        if ours is None:
            refused += 1
            is_lz4 = batch.read_header(damaged).compression == Compression.LZ4
            assert theirs is None or is_lz4, seed
        else:
            assert ours == theirs, seed
    bridge.close()
    assert MUTATIONS // 2 < refused < MUTATIONS


def _damaged(seed: int) -> bytes:
    dice = random.Random(seed)
    records = [
        Record(i, 1_000 + 7 * i, b"k" * i or None, b"v" * i * 9, ((b"h", b"w"),) * (i % 3))
        for i in range(6)
    ]
    built = build_batch(records, compression=seed % 5)
    for _ in range(dice.randint(1, 3)):
        first = batch.HEADER_BYTES if dice.random() < 0.8 else batch.ATTRIBUTES_POSITION
        at = dice.randrange(first, len(built))
        built[at] = dice.choice([dice.randrange(256), built[at] ^ 1 << dice.randrange(8), 255, 0])
    if dice.random() < 0.2:
        del built[dice.randrange(batch.HEADER_BYTES, len(built)) :]
        struct.pack_into(">i", built, 8, len(built) - batch.LOG_OVERHEAD)
    crc = crc32c(bytes(built[batch.ATTRIBUTES_POSITION :]))
    struct.pack_into(">I", built, batch.CRC_POSITION, crc)
    return bytes(built)


def _read_ours(buffer: bytes) -> list[Record] | None:
    try:
        return _without_keys_of_headers(read_all(buffer))
    except CorruptRecords:
        return None


def _read_theirs(bridge: RecordsBridge, buffer: bytes) -> list[Record] | None:
    try:
        return _without_keys_of_headers(bridge.read(buffer))
    except JavaError:
        return None


def _without_keys_of_headers(records: list[Record]) -> list[Record]:
    """Java replaces what is no UTF-8 in them."""
    for record in records:
        record.headers = tuple((b"", value) for _, value in record.headers)
    return records
