"""Bytes as a person reads them, and bytes that nobody can read."""

from __future__ import annotations

import json
import random
import struct
from datetime import date
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

from kafkalite.console.decoding import (
    AUTO,
    FORMATS,
    MSGPACK,
    PROTOBUF,
    SCHEMA,
    TEXT,
    Decoder,
    Shown,
)
from kafkalite.console.msgpack import NotMessagePack, unpack
from kafkalite.console.protobuf import NotProtobuf, fields
from kafkalite.console.schemas import AGAIN_SECONDS, NoSchema, Schemas, of_registry
from kafkalite.records.record import Record

MOST = 1_000
ORDER = {
    "type": "record", "name": "Order", "fields": [
        {"name": "id", "type": "long"}, {"name": "raw", "type": "bytes"},
        {"name": "place", "type": "shop.Place"},
    ],
}  # fmt: skip
PLACE = {"type": "record", "name": "shop.Place", "fields": [{"name": "city", "type": "string"}]}


def show(data: bytes | None, how: str = AUTO, schemas: Schemas | None = None) -> Shown | None:
    return Decoder("t", schemas=schemas).show(data, how, MOST)


def found(data: bytes, how: str = AUTO, schemas: Schemas | None = None) -> Shown:
    shown = show(data, how, schemas)
    assert shown is not None
    assert shown.size == len(data)
    return shown


@pytest.mark.parametrize(
    ("data", "kind", "text"),
    [
        (b"", "empty", ""),
        (b"hello", "text", "hello"),
        ("Grüße\n".encode(), "text", "Grüße\n"),
        (b'{"a": 1.10}', "json", '{"a": 1.10}'),
        (b"[1, 2", "text", "[1, 2"),
        (b"[" * 100_000, "text", "[" * MOST),
        (b"\xff\xfe", "hex", "fffe"),
        (b"caf\xe9", "hex", "636166e9"),
        (b"a\0b", "hex", "610062"),
        (b"\x82\xa1a\x01\xa1b\xc4\x01\xff", "msgpack", '{"a": 1, "b": {"binary": "ff"}}'),
        (b"\x80", "hex", "80"),
        (b"\xd8", "hex", "d8"),
    ],
)
def test_what_nobody_names_is_guessed(data: bytes, kind: str, text: str) -> None:
    shown = found(data)
    assert (shown.format, shown.text) == (kind, text)
    assert show(None) is None


def test_long_text_is_cut_between_characters() -> None:
    data = "é".encode() * 5_000_000
    shown = found(data)
    assert (shown.format, shown.text, shown.is_cut) == ("text", "é" * MOST, True)
    for length in range(4 * MOST - 3, 4 * MOST + 4):
        assert found(("€" * length).encode()).format == "text"
    assert found(b"x" * (4 * MOST) + b"\xff").format == "text"  # as far as it is shown
    assert found(b"\xff" * 10_000_000).is_cut
    assert not found(b"x" * MOST).is_cut


@pytest.mark.parametrize("how", FORMATS)
def test_no_bytes_fail(how: str) -> None:
    chance = random.Random(4)
    for size in [*range(1, 40), 400]:
        for _ in range(20):
            shown = found(chance.randbytes(size), how)
            assert shown.text or shown.format in (TEXT, "json", PROTOBUF)


def test_what_is_not_as_it_was_said_is_told() -> None:
    shown = found(b"\xc1", MSGPACK)
    assert (shown.format, shown.note) == ("hex", "not MessagePack: 0xc1 begins no value")
    assert found(b"caf\xe9", TEXT).text == "caf\ufffd"
    assert "--registry" in (found(b"\0\0\0\0\x07x", SCHEMA).note or "")
    assert "--registry" in (found(b"\0\0\0\0\x07\xff").note or "")


def test_keys_and_values_of_internal_topics() -> None:
    key = struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 3)
    value = struct.pack(">hqih0sq", 3, 42, -1, 0, b"", 1_000)
    told = Decoder("__consumer_offsets").key_and_value(Record(0, 0, key, value), MOST)
    assert told[0] is not None
    assert told[1] is not None
    assert json.loads(told[0].text) == {"group": "g", "topic": "t", "partition": 3}
    assert (told[0].format, told[1].note) == ("internal", "OffsetCommit")
    assert json.loads(told[1].text)["offset"] == 42
    broken = Decoder("__consumer_offsets").key_and_value(Record(0, 0, b"\0", None), MOST)
    assert broken[1] is None
    Decoder("__transaction_state").key_and_value(Record(0, 0, None, b"\xff" * 9), MOST)


# --- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("c0", None), ("c2", False), ("c3", True), ("7f", 127), ("e0", -32), ("cd0100", 256),
        ("d1ff00", -256), ("d3ffffffffffffffff", -1), ("ca3fc00000", 1.5), ("a0", ""),
        ("d901 61".replace(" ", ""), "a"), ("93010203", [1, 2, 3]), ("dc000101", [1]),
        ("df00000001a16101", {"a": 1}), ("8101a162", {"1": "b"}),
        ("d4 05 ff".replace(" ", ""), {"extension": 5, "data": "ff"}),
        ("c7 01 ff 00".replace(" ", ""), {"extension": -1, "data": "00"}),
    ],
)  # fmt: skip
def test_message_pack(data: str, value: Any) -> None:
    assert unpack(bytes.fromhex(data)) == value


@pytest.mark.parametrize(
    "data", ["", "c1", "a2 61", "dd ffffffff", "df ffffffff", "a1 ff", "01 02", "91" * 200 + "01"]
)
def test_what_is_no_message_pack(data: str) -> None:
    with pytest.raises(NotMessagePack):
        unpack(bytes.fromhex(data))


@pytest.mark.parametrize("key", [r"a1 5c", r"a1 27"])
def test_keys_with_parts_grow_no_text(key: str) -> None:
    data = bytes.fromhex("81" * 60 + key + "c0" * 60)
    [name] = unpack(data)
    assert name == f"0x{data[1:-1].hex()}"
    assert found(data).format == "msgpack"


def test_fields_of_protobuf() -> None:
    data = bytes.fromhex("08 96 01  12 07 74 65 73 74 69 6e 67  1a 03 08 96 01  22 01 ff  08 05")
    assert fields(data) == {
        "1": [150, 5], "2": "testing", "3": {"1": 150}, "4": {"bytes": "ff"},
    }  # fmt: skip
    assert fields(bytes.fromhex("0d0000c03f"))["1"] == {"bits": "0x3fc00000", "as_float": "1.5"}
    for broken in ("08", "0a 05 61", "00 01", "0b", "08" + "ff" * 11):
        with pytest.raises(NotProtobuf):
            fields(bytes.fromhex(broken))


# --- schemas --------------------------------------------------------------------------------------


class Registry:
    """In place of one over HTTP; counts what it is asked."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers, self.asked = answers, list[str]()

    def __call__(self, path: str) -> Any:
        self.asked.append(path)
        if path not in self.answers:
            raise NoSchema(f"404 for {path}")
        return self.answers[path]


def avro() -> tuple[Registry, bytes]:
    references = [{"name": "shop.Place", "subject": "shop/place", "version": 2}]
    registry = Registry({
        "/schemas/ids/7": {"schema": json.dumps(ORDER), "references": references},
        "/subjects/shop%2Fplace/versions/2": {"schema": json.dumps(PLACE)},
        "/schemas/ids/8": {"schema": "{}", "schemaType": "JSON"},
        "/schemas/ids/9": {"schema": "syntax", "schemaType": "PROTOBUF"},
        "/schemas/ids/10": {"schema": "{"},
        "/schemas/ids/11": {"schema": "{}", "references": [{}]},
        "/schemas/ids/13": {"schema": "5"},
    })  # fmt: skip
    named: dict[str, Any] = {}
    parse_schema(PLACE, named_schemas=named)
    body = BytesIO()
    value = {"id": 1 << 60, "raw": b"\xff", "place": {"city": "Köln"}}
    schemaless_writer(body, parse_schema(ORDER, named_schemas=named), value)
    return registry, body.getvalue()


def test_values_that_name_their_schema() -> None:
    registry, body = avro()
    schemas = Schemas(registry)
    for _ in range(2):
        shown = found(b"\0\0\0\0\x07" + body, AUTO, schemas)
        assert (shown.format, shown.note) == ("avro", "schema 7")
        assert json.loads(shown.text) == {
            "id": 1 << 60, "raw": "ff", "place": {"city": "Köln"},
        }  # fmt: skip
    assert len(registry.asked) == 2
    assert found(b'\0\0\0\0\x08{"a": 1}', SCHEMA, schemas).text == '{"a": 1}'


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0\0\0\0\x07\x02", "not Avro of schema 7"),
        (b"\0\0\0\0\x08{", "is of JSON, and what follows is not"),
        (b"\0\0\0\0\x09\x08\x01", "is of Protobuf"),
        (b"\0\0\0\0\x0a\x08\xff", "schema 10 cannot be used"),
        (b"\0\0\0\0\x0b\x08\xff", "schema 11 is no schema"),
        (b"\0\0\0\0\x0d\x08\xff", "schema 13 cannot be used"),
        (b"\0\0\0\0\x0c\xff", "404 for /schemas/ids/12"),
        (b"plain", "no id of a schema"),
    ],
)
def test_values_whose_schema_does_not_help(data: bytes, why: str) -> None:
    registry, _ = avro()
    shown = found(data, SCHEMA, Schemas(registry))
    assert shown.format == "hex"
    assert why in (shown.note or "")


LIST = {"type": "record", "name": "List", "fields": [{"name": "next", "type": ["null", "List"]}]}
NOTHINGS = {"type": "array", "items": "null"}


def pairs(depth: int) -> Any:
    """Records that hold the next one twice, and take no byte."""
    made: Any = "null"
    for number in range(depth):
        twice = f"Pair{number - 1}" if number else "null"
        fields = [{"name": "one", "type": made}, {"name": "other", "type": twice}]
        made = {"type": "record", "name": f"Pair{number}", "fields": fields}
    return made


@pytest.mark.parametrize(
    ("schema", "body", "why"),
    [
        (LIST, b"\x02" * 1_000_000 + b"\0", "deep"),
        (NOTHINGS, b"\x80\x80\x80\x80\x80\x40\0", "values"),
        (pairs(40), b"", "values"),
        ("string", b"\x03", "ends too early"),
        (["null", "int"], b"\x04", "a union of 2 has no part 2"),
        ("bytes", b"\x04abc", "1 bytes are left"),
        ("long", b"\xff" * 11, "too many bytes"),
        ("string", b"\x80\x80\x80\x01" + b"x" * (2 << 20), "are not parsed"),
    ],
)
def test_avro_is_bounded_before_it_is_read(schema: Any, body: bytes, why: str) -> None:
    """fastavro is compiled: nothing but its process's end stops it."""
    shown = found(b"\0\0\0\0\x01" + body, SCHEMA, of_one(schema))
    assert shown.format == "hex"
    assert why in (shown.note or "")


def of_one(schema: Any) -> Schemas:
    return Schemas(Registry({"/schemas/ids/1": {"schema": json.dumps(schema)}}))


def test_avro_of_every_kind() -> None:
    kinds: dict[str, tuple[Any, Any]] = {
        "n": ("null", None), "b": ("boolean", True), "i": ("int", -3), "f": ("float", 1.5),
        "d": ("double", 2.5), "y": ("bytes", b"\xff"), "s": ("string", "ö"),
        "e": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        "x": ({"type": "fixed", "name": "X", "size": 2}, b"ab"), "again": ("X", b"cd"),
        "a": ({"type": "array", "items": "long"}, [1, 2]), "u": (["null", "string"], "v"),
        "m": ({"type": "map", "values": ["null", "long"]}, {"k": 1, "l": None}),
        "when": ({"type": "int", "logicalType": "date"}, date(2024, 2, 29)),
    }  # fmt: skip
    fields = [{"name": name, "type": kind} for name, (kind, _) in kinds.items()]
    schema = {"type": "record", "name": "All", "fields": fields}
    body = BytesIO()
    value = {name: each for name, (_, each) in kinds.items()}
    schemaless_writer(body, parse_schema(schema), value)
    told = json.loads(found(b"\0\0\0\0\x01" + body.getvalue(), AUTO, of_one(schema)).text)
    changed = {"y": "ff", "x": "6162", "again": "6364", "when": "2024-02-29"}
    assert told == value | changed


def test_a_schema_that_is_not_to_be_had_is_asked_for_again_later() -> None:
    registry, now = Registry({}), [100.0]
    schemas = Schemas(registry, lambda: now[0])
    for _ in range(3):
        found(b"\0\0\0\0\x01x", SCHEMA, schemas)
    assert len(registry.asked) == 1
    now[0] += AGAIN_SECONDS
    found(b"\0\0\0\0\x01x", SCHEMA, schemas)
    assert len(registry.asked) == 2


@pytest.mark.parametrize("url", ["", "registry:8081", "ftp://x", "http://", "file:///etc/passwd",
                                 "http://h:99999", "http://h:0", "http://[h"])  # fmt: skip
def test_what_is_no_address_of_a_registry(url: str) -> None:
    with pytest.raises(ValueError, match="expected http"):
        of_registry(url)


def test_a_registry_that_does_not_answer() -> None:
    shown = found(b"\0\0\0\0\x01x", SCHEMA, of_registry("http://user:secret@127.0.0.1:1"))
    assert "the registry at http://127.0.0.1:1 does not answer" in (shown.note or "")
    assert "secret" not in (shown.note or "")
