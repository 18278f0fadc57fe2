"""Zigzag varints of batch v2: 32-bit for lengths and offset deltas, 64-bit for timestamp deltas.

The loops of walks.py decode one and two bytes in line and come here for the rest. Overlong numbers
are refused as Apache Kafka does: a fifth (tenth) byte may not promise more.
"""

from __future__ import annotations

from kafkalite.records.errors import InvalidRecords

MAX_VARINT_BYTES = 5
MAX_VARLONG_BYTES = 10

# What one and two bytes mean; the second table is indexed by low 7 bits | second byte << 7.
ZIGZAG = tuple((number >> 1) ^ -(number & 1) for number in range(1 << 14))


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A signed 32-bit number and the position behind it; IndexError when data ends in it."""
    return _read(data, position, MAX_VARINT_BYTES, 0xFFFFFFFF)


def read_varlong(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A signed 64-bit number and the position behind it; IndexError when data ends in it."""
    return _read(data, position, MAX_VARLONG_BYTES, 0xFFFFFFFFFFFFFFFF)


def _read(data: bytes | memoryview, position: int, max_bytes: int, mask: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 7 * max_bytes, 7):
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            number &= mask
            return (number >> 1) ^ -(number & 1), position
    raise InvalidRecords(f"a number of more than {max_bytes} bytes")


def encode_varint(number: int) -> bytes:
    """One encoder serves both widths: a wider type has no longer form of a small number."""
    zigzag = (number << 1) ^ (number >> 63)
    if zigzag < len(_ENCODED):
        return _ENCODED[zigzag]
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _encode_small(zigzag: int) -> bytes:
    if zigzag < 0x80:
        return bytes((zigzag,))
    return bytes((zigzag & 0x7F | 0x80, zigzag >> 7))


_ENCODED = tuple(_encode_small(zigzag) for zigzag in range(1 << 12))
# What most lengths and deltas are, for those who encode very many; None for others.
small_varint = {number: encode_varint(number) for number in range(len(_ENCODED) // 2)}.get
