"""One value of MessagePack, read whole.

Owns the format's bytes. Invariant: what is read is never larger than what it was read from by more
than a factor: an array is taken element by element, and never set aside for its announced length.
"""

from __future__ import annotations

import struct
from typing import Any

MOST_DEEP = 100
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_BINARY, _TEXT = {0xC4: 1, 0xC5: 2, 0xC6: 4}, {0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAY, _MAP = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}
_EXTENSION = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED_EXTENSION = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_WORDS = {0xC0: None, 0xC2: False, 0xC3: True}


class NotMessagePack(ValueError):
    """Other bytes, or more or fewer of them."""


def unpack(data: bytes) -> Any:
    """The one value that the bytes are. Keys that JSON does not have are told as text."""
    reader = _Reader(data)
    value = reader.value(0)
    if reader.position != len(data):
        raise NotMessagePack(f"{len(data) - reader.position} bytes are left")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    def _take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self._data):
            raise NotMessagePack("it ends too early")
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def _length(self, width: int) -> int:
        return int.from_bytes(self._take(width), "big")

    def value(self, depth: int) -> Any:
        if depth > MOST_DEEP:
            raise NotMessagePack(f"it is more than {MOST_DEEP} deep")
        kind = self._take(1)[0]
        if kind <= 0x7F:
            return kind
        if kind >= 0xE0:
            return kind - 0x100
        if kind <= 0x8F:
            return self._map(kind & 0x0F, depth)
        if kind <= 0x9F:
            return self._array(kind & 0x0F, depth)
        if kind <= 0xBF:
            return self._text(kind & 0x1F)
        return self._long(kind, depth)

    def _long(self, kind: int, depth: int) -> Any:
        if kind in _WORDS:
            return _WORDS[kind]
        if kind in _NUMBERS:
            shape = _NUMBERS[kind]
            return struct.unpack(shape, self._take(struct.calcsize(shape)))[0]
        if kind in _TEXT:
            return self._text(self._length(_TEXT[kind]))
        if kind in _BINARY:
            return {"binary": self._take(self._length(_BINARY[kind])).hex()}
        if kind in _ARRAY:
            return self._array(self._length(_ARRAY[kind]), depth)
        if kind in _MAP:
            return self._map(self._length(_MAP[kind]), depth)
        if kind in _FIXED_EXTENSION or kind in _EXTENSION:
            length = _FIXED_EXTENSION.get(kind) or self._length(_EXTENSION[kind])
            number = int.from_bytes(self._take(1), "big", signed=True)
            return {"extension": number, "data": self._take(length).hex()}
        raise NotMessagePack(f"0x{kind:02x} begins no value")

    def _text(self, length: int) -> str:
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise NotMessagePack("a text is not UTF-8") from None

    def _array(self, length: int, depth: int) -> list[Any]:
        return [self.value(depth + 1) for _ in range(length)]

    def _map(self, length: int, depth: int) -> dict[str, Any]:
        found = {}
        for _ in range(length):
            name = self._name(depth)
            found[name] = self.value(depth + 1)
        return found

    def _name(self, depth: int) -> str:
        """A key; one that has parts as its bytes: as text of a text it would be twice as long at
        each depth."""
        begins = self.position
        key = self.value(depth + 1)
        if isinstance(key, dict | list):
            return f"0x{self._data[begins : self.position].hex()}"
        return key if isinstance(key, str) else repr(key)
