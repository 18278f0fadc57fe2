"""DER, as far as stores and certificates are read here: one element after another.

Owns the reading of tags and lengths. Bounded by the bytes it is given; whatever does not add up
raises MalformedDer.
"""

from __future__ import annotations

from kafkalite.env.dataclasses import dataclass

SEQUENCE, SET, OID, OCTET_STRING, INTEGER = 0x30, 0x31, 0x06, 0x04, 0x02
LENGTH_BYTES = 4


class MalformedDer(ValueError):
    """Bytes that are no DER."""


@dataclass(slots=True, frozen=True)
class Element:
    """One value: its tag, what is in it, and all of its bytes."""

    tag: int
    content: bytes
    encoded: bytes

    def inner(self) -> list[Element]:
        """The elements that it is made of."""
        return elements(self.content)


def elements(data: bytes) -> list[Element]:
    """All elements that lie one behind the other."""
    found, position = [], 0
    while position < len(data):
        start, tag = position, data[position]
        length, position = _length(data, position + 1)
        end = position + length
        if tag & 0x1F == 0x1F or end > len(data):
            raise MalformedDer("an element ends behind its data, or has a long tag")
        found.append(Element(tag, data[position:end], data[start:end]))
        position = end
    return found


def only(data: bytes) -> Element:
    """The one element that the bytes are."""
    found = elements(data)
    if len(found) != 1:
        raise MalformedDer(f"{len(found)} elements where one was expected")
    return found[0]


def _length(data: bytes, position: int) -> tuple[int, int]:
    if position >= len(data):
        raise MalformedDer("an element without a length")
    first = data[position]
    if first < 0x80:
        return first, position + 1
    count = first & 0x7F
    if not 0 < count <= LENGTH_BYTES or position + count >= len(data):
        raise MalformedDer("a length that cannot be one")
    end = position + 1 + count
    return int.from_bytes(data[position + 1 : end], "big"), end


def dotted(content: bytes) -> str:
    """The text of an object identifier."""
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    if not numbers:
        raise MalformedDer("an object identifier without a number")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))
