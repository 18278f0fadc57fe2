"""OTLP's metrics, cut before they are read: the library keeps the interpreter for as long as it
reads or writes one message, and the loop would wait for a large one.

Owns the cuts, which go between resources, scopes, metrics or their points, as far in as they must;
what is around such a list is said again in each piece. Invariant: what the pieces tell is what the
whole tells, in its order, and of what is no OTLP some piece is none.
"""

from __future__ import annotations

from collections.abc import Iterator

# Of empty messages, the worst there is: some tenths of a millisecond.
PIECE_BYTES = 16_384
MOST_AROUND_BYTES = 2_048  # a list of what is cut
LARGEST_POINT_BYTES = 65_536
MOST_FIELDS = 50_000  # that are looked at

# In which fields such lists are: of resources, of scopes, of metrics, of the kinds of metrics, of
# points.
_LISTS = ((1,), (2,), (2,), (5, 7, 9, 10, 11), (1,))
_VARINT, _EIGHT_BYTES, _WITH_LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_MOST_VARINT_BYTES = 10


class NoPieces(Exception):
    """It cannot be cut, and is too large to be read in one go."""


def pieces(data: bytes) -> Iterator[bytes]:
    """Raises NoPieces."""
    if len(data) <= PIECE_BYTES:
        return iter((data,))
    return map(bytes, _cut(memoryview(data), 0, _Fields()))


class _Fields:
    """How many may be looked at yet."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_FIELDS

    def of(self, data: memoryview) -> Iterator[tuple[int, memoryview, memoryview | None]]:
        """Each with its number, as it is written, and what is in it where it has a length."""
        place = 0
        while place < len(data):
            self.left -= 1
            if self.left < 0:
                raise NoPieces(f"it has more than {MOST_FIELDS} fields")
            begin = place
            tag, place = _varint(data, place)
            inside, kind = None, tag & 7
            if kind == _WITH_LENGTH:
                size, begin_inside = _varint(data, place)
                place = begin_inside + size
                inside = data[begin_inside:place]
            elif kind == _VARINT:
                _, place = _varint(data, place)
            elif kind in _FIXED:
                place += _FIXED[kind]
            else:
                raise NoPieces(f"a field of the unknown kind {kind}")
            if place > len(data):
                raise NoPieces("it ends within a field")
            yield tag >> 3, data[begin:place], inside


def _cut(data: memoryview, depth: int, fields: _Fields) -> Iterator[bytes | memoryview]:
    """A message of that depth, as several of it."""
    if len(data) <= (PIECE_BYTES if depth < len(_LISTS) else LARGEST_POINT_BYTES):
        yield data
        return
    if depth == len(_LISTS):
        raise NoPieces(f"a point of more than {LARGEST_POINT_BYTES} bytes")
    around, listed = bytearray(), list[tuple[int, memoryview]]()
    for number, written, inside in fields.of(data):
        if inside is not None and number in _LISTS[depth]:
            listed.append((number, inside))
        else:
            around += written
            if len(around) > MOST_AROUND_BYTES:
                raise NoPieces(f"more than {MOST_AROUND_BYTES} bytes around a long list")
    some = bytearray()
    for number, inside in listed:
        for part in _cut(inside, depth + 1, fields):
            if some and len(some) + len(part) > PIECE_BYTES:
                yield bytes(around + some)
                some.clear()
            some += field_of(number, part)
    yield bytes(around + some)


def field_of(number: int, inside: bytes | memoryview) -> bytes:
    """What has a length, as it is written."""
    return b"".join((_number(number << 3 | _WITH_LENGTH), _number(len(inside)), inside))


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift, byte in enumerate(data[place : place + _MOST_VARINT_BYTES]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return value, place + shift + 1
    raise NoPieces("it ends within a number")


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
