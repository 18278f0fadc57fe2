"""Whether the records of an uncompressed batch are all whole, as fast as Python can tell.

Reads every field of every record, as Apache Kafka does on the way in, and says yes or nothing:
what is odd, though it may be right, is left to full_check.py. Invariant: what is taken here is
taken there, with dense offsets and the same highest timestamp.

Records that are laid out alike lie at equal distances, so one slice with a step reads the same
field of all of them: many records of one size cost little more than one.
"""

from __future__ import annotations

from kafkalite.env.slicing import Steps
from kafkalite.records.errors import InvalidRecords
from kafkalite.records.record import MIN_INT64
from kafkalite.records.varint import ZIGZAG
from kafkalite.records.walks import (
    HIGH_OFFSET_BYTES,
    LOW_OFFSET_BYTES,
    ONE_BYTE_OFFSETS,
    THREE_BYTE_OFFSETS,
    TWO_BYTE_OFFSETS,
    read_fields,
    walk_dense,
)

# Fewer records alike are read one by one.
MIN_RUN = 8
# Records that are read one by one between two steps.
STEP_RECORDS = 1024

# The first two of three bytes; the third changes when these begin again.
_LOW_OF_3 = bytes(delta << 1 & 0x7F | 0x80 for delta in range(TWO_BYTE_OFFSETS))
_MIDDLE_OF_3 = bytes(delta >> 6 | 0x80 for delta in range(TWO_BYTE_OFFSETS))
# A timestamp delta of one byte, moved up so that it is no negative number.
_RISEN = bytes(ZIGZAG[byte & 0x7F] + 64 for byte in range(256))


def highest_delta(data: bytes | memoryview, count: int) -> int | None:
    """The highest timestamp delta of so many records that fill `data`, of one at least.

    None unless they are whole, without headers, and at the offsets 0, 1, 2, …
    Of a view every record is read one by one: for few, which are not worth a copy.
    """
    position = index = 0
    highest = MIN_INT64
    try:
        while count - index >= MIN_RUN and isinstance(data, bytes):
            run, stride, delta = _run(data, position, index, count)
            if not run:
                break
            index += run
            position += run * stride
            highest = max(highest, delta)
        position, highest = walk_dense(data, position, index, count, highest)
    except (IndexError, InvalidRecords):
        return None
    return highest if position == len(data) else None


def highest_delta_in_steps(data: bytes, count: int) -> Steps[int | None]:
    """The same for many records, among which there may be runs of some that are alike."""
    position = index = 0
    highest = MIN_INT64
    try:
        while index < count:
            run, stride, delta = _run(data, position, index, count)
            if run:
                index += run
                position += run * stride
                highest = max(highest, delta)
            else:
                last = min(count, index + STEP_RECORDS)
                position, highest = walk_dense(data, position, index, last, highest)
                if position < 0:
                    return None
                index = last
            yield
    except (IndexError, InvalidRecords):
        return None
    return highest if position == len(data) else None


def _run(data: bytes, start: int, index: int, count: int) -> tuple[int, int, int]:
    """How many records from `start` on are laid out like the first, their distance and their
    highest timestamp delta; 0 of them when it is not worth a look."""
    end, delta, offset_delta, key_at, key_length, value_at, value_length = read_fields(
        data, start, len(data)
    )
    if end < 0 or offset_delta != index or data[end - 1] or index >= THREE_BYTE_OFFSETS:
        return 0, 0, 0
    if value_at + max(value_length, 0) + 1 != end:
        return 0, 0, 0
    stride = end - start
    most = min(count, _width_ends(index)) - index
    lengths = data[start : start + most * stride : stride]
    run = len(lengths) - len(lengths.lstrip(lengths[:1]))
    run = min(run, (len(data) - start) // stride)
    if run < MIN_RUN:
        return 0, 0, 0
    stop = start + run * stride
    body = start + (1 if data[start] < 0x80 else 2)
    if data[body - 1] >= 0x80:  # a larger record: there are few of them in a batch
        return 0, 0, 0
    deltas = data[body + 1 : stop : stride]
    if not deltas.isascii():  # some take more than one byte
        return 0, 0, 0
    key_length_at = body + 2
    for offsets in _offset_columns(index, run):
        if data[key_length_at:stop:stride] != offsets:
            return 0, 0, 0
        key_length_at += 1
    key_end = key_at + max(key_length, 0)
    same = [*range(start + 1, body), *range(key_length_at, key_at), *range(key_end, value_at)]
    for column in (*same, end - 1):
        if data[column:stop:stride] != data[column : column + 1] * run:
            return 0, 0, 0
    if deltas != deltas[:1] * run:
        delta = max(deltas.translate(_RISEN)) - 64
    return run, stride, delta


def _width_ends(index: int) -> int:
    """The first offset delta whose columns begin anew."""
    if index < ONE_BYTE_OFFSETS:
        return ONE_BYTE_OFFSETS
    return (index // TWO_BYTE_OFFSETS + 1) * TWO_BYTE_OFFSETS


def _offset_columns(index: int, run: int) -> tuple[bytes, ...]:
    """The bytes of so many offset deltas from one on, those of the same place together."""
    if index < ONE_BYTE_OFFSETS:
        return (LOW_OFFSET_BYTES[index : index + run],)
    if index < TWO_BYTE_OFFSETS:
        return LOW_OFFSET_BYTES[index : index + run], HIGH_OFFSET_BYTES[index : index + run]
    first = index % TWO_BYTE_OFFSETS
    third = bytes((index >> 13,)) * run
    return _LOW_OF_3[first : first + run], _MIDDLE_OF_3[first : first + run], third
