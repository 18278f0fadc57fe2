"""Keys and values whose schemas a registry has, as plain values.

The registry and its rules are those of the pipelines, with what these need. A field that does not
decode is left as it is, and told.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from kafkalite.cli._record_json import plain
from kafkalite.client.cluster import ClientFailed
from kafkalite.pipelines.common.outcomes import PipelineError
from kafkalite.records.record import Record

if TYPE_CHECKING:
    from kafkalite.pipelines.common.schemas import Schemas

AVRO, JSON = "avro", "json"
# By bytes that are something else.
_LED_TO = (
    ArithmeticError, EOFError, LookupError, MemoryError, RecursionError, StopIteration, TypeError,
    ValueError,
)  # fmt: skip
_FRAME = struct.Struct(">bi")  # zero, and the schema's id


class Undecodable(ValueError):
    """Why a field is not what it should be."""


@dataclass(slots=True)
class Fields:
    """What keys and values are; without an entry they are left as they are."""

    decode: dict[str, Callable[[bytes], Any]] = field(default_factory=dict)
    failures: int = 0

    def plain(self, topic: str, partition: int, record: Record) -> tuple[Any, Any]:
        found = []
        for name, data in (("key", record.key), ("value", record.value)):
            value = plain(data)
            if data is not None and name in self.decode:
                try:
                    value = self.decode[name](data)
                except Undecodable as wrong:
                    self.failures += 1
                    where = f"{topic}-{partition}, offset {record.offset}, {name}"
                    click.echo(f"kafkalite: {where}: {wrong}", err=True)
            found.append(value)
        return found[0], found[1]

    def as_text(self, topic: str, partition: int, record: Record) -> Record:
        """The record with JSON in the place of what was decoded."""
        texts = []
        decoded = self.plain(topic, partition, record)
        for name, data, value in zip(
            ("key", "value"), (record.key, record.value), decoded, strict=True
        ):
            is_changed = data is not None and name in self.decode and value != plain(data)
            texts.append(json.dumps(value, ensure_ascii=False).encode() if is_changed else data)
        return Record(record.offset, record.timestamp, texts[0], texts[1], record.headers)


def fields_of(kinds: dict[str, str], where: str) -> Fields:
    """kinds: of key and value. ClickException says what is missing."""
    try:
        from kafkalite.pipelines.common import schemas

        makers = {AVRO: (_avro, schemas.AVRO), JSON: (_json, schemas.JSON)}
        return Fields({
            name: make(schemas.Schemas(where, kind=kind))
            for name, word in kinds.items()
            for make, kind in [makers[word]]
        })
    except ImportError as error:
        raise click.ClickException(
            f"Avro of a registry needs fastavro ({error}): "
            "pip install 'kafkalite[avro,json-schema]'"
        ) from None
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def _avro(found: Schemas) -> Callable[[bytes], Any]:
    import fastavro

    parsed: dict[int, Any] = {}

    def decode(data: bytes) -> Any:
        number, body = _schema(found, data)
        if number not in parsed:
            text, _ = found.find(number)
            parsed[number] = fastavro.parse_schema(json.loads(text or ""))
        stream = io.BytesIO(body)
        try:
            value = fastavro.schemaless_reader(stream, parsed[number], None)
        except _LED_TO as error:
            raise Undecodable(f"this is no Avro of schema {number}: {error!r}") from None
        if stream.tell() != len(body):
            raise Undecodable(f"this is no Avro of schema {number}: it ends before its bytes do")
        return json.loads(json.dumps(value, default=_as_json))

    return decode


def _json(found: Schemas) -> Callable[[bytes], Any]:
    def decode(data: bytes) -> Any:
        _, body = _schema(found, data)
        try:
            return json.loads(body)
        except ValueError as error:
            raise Undecodable(f"this is no JSON: {error}") from None

    return decode


def _schema(found: Schemas, data: bytes) -> tuple[int, bytes]:
    """The id before the value, of a schema that there is, and the value."""
    if len(data) < _FRAME.size or data[0]:
        raise Undecodable("no schema id stands before it")
    _, number = _FRAME.unpack_from(data)
    try:
        text, why = found.find(number)
    except PipelineError as error:  # the registry's, and no record's
        raise ClientFailed(str(error)) from None
    if text is None:
        raise Undecodable(why or f"there is no schema {number}")
    return number, data[_FRAME.size :]


def _as_json(value: Any) -> Any:
    """Of what Avro has and JSON has not."""
    if isinstance(value, bytes | bytearray):
        return plain(bytes(value))
    isoformat = getattr(value, "isoformat", None)
    return str(value) if isoformat is None else isoformat()
