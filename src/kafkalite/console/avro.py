"""Avro by its schema, bounded before it is read: how deep a schema and a value are, and how many
values bytes may become.

Invariant: fastavro, whose code is compiled and asks no limit of Python's, is given nothing that was
not walked before: neither an array of a million items that take no byte each, nor records that
hold each other twice, nor a list that is one record within the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import Any

MOST_DEEP = 300
MOST_VALUES = 200_000
_FIXED_WIDTHS = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_LONGEST_VARINT = 10


class NotAvro(ValueError):
    """Other bytes, or more than is read here."""


class NoAvro(ImportError):
    """The library is not there."""


Named = dict[str, Any]


class Avro:
    """One schema, with those that it names."""

    def __init__(self, schema: Any, named: Named) -> None:
        """named: the schemas that it may refer to; its own are added. Raises NotAvro, NoAvro."""
        try:
            from fastavro import parse_schema
        except ImportError:
            raise NoAvro("Avro needs fastavro: pip install 'kafkalite[avro]'") from None
        _check_depth(schema)
        try:
            self._schema = parse_schema(schema, named_schemas=named)
        except Exception as error:  # noqa: BLE001 - whatever a registry has under that name
            raise NotAvro(str(error)) from None
        self._named = named

    def value(self, data: bytes) -> Any:
        """Raises NotAvro."""
        from fastavro import schemaless_reader

        walk = _Walk(data, self._named)
        walk.over(self._schema, 0)
        if walk.position != len(data):
            raise NotAvro(f"{len(data) - walk.position} bytes are left")
        try:
            return schemaless_reader(BytesIO(data), self._schema, None)
        except Exception as error:  # noqa: BLE001 - whatever the bytes make of it
            raise NotAvro(str(error)) from None


def _check_depth(schema: Any) -> None:
    layer: list[Any] = [[schema]]
    depth = 0
    while layer:
        depth += 1
        if depth > MOST_DEEP:
            raise NotAvro(f"it is more than {MOST_DEEP} deep")
        below = [each.values() if isinstance(each, Mapping) else each for each in layer]
        layer = [one for each in below for one in each if isinstance(one, Mapping | list)]


class _Walk:
    """Goes over a value as it is written, and keeps nothing of it."""

    def __init__(self, data: bytes, named: Named) -> None:
        self._data, self._named = data, named
        self.position = 0
        self._left = MOST_VALUES
        self._by_kind: dict[str, Callable[[Any, int], None]] = {
            "record": self._record, "error": self._record, "array": self._array, "map": self._map,
        }  # fmt: skip

    def over(self, schema: Any, depth: int) -> None:
        if depth > MOST_DEEP:
            raise NotAvro(f"it is more than {MOST_DEEP} deep")
        self._left -= 1
        if self._left < 0:
            raise NotAvro(f"it has more than {MOST_VALUES} values")
        if isinstance(schema, list):
            self.over(self._branch(schema), depth + 1)
            return
        kind = schema["type"] if isinstance(schema, Mapping) else schema
        if isinstance(kind, Mapping | list) or kind in self._named:
            self.over(self._named[kind] if isinstance(kind, str) else kind, depth + 1)
        elif kind in self._by_kind:
            self._by_kind[kind](schema, depth)
        elif kind in _FIXED_WIDTHS:
            self._skip(_FIXED_WIDTHS[kind])
        elif kind == "fixed":
            self._skip(schema["size"])
        elif kind in ("bytes", "string"):
            self._skip(self._number())
        elif kind in ("int", "long", "enum"):
            self._number()
        else:
            raise NotAvro(f"{kind} is no type")

    def _branch(self, union: list[Any]) -> Any:
        number = self._number()
        if not 0 <= number < len(union):
            raise NotAvro(f"a union of {len(union)} has no part {number}")
        return union[number]

    def _record(self, schema: Any, depth: int) -> None:
        for each in schema["fields"]:
            self.over(each["type"], depth + 1)

    def _array(self, schema: Any, depth: int) -> None:
        for _ in self._items():
            self.over(schema["items"], depth + 1)

    def _map(self, schema: Any, depth: int) -> None:
        for _ in self._items():
            self._skip(self._number())
            self.over(schema["values"], depth + 1)

    def _items(self) -> Iterator[int]:
        while count := self._number():
            if count < 0:  # then the block's bytes are told
                self._number()
            yield from range(abs(count))

    def _skip(self, count: int) -> None:
        if count < 0 or count > len(self._data) - self.position:
            raise NotAvro("it ends too early")
        self.position += count

    def _number(self) -> int:
        value = 0
        for index in range(_LONGEST_VARINT):
            at = self.position
            self._skip(1)
            byte = self._data[at]
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return value >> 1 ^ -(value & 1)
        raise NotAvro("a number has too many bytes")
