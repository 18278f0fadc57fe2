"""The ways between the formats, as Apache Kafka 3.9 walked them.

Up: what an old producer sends becomes one batch v2, since the log keeps no other format. Down:
what an old consumer fetches becomes the format that its version of Fetch knows. The same builds
a batch anew whose codec is not the topic's. Keys, values, offsets and timestamps never change;
going down, headers are lost, and control batches, which magic 0 and 1 cannot say, are left out.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from kafkalite.env.dataclasses import dataclass, field
from kafkalite.env.slicing import Steps
from kafkalite.records import down_convert, full_check, legacy, record
from kafkalite.records.batch import (
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    Compression,
    TimestampType,
    codec,
    iterate_headers,
)
from kafkalite.records.errors import InvalidRecords, RecordsTooLarge, UnsupportedCodec
from kafkalite.records.full_check import (
    STEP_RECORDS,
    BadRecord,
    RecordRules,
    check_record_count,
    judge,
    note,
)
from kafkalite.records.record import BatchBuilder, Record

# What a rebuilt batch may hold before it is compressed. Converting needs all of it in memory.
MAX_CONVERTED_BYTES = 128 * 1024 * 1024


@dataclass(slots=True)
class Wanted:
    """How a batch is to be built; compression None keeps the producer's codec, append_time sets
    every timestamp."""

    base_offset: int = 0
    partition_leader_epoch: int = NO_LEADER_EPOCH
    compression: Compression | None = None
    level: int | None = None
    append_time: int | None = None
    rules: RecordRules = field(default_factory=RecordRules)


@dataclass(slots=True)
class Converted:
    """One batch v2 made of what a producer sent; without a batch when records are bad."""

    batch: bytearray
    record_count: int
    max_timestamp: int
    bad: list[BadRecord] = field(default_factory=list)


def iterate_any(buffer: Buffer, header: BatchHeader) -> Iterator[Record]:
    """The records of a batch of whichever format."""
    if header.magic == 2:
        return record.iterate_records(buffer, header)
    return legacy.iterate_records(buffer, header)


def iterate_times(
    buffer: Buffer, header: BatchHeader
) -> Generator[tuple[int, int] | None, None, None]:
    """Offset and timestamp of each record of whichever format, and None now and then, where it is
    time to give way."""
    if header.magic == 2:
        yield from full_check.iterate_times(buffer, header)
        return
    for number, each in enumerate(legacy.iterate_records(buffer, header), 1):
        if number % STEP_RECORDS == 0:
            yield None
        yield each.offset, each.timestamp


def up_convert_in_steps(buffer: Buffer, wanted: Wanted) -> Steps[Converted]:
    """What one partition of a Produce holds, of any format, as one batch v2.

    Offsets are given anew and without gaps. Checksums are the caller's to verify before. Gives way
    after some records; the codec's work at the end is one step.
    """
    headers = list(iterate_headers(buffer))
    source = check_one_set(headers)
    builder = BatchBuilder()
    bad: list[BadRecord] = []
    index = 0
    for header in headers:
        for entry in iterate_any(buffer, header):
            note(bad, judge(header, wanted.rules, index, entry.timestamp, entry.key is not None))
            index += 1
            check_record_count(index)
            if not bad:
                builder.append(entry.timestamp, entry.key, entry.value, entry.headers)
            if index % STEP_RECORDS == 0:
                yield
            if builder.size > MAX_CONVERTED_BYTES:
                raise RecordsTooLarge(f"more than {MAX_CONVERTED_BYTES} bytes to convert")
    if bad:
        return Converted(bytearray(), index, NO_TIMESTAMP, bad)
    first, append_time = headers[0], wanted.append_time
    batch = builder.build(
        wanted.base_offset,
        wanted.partition_leader_epoch,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        base_sequence=first.base_sequence,
        is_transactional=first.is_transactional,
        compression=source if wanted.compression is None else wanted.compression,
        level=wanted.level,
        timestamp_type=(
            TimestampType.CREATE_TIME if append_time is None else TimestampType.LOG_APPEND_TIME
        ),
        max_timestamp=append_time,
    )
    return Converted(batch, index, builder.max_timestamp if append_time is None else append_time)


def check_one_set(headers: list[BatchHeader]) -> Compression:
    """One format, and one batch unless they are plain messages. Returns the producer's codec."""
    if not headers:
        raise InvalidRecords("no record batch at all")
    magic = headers[0].magic
    source = Compression.NONE
    for header in headers:
        if header.magic != magic:
            raise InvalidRecords(f"magic {header.magic} behind magic {magic}")
        source = codec(header) or source
    if len(headers) > 1 and (magic == 2 or source != Compression.NONE):
        raise InvalidRecords(f"{len(headers)} batches where one is allowed")
    return source


def down_convert_in_steps(buffer: Buffer, magic: int, fetch_offset: int = 0) -> Steps[bytearray]:
    """The whole batches in the buffer as message sets of this magic, giving way after some records.

    Batches of this magic or an older one stay as they are. Records before fetch_offset are left
    out where nothing wraps them: some old clients deliver whatever they are sent. The result is
    empty when there were control batches alone.
    """
    out = bytearray()
    for header in iterate_headers(buffer):
        if header.is_control:
            continue
        used = codec(header)
        if used == Compression.ZSTD:
            raise UnsupportedCodec(f"zstd cannot be converted to magic {magic}")
        if header.magic <= magic:
            out += memoryview(buffer)[header.position : header.end]
        else:
            messages = legacy.MessageSet(
                magic,
                used,
                timestamp_type=header.timestamp_type,
                append_time=header.max_timestamp,
                first_offset=fetch_offset if used == Compression.NONE else 0,
            )
            yield from _add_batch(messages, buffer, header)
            out += messages.finish()
    return out


def _add_batch(messages: legacy.MessageSet, buffer: Buffer, header: BatchHeader) -> Steps[None]:
    if header.magic == 2:
        yield from down_convert.add_batch(messages, buffer, header)
        return
    for number, each in enumerate(legacy.iterate_records(buffer, header), 1):
        if messages.add(each) or number % STEP_RECORDS == 0:
            yield
