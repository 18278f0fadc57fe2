"""The loops over records of batch v2 that decode numbers in line, one for each of who reads them.

Owns how a record is laid out: length, attributes, timestamp delta, offset delta, key, value and
headers, each number a zigzag varint, of one or two bytes in nearly every record. A call for each
number costs several times what all else does, and so does what nobody asked for: hence more than
one, and none elsewhere. Invariant: two of them say the same of a record; tests hold all to
`read_fields`.

| walk              | whose                           | records                          |
| ----------------- | ------------------------------- | -------------------------------- |
| `read_fields`     | `record`, `full_check`, a run's | any: all but headers             |
| `lone_delta`      | Produce: a batch of one         | no headers: time, if it is whole |
| `walk_dense`      | Produce: by `quick_check`       | the same, no offset left out     |
| `pieces_of`       | compaction: any batch           | any: key, time, has it a value   |
| `keys_one_by_one` | compaction: nearly all          | dense, short keys: the keys      |
| `pieces_at`       | compaction: the few it keeps    | the same: time, has it a value   |
| `_starts_of`      | for it                          | the same: where each begins      |
| `values_of`       | clients that print              | no headers: the value            |
"""

from __future__ import annotations

from kafkalite.records.errors import InvalidRecords
from kafkalite.records.varint import ZIGZAG, read_varint, read_varlong

_CUT = (-1, 0, 0, 0, 0, 0, 0)

# Offset deltas of one byte end here, then those of two and three.
ONE_BYTE_OFFSETS = 1 << 6
TWO_BYTE_OFFSETS = 1 << 13
THREE_BYTE_OFFSETS = 1 << 20
# The first byte of an offset delta of one byte or two, and the second.
LOW_OFFSET_BYTES = bytes(
    delta << 1 if delta < ONE_BYTE_OFFSETS else delta << 1 & 0x7F | 0x80
    for delta in range(TWO_BYTE_OFFSETS)
)
HIGH_OFFSET_BYTES = bytes(delta >> 6 for delta in range(TWO_BYTE_OFFSETS))
_ODD = (-1, 0)

# The bytes of a record, its length among them, by that length: 0, which leads nowhere, for one that
# is negative. Lengths of one and of two bytes.
SMALL = tuple(0 if byte & 1 else 1 + (byte >> 1) for byte in range(1 << 7))
LARGE = tuple(0 if number & 1 else 2 + (number >> 1) for number in range(1 << 14))
IS_LONG = 0x80  # in the first byte of a number that has more
NO_SHORT_KEY = 0x81  # in the length of a key that is null or has 64 bytes

# Offset delta, key, whether there is a value, timestamp delta, start and end in the body.
Piece = tuple[int, bytes | None, bool, int, int, int]


def read_fields(data: bytes, position: int, size: int) -> tuple[int, int, int, int, int, int, int]:
    """End, timestamp delta, offset delta, then position and length of the key and of the value.

    The hot part of reading: numbers of one and two bytes, nearly all there are, are decoded in
    line. A length below 0 means null. An end below 0 means that the record is not whole in the
    first `size` bytes of data. A field that runs over its record's end is found by the caller,
    who compares positions at last; one that runs over data's end raises IndexError.
    """
    try:
        if (byte := data[position]) < 0x80:
            position += 1
            end = position + ZIGZAG[byte]
        elif (second := data[position + 1]) < 0x80:
            position += 2
            end = position + ZIGZAG[byte & 0x7F | second << 7]
        else:
            end, position = read_varint(data, position)
            end += position
    except IndexError:
        return _CUT
    if not position <= end <= size:
        return _CUT
    if (byte := data[position + 1]) < 0x80:  # the attributes before it mean nothing
        position += 2
        timestamp_delta = ZIGZAG[byte]
    elif (second := data[position + 2]) < 0x80:
        position += 3
        timestamp_delta = ZIGZAG[byte & 0x7F | second << 7]
    else:
        timestamp_delta, position = read_varlong(data, position + 1)
    if (byte := data[position]) < 0x80:
        position += 1
        offset_delta = ZIGZAG[byte]
    elif (second := data[position + 1]) < 0x80:
        position += 2
        offset_delta = ZIGZAG[byte & 0x7F | second << 7]
    else:
        offset_delta, position = read_varint(data, position)
    key_length, key_at = (
        (ZIGZAG[byte], position + 1)
        if (byte := data[position]) < 0x80
        else read_varint(data, position)
    )
    position = key_at + key_length if key_length > 0 else key_at
    if (byte := data[position]) < 0x80:
        position += 1
        value_length = ZIGZAG[byte]
    elif (second := data[position + 1]) < 0x80:
        position += 2
        value_length = ZIGZAG[byte & 0x7F | second << 7]
    else:
        value_length, position = read_varint(data, position)
    return end, timestamp_delta, offset_delta, key_at, key_length, position, value_length


# --- is it right ------------------------------------------------------------------------------


def lone_delta(data: memoryview, position: int) -> int | None:  # noqa: C901, numbers in line
    """The timestamp delta of the one record that fills `data` from a position on: what
    `highest_delta` says, where it is not negative."""
    size = len(data)
    try:
        end = data[position]
        position += 1
        if end >= 0x80:
            end = end & 0x7F | data[position] << 7
            position += 1
            if end >= 1 << 14:
                end = end & 0x3FFF | data[position] << 14
                position += 1
        if end != size - position << 1:  # in zigzag; also of four bytes and more
            return None
        delta = data[position + 1]
        position += 2
        if delta < 0x80:
            delta = ZIGZAG[delta]
        else:
            delta, position = read_varlong(data, position - 1)
        if data[position]:
            return None
        length = data[position + 1]  # of the key
        position += 2
        if length >= 0x80:
            length = length & 0x7F | data[position] << 7
            position += 1
        if not length & 1:
            position += length >> 1
        length = data[position]  # of the value
        position += 1
        if length >= 0x80:
            length = length & 0x7F | data[position] << 7
            position += 1
            if length >= 1 << 14:
                length = length & 0x3FFF | data[position] << 14
                position += 1
        if not length & 1:
            position += length >> 1
        if position != size - 1 or data[position] or delta < 0:
            return None
    except (IndexError, InvalidRecords):
        return None
    return delta


def walk_dense(  # noqa: C901, the numbers are decoded in line
    data: bytes | memoryview, position: int, first: int, last: int, highest: int
) -> tuple[int, int]:
    """Where the record before `last` ends, and the highest delta; position -1 when one is odd."""
    seen = -1
    for index in range(first, last):
        if (byte := data[position]) < 0x80:
            end = position + 1 + ZIGZAG[byte]
            position += 2
        elif (second := data[position + 1]) < 0x80:
            end = position + 2 + ZIGZAG[byte & 0x7F | second << 7]
            position += 3
        else:
            length, position = read_varint(data, position)
            end = position + length
            position += 1
        if (byte := data[position]) < 0x80:
            position += 1
            if byte != seen:
                seen = byte
                highest = max(highest, ZIGZAG[byte])
        else:
            delta, position = read_varlong(data, position)
            highest = max(highest, delta)
        if index < ONE_BYTE_OFFSETS:
            if data[position] != index << 1:
                return _ODD
            position += 1
        elif index < TWO_BYTE_OFFSETS:
            if (
                data[position] != LOW_OFFSET_BYTES[index]
                or data[position + 1] != HIGH_OFFSET_BYTES[index]
            ):
                return _ODD
            position += 2
        else:
            delta, position = read_varint(data, position)
            if delta != index:
                return _ODD
        if (byte := data[position]) < 0x80:
            position += 1 if byte & 1 else 1 + (byte >> 1)
        else:
            length, position = read_varint(data, position)
            position += max(length, 0)
        if (byte := data[position]) < 0x80:
            position += 1 if byte & 1 else 1 + (byte >> 1)
        elif (second := data[position + 1]) < 0x80:
            position += 2 if byte & 1 else 2 + ((byte & 0x7F | second << 7) >> 1)
        else:
            length, position = read_varint(data, position)
            position += max(length, 0)
        if data[position] or position + 1 != end:
            return _ODD
        position = end
    return position, highest


# --- what is in it, for compaction --------------------------------------------------------------


def pieces_of(body: bytes, count: int) -> list[Piece]:  # noqa: C901, numbers in line
    """Every record of a body. Varints of one and two bytes, nearly all there are, are in line."""
    pieces: list[Piece] = []
    position, zigzag = 0, ZIGZAG
    try:
        for _ in range(count):
            start = position
            if (byte := body[position]) < 0x80:
                position += 1
                end = position + zigzag[byte]
            elif (second := body[position + 1]) < 0x80:
                position += 2
                end = position + zigzag[byte & 0x7F | second << 7]
            else:
                length, position = read_varint(body, position)
                end = position + length
            position += 1  # the attributes
            if (byte := body[position]) < 0x80:
                timestamp = zigzag[byte]
                position += 1
            elif (second := body[position + 1]) < 0x80:
                timestamp = zigzag[byte & 0x7F | second << 7]
                position += 2
            else:
                timestamp, position = read_varlong(body, position)
            if (byte := body[position]) < 0x80:
                delta = zigzag[byte]
                position += 1
            elif (second := body[position + 1]) < 0x80:
                delta = zigzag[byte & 0x7F | second << 7]
                position += 2
            else:
                delta, position = read_varint(body, position)
            if (byte := body[position]) < 0x80:
                length = zigzag[byte]
                position += 1
            else:
                length, position = read_varint(body, position)
            key = None
            if length >= 0:
                key = body[position : position + length]
                position += length
            pieces.append((delta, key, body[position] & 1 == 0, timestamp, start, end))
            if end <= start:
                raise InvalidRecords(f"a record of {end - start} bytes")
            position = end
    except IndexError:
        raise InvalidRecords("a record ends inside one of its fields") from None
    if position != len(body):
        raise InvalidRecords(f"{len(body) - position} bytes follow the last record")
    return pieces


def keys_one_by_one(body: bytes, count: int) -> list[bytes] | None:
    keys: list[bytes] = []
    add, position, small, large = keys.append, 0, SMALL, LARGE
    for low in LOW_OFFSET_BYTES[:count]:
        if (byte := body[position]) < IS_LONG:
            place = position + 2
            position += small[byte]
        elif (second := body[position + 1]) < IS_LONG:
            place = position + 3
            position += large[byte & 0x7F | second << 7]
        else:
            return None
        while body[place] >= IS_LONG:  # the timestamp delta
            place += 1
        if body[place + 1] != low:
            return None
        place += 3 if low < IS_LONG else 4
        if (length := body[place - 1]) & NO_SHORT_KEY:
            return None
        add(body[place : place + (length >> 1)])
    return keys if position == len(body) else None


def _starts_of(body: bytes, count: int) -> list[int] | None:
    """Where each record begins, and the end of the last."""
    starts: list[int] = []
    add, position, small, large = starts.append, 0, SMALL, LARGE
    for _ in range(count):
        add(position)
        if (byte := body[position]) < IS_LONG:
            position += small[byte]
        elif (second := body[position + 1]) < IS_LONG:
            position += large[byte & 0x7F | second << 7]
        else:
            return None
    add(position)
    return starts if position == len(body) else None


def pieces_at(body: bytes, count: int, deltas: list[int]) -> list[Piece] | None:
    """The pieces of a few of so many records; their keys are not looked at. The deltas rise."""
    if count > TWO_BYTE_OFFSETS:
        return None
    pieces: list[Piece] = []
    last = -1
    try:
        starts = _starts_of(body, count)
        if starts is None:
            return None
        for delta in deltas:
            start = starts[delta]
            place = start + (2 if body[start] < IS_LONG else 3)
            if (byte := body[place]) < IS_LONG:
                timestamp = ZIGZAG[byte]
                place += 1
            else:
                timestamp, place = read_varlong(body, place)
            if body[place] != LOW_OFFSET_BYTES[delta] or delta <= last:
                return None
            last = delta
            place += 1 if delta < ONE_BYTE_OFFSETS else 2
            if (length := body[place]) & NO_SHORT_KEY:
                return None
            place += 1 + (length >> 1)
            pieces.append((delta, None, body[place] & 1 == 0, timestamp, start, starts[delta + 1]))
    except (IndexError, InvalidRecords):
        return None
    return pieces


# --- what is in it, for people ------------------------------------------------------------------


def values_of(  # noqa: C901, numbers in line
    body: bytes, count: int, null: bytes
) -> list[bytes] | None:
    """The value of every record of a body, `null` for none; None where it is not read so: with
    headers, timestamps or offsets of four bytes, or not right. Keys are not looked at."""
    values: list[bytes] = []
    add, position, small, large = values.append, 0, SMALL, LARGE
    try:
        for _ in range(count):
            if (byte := body[position]) < IS_LONG:
                place = position + 2
                position += small[byte]
            elif (second := body[position + 1]) < IS_LONG:
                place = position + 3
                position += large[byte & 0x7F | second << 7]
            else:
                length, place = read_varint(body, position)
                position = place + length
                place += 1
            if body[place] >= IS_LONG:  # the timestamp delta
                place += 1
                if body[place] >= IS_LONG:
                    place += 1
                    if body[place] >= IS_LONG:
                        return None
            if body[place + 1] < IS_LONG:  # the offset delta
                place += 2
            elif body[place + 2] < IS_LONG:
                place += 3
            elif body[place + 3] < IS_LONG:
                place += 4
            else:
                return None
            if (length := body[place]) < IS_LONG:  # of the key
                place += 1 if length & 1 else 1 + (length >> 1)
            else:
                length, place = read_varint(body, place)
                place += max(length, 0)
            if (length := body[place]) < IS_LONG:  # of the value
                place += 1
            elif (second := body[place + 1]) < IS_LONG:
                length = length & 0x7F | second << 7
                place += 2
            else:
                length, place = read_varint(body, place)
                length = length << 1 if length >= 0 else 1
            if length & 1:
                add(null)
            else:
                length >>= 1
                add(body[place : place + length])
                place += length
            if body[place] or place + 1 != position:
                return None
    except (IndexError, InvalidRecords):
        return None
    return values if position == len(body) else None
