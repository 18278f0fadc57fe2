"""Bytes as a person reads them: which format they are in, and the text of it, cut where it is long.

Owns the order in which formats are tried when nobody names one. Never fails: what cannot be read as
it was asked for is shown in hexadecimal digits, with why.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from kafkalite.client.internal_records import KEYED_TOPICS, describer
from kafkalite.console.msgpack import NotMessagePack, unpack
from kafkalite.console.protobuf import fields
from kafkalite.console.schemas import MOST_PARSED, NoSchema, Schemas, is_framed
from kafkalite.records.record import Record

AUTO, TEXT, JSON, HEX, MSGPACK, PROTOBUF, SCHEMA = (
    "auto", "text", "json", "hex", "msgpack", "protobuf", "schema"
)  # fmt: skip
FORMATS = (AUTO, TEXT, JSON, HEX, MSGPACK, PROTOBUF, SCHEMA)
EMPTY, INTERNAL = "empty", "internal"
_ALLOWED = "\n\r\t"


@dataclass(slots=True)
class Shown:
    """size: of the bytes; is_cut: there is more text than this."""

    format: str
    text: str
    size: int
    is_cut: bool = False
    note: str | None = None

    def told(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True, frozen=True)
class Decoder:
    """How keys and values of a topic are read; schemas: of a registry, if there is one."""

    topic: str
    key_format: str = AUTO
    value_format: str = AUTO
    schemas: Schemas | None = None

    def key_and_value(self, record: Record, most: int) -> tuple[Shown | None, Shown | None]:
        """None is null. most: the characters of each."""
        if self.topic in KEYED_TOPICS and AUTO in (self.key_format, self.value_format):
            return self._internal(record, most)
        return (
            self.show(record.key, self.key_format, most),
            self.show(record.value, self.value_format, most),
        )

    def _internal(self, record: Record, most: int) -> tuple[Shown | None, Shown | None]:
        told = describer(self.topic)(record)
        note = told.get("unreadable") or told.get("type")
        return (
            _internal(record.key, told.get("key"), note, most),
            _internal(record.value, told.get("value"), note, most),
        )

    def show(self, data: bytes | None, how: str, most: int) -> Shown | None:
        if data is None:
            return None
        if not data:
            return Shown(EMPTY, "", 0)
        if how == AUTO:
            return self._guessed(data, most)
        try:
            return self._as(how, data, most)
        except (ValueError, RecursionError) as reason:
            why = str(reason) or "it is too deep"
            return _hex(data, most, f"not {_NAMES.get(how, how)}: {why}")

    def _as(self, how: str, data: bytes, most: int) -> Shown:
        if how == TEXT:
            return _cut(TEXT, _replaced(data, most), len(data), most)
        if how == HEX:
            return _hex(data, most)
        if how == SCHEMA:
            return self._by_schema(data, most)
        if len(data) > MOST_PARSED:
            raise ValueError(f"more than {MOST_PARSED} bytes are not parsed")
        if how == JSON:
            json.loads(data)
            return _cut(JSON, data.decode(), len(data), most)
        read = unpack if how == MSGPACK else fields
        return _cut(how, _written(read(data)), len(data), most)

    def _by_schema(self, data: bytes, most: int) -> Shown:
        if self.schemas is None:
            raise NoSchema("no schema registry is known: start the console with --registry URL")
        kind, value, note = self.schemas.decoded(data)
        return _cut(kind, _written(value), len(data), most, note)

    def _guessed(self, data: bytes, most: int) -> Shown:
        note = None
        if is_framed(data):
            try:
                return self._by_schema(data, most)
            except (NoSchema, RecursionError) as reason:
                note = str(reason)
        text = _text_of(data, most)
        if text is not None:
            kind = JSON if _is_json(data) else TEXT
            return _cut(kind, text, len(data), most)
        packed = _packed(data)
        if packed is not None:
            return _cut(MSGPACK, packed, len(data), most)
        return _hex(data, most, note)


_NAMES = {JSON: "JSON", MSGPACK: "MessagePack", PROTOBUF: "Protobuf", SCHEMA: "read by its schema"}


def _internal(data: bytes | None, value: Any, note: Any, most: int) -> Shown | None:
    if data is None:
        return None
    return _cut(INTERNAL, _written(value), len(data), most, None if note is None else str(note))


def _text_of(data: bytes, most: int) -> str | None:
    """Of as many bytes as can be shown; None when these are not text."""
    part = data[: 4 * most]
    try:
        text = part.decode()
    except UnicodeDecodeError as error:
        if len(part) == len(data) or error.start < len(part) - 3:
            return None
        text = part[: error.start].decode()
    return text if all(each.isprintable() or each in _ALLOWED for each in text) else None


def _replaced(data: bytes, most: int) -> str:
    return data[: 4 * most].decode(errors="replace")


def _is_json(data: bytes) -> bool:
    if len(data) > MOST_PARSED or data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _packed(data: bytes) -> str | None:
    """Of maps and arrays alone: what else is a value of MessagePack is any bytes."""
    if len(data) > MOST_PARSED or not (0x80 <= data[0] <= 0x9F or 0xDC <= data[0] <= 0xDF):
        return None
    try:
        value = unpack(data)
    except NotMessagePack:
        return None
    return _written(value) if value else None


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    """What JSON does not have: as text, bytes as digits."""
    return value.hex() if isinstance(value, bytes) else str(value)


def _hex(data: bytes, most: int, note: str | None = None) -> Shown:
    return Shown(HEX, data[: most // 2].hex(), len(data), len(data) > most // 2, note)


def _cut(kind: str, text: str, size: int, most: int, note: str | None = None) -> Shown:
    return Shown(kind, text[:most], size, len(text) > most or size > 4 * most, note)


