"""Protobuf values by the schemas that they name; the messages are made by protobuf itself."""

import base64
import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.pipelines.common import protobuf
from kafkalite.pipelines.common.protobuf import (
    LONGEST,
    NO_INDEXES,
    NO_TEXT,
    NOT_PROTOBUF,
    NotProtobuf,
    compiled,
    message_path,
    reader,
)

ORDER = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/type/date.proto";
import "parts/address.proto";
message Other { message Inner { string name = 1; } message Second { bool is_it = 1; } }
message Order {
  int64 order_id = 1;
  double amount = 2;
  repeated string tags = 3;
  google.protobuf.Timestamp at = 4;
  google.type.Date due = 5;
  parts.Address to = 6;
  bytes raw = 7;
  optional int32 maybe = 8;
}
"""
ADDRESS = 'syntax = "proto3"; package parts; message Address { string city = 1; }'
OTHERS = {"parts/address.proto": ADDRESS}
FIRST = b"\x00"
STAMPS = "google/protobuf/timestamp.proto"


@pytest.fixture(scope="module")
def order() -> str:
    return compiled(ORDER, OTHERS)


def number(value: int) -> bytes:
    """Zigzag, seven bits a byte."""
    value = value * 2 if value >= 0 else -value * 2 - 1
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def frame(*path: int) -> bytes:
    return number(len(path)) + b"".join(number(each) for each in path)


def message_of(text: str, others: dict[str, str], name: str) -> Any:
    """A class of messages, by protobuf's own pool."""
    encoded = compiled(text, others).partition(":")[2]
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(encoded)).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def test_a_value_is_what_its_message_says(order: str) -> None:
    message = message_of(ORDER, OTHERS, "shop.Order")(order_id=7, tags=["a"], raw=b"\xff")
    message.at.FromSeconds(60)
    message.to.city = "x"
    message.due.year = 2026
    text, fault = reader({1: order})(1, frame(1) + message.SerializeToString())
    assert fault is None
    assert json.loads(text or "") == {
        "order_id": "7",
        # Zero is a value; what tells it from none was not there.
        "amount": 0.0,
        "tags": ["a"],
        "at": "1970-01-01T00:01:00Z",
        "due": {"year": 2026, "month": 0, "day": 0},
        "to": {"city": "x"},
        "raw": "/w==",
    }


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        (frame(0), "shop.Other", {}),
        (FIRST, "shop.Other", {}),
        (frame(0, 0), "shop.Other.Inner", {"name": ""}),
        (frame(0, 1), "shop.Other.Second", {"is_it": False}),
    ],
)
def test_a_frame_names_a_message(order: str, path: bytes, name: str, said: Any) -> None:
    value = path + message_of(ORDER, OTHERS, name)().SerializeToString()
    assert reader({1: order})(1, value) == (json.dumps(said), None)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", NO_INDEXES),
        (b"\x02", NO_INDEXES),
        (b"\xff" * 9, NO_INDEXES),
        (number(-1), NO_INDEXES),
        (frame(2), "no message 2 in its schema"),
        (frame(-1), "no message -1 in its schema"),
        (frame(0, 2), "no message 0.2 in its schema"),
        # A length that goes beyond the end, bytes behind the value, and a field that nobody named.
        (frame(0, 0) + b"\x0a\x05x", NOT_PROTOBUF),
        (frame(0, 0) + b"\x0a\x01x\x00", NOT_PROTOBUF),
        (frame(0, 0) + b"\x0a\x01\xff", NOT_PROTOBUF),
        (frame(0, 0) + b"\x10\x01", f"{NOT_PROTOBUF}: it has fields that its schema does not name"),
        # The same in a message within it.
        (
            frame(1) + b"\x32\x02\x18\x01",
            f"{NOT_PROTOBUF}: it has fields that its schema does not name",
        ),
    ],
)
def test_what_is_not_of_its_schema_says_why(order: str, value: bytes, said: str) -> None:
    assert reader({1: order})(1, value) == (None, said)


def test_what_its_text_cannot_say_is_told(order: str) -> None:
    """A moment beyond the year 9999."""
    message = message_of(ORDER, OTHERS, "shop.Order")()
    message.at.seconds = 2**60
    text, fault = reader({1: order})(1, frame(1) + message.SerializeToString())
    assert text is None
    assert (fault or "").startswith(f"{NOT_PROTOBUF}: ")
    assert len(fault or "") <= LONGEST + 1


def test_what_must_be_there_and_is_not_is_told() -> None:
    text = 'syntax = "proto2"; message M { required int32 id = 1; }'
    assert reader({1: compiled(text, {})})(1, FIRST) == (None, f"{NOT_PROTOBUF}: it has no id")


NO_UTF_8 = """
syntax = "proto2";
message M {
  optional string s = 1; repeated string many = 2; map<string, string> named = 3;
  optional M inner = 4; optional bytes raw = 5; map<string, bytes> raws = 6;
}
"""


@pytest.mark.parametrize(
    ("value", "is_text"),
    [
        (b"\x0a\x01\xff", False),
        (b"\x12\x01a\x12\x01\xff", False),
        (b"\x1a\x06\x0a\x01\xff\x12\x01a", False),
        (b"\x1a\x06\x0a\x01a\x12\x01\xff", False),
        (b"\x22\x03\x0a\x01\xff", False),
        (b"\x0a\x02\xc3\xa9\x2a\x01\xff\x32\x06\x0a\x01a\x12\x01\xff\x22\x00", True),
    ],
)
def test_a_string_that_is_no_text_is_told(value: bytes, is_text: bool) -> None:
    """Before proto3 protobuf takes any bytes for a string."""
    text, fault = reader({1: compiled(NO_UTF_8, {})})(1, FIRST + value)
    assert (text is not None) == is_text
    assert fault == (None if is_text else f"{NOT_PROTOBUF}: {NO_TEXT}")


def test_another_message_by_the_name_of_a_known_one_is_told_of() -> None:
    other = 'syntax = "proto3"; package google.protobuf; message Timestamp { string s = 1; }'
    text = f'syntax = "proto3"; import "{STAMPS}"; message M {{ google.protobuf.Timestamp t = 1; }}'
    said, fault = reader({1: compiled(text, {STAMPS: other})})(1, FIRST + b"\x0a\x00")
    assert said is None
    assert (fault or "").startswith(f"{NOT_PROTOBUF}: ")


def test_other_rows_are_nobodys() -> None:
    read = reader({1: "not looked at"})
    assert read(None, b"x") == read(2, b"x") == read(1, None) == (None, None)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_fault(order: str, value: bytes) -> None:
    text, fault = reader({1: order})(1, value)
    assert (text is None) != (fault is None)
    if text is not None:
        json.loads(text)


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=20), st.binary(max_size=9))
def test_indexes_are_read_as_they_are_written(path: list[int], rest: bytes) -> None:
    assert message_path(frame(*path) + rest) == (tuple(path), len(frame(*path)))


@pytest.mark.parametrize(
    ("text", "others", "said"),
    [
        ("message", {}, "value.proto:1:8: Expected message name"),
        ('import "nowhere.proto";', {}, "nowhere.proto: File not found."),
        ('import "../../secret";', {"../../secret": ""}, "which is no path below"),
        ("", {"/etc/secret": ""}, "which is no path below"),
        ("", {"a": "", "a/b": ""}, "it imports 'a/b'"),
        ("// \ud800", {}, "has half of a character"),
        ("", {"\ud800": ""}, "has half of a character"),
    ],
)
def test_what_is_no_schema_is_told(text: str, others: dict[str, str], said: str) -> None:
    with pytest.raises(NotProtobuf) as refused:
        compiled(f'syntax = "proto3"; {text}' if said[0] != "v" else text, others)
    assert said in str(refused.value)
    assert "/kafkalite-proto-" not in str(refused.value)


def test_a_schema_may_be_called_as_one_that_it_imports() -> None:
    text = 'syntax = "proto3"; import "value.proto"; message M { parts.Address to = 1; }'
    found = compiled(text, {"value.proto": ADDRESS})
    assert reader({1: found})(1, FIRST) == ("{}", None)


def test_a_schema_may_be_a_descriptor_in_base64() -> None:
    """As serializers register it, with others that are texts or descriptors, too."""
    file = descriptor_pb2.FileDescriptorProto(
        name="shop.proto", syntax="proto3", dependency=["parts/address.proto", STAMPS]
    )
    order = file.message_type.add(name="Order")
    types = (".parts.Address", ".google.protobuf.Timestamp")
    for number, each in enumerate(types, 1):
        order.field.add(
            name=f"f{number}",
            number=number,
            label="LABEL_OPTIONAL",
            type="TYPE_MESSAGE",
            type_name=each,
        )
    address = descriptor_pb2.FileDescriptorProto(name="x", package="parts", syntax="proto3")
    address.message_type.add(name="Address")
    text = base64.b64encode(file.SerializeToString()).decode()
    for other in (ADDRESS, base64.b64encode(address.SerializeToString()).decode()):
        found = compiled(text, {"parts/address.proto": other})
        said, fault = reader({1: found})(1, FIRST + b"\x0a\x00\x12\x00")
        assert fault is None
        city = {"city": ""} if other == ADDRESS else {}
        assert json.loads(said or "") == {"f1": city, "f2": "1970-01-01T00:00:00Z"}


def test_a_schema_may_be_called_as_what_the_compiler_writes() -> None:
    address = descriptor_pb2.FileDescriptorProto(name="x", package="parts", syntax="proto3")
    address.message_type.add(name="Address")
    described = base64.b64encode(address.SerializeToString()).decode()
    others = {"a.proto": described} | {
        f"{name}/x": 'syntax = "proto3";' for name in (".given", ".descriptors", "descriptors")
    }
    text = 'syntax = "proto3"; import "a.proto"; message M { parts.Address to = 1; }'
    assert reader({1: compiled(text, others)})(1, FIRST) == ("{}", None)


def test_a_compiler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "grpc_tools", None)
    with pytest.raises(RuntimeError, match=r"pip install 'kafkalite\[protobuf\]'"):
        compiled("", {})


def test_a_compiler_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf, "COMPILE_S", 0.001)
    with pytest.raises(NotProtobuf, match="not compiled in"):
        compiled('syntax = "proto3";', {})
