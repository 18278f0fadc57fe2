"""Batches and message sets of given records, conversions between them and looks at them, each in
one go."""

from collections.abc import Iterable
from typing import Any

from kafkalite.env.slicing import finish
from kafkalite.records.batch import NO_TIMESTAMP, BatchHeader, Buffer, Compression, TimestampType
from kafkalite.records.convert import (
    Converted,
    Wanted,
    down_convert_in_steps,
    up_convert_in_steps,
)
from kafkalite.records.full_check import ANYTHING, BatchSummary, RecordRules, scan_in_steps
from kafkalite.records.legacy import MessageSet
from kafkalite.records.record import BatchBuilder, Record


def build_batch(records: Iterable[Record], **fields: Any) -> bytearray:
    """A batch of these records at the offsets they have; `fields` are those of build().

    The base offset is that of the first record unless it is given.
    """
    given = list(records)
    base_offset = fields.pop("base_offset", given[0].offset if given else 0)
    builder = BatchBuilder(fields.pop("delete_horizon_ms", None))
    for record in given:
        builder.append(
            record.timestamp,
            record.key,
            record.value,
            record.headers,
            record.offset - base_offset,
        )
    return builder.build(base_offset, **fields)


def scan(buffer: Buffer, header: BatchHeader, rules: RecordRules = ANYTHING) -> BatchSummary:
    return finish(scan_in_steps(buffer, header, rules))


def build_message_set(
    records: Iterable[Record],
    magic: int,
    compression: int = Compression.NONE,
    *,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    append_time: int = NO_TIMESTAMP,
    level: int | None = None,
) -> bytearray:
    """The records at their offsets: one message each, or one wrapper. Headers are left out.

    No records, no bytes. Raises RecordsTooLarge behind MAX_SET_BYTES.
    """
    messages = MessageSet(
        magic, compression, timestamp_type=timestamp_type, append_time=append_time, level=level
    )
    for record in records:
        messages.add(record)
    return messages.finish()


def up_convert(sent: bytes | bytearray, wanted: Wanted) -> Converted:
    return finish(up_convert_in_steps(sent, wanted))


def down_convert(stored: bytes | bytearray, magic: int, fetch_offset: int = 0) -> bytearray:
    return finish(down_convert_in_steps(stored, magic, fetch_offset))
