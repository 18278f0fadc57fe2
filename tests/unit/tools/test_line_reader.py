"""Lines as records: what is cut off where, and what is nothing at all."""

from __future__ import annotations

import pytest

from kafkalite.tools.failures import Failure
from kafkalite.tools.line_reader import LineReader, TypedRecord

ALL = {"parse.key": "true", "parse.headers": " TRUE ", "null.marker": "N"}
LENIENT = ALL | {"ignore.error": "true"}


@pytest.mark.parametrize(("properties", "line", "record"), [
    ({}, "a\tb", TypedRecord(None, b"a\tb", ())),
    ({"parse.key": "true"}, "a\tb\tc", TypedRecord(b"a", b"b\tc", ())),
    ({"parse.key": "true", "key.separator": "::"}, "a::b", TypedRecord(b"a", b"b", ())),
    (ALL, "h:1,i:N\tk\tN", TypedRecord(b"k", None, (("h", b"1"), ("i", None)))),
    (ALL, "N\tN\t", TypedRecord(None, b"", ())),
    (LENIENT, "alone", TypedRecord(None, b"alone", ())),
    (LENIENT, "h\tk\tv", TypedRecord(b"k", b"v", (("h", None),))),
])
def test_a_line(properties: dict[str, str], line: str, record: TypedRecord) -> None:
    assert LineReader(properties).record(line) == record


@pytest.mark.parametrize(("line", "said"), [
    ("a", "No headers delimiter found on line number 1: 'a'"),
    ("a:b\tk", "No key separator found on line number 1: 'a:b\tk'"),
    ("a\tk\tv", "No header key separator found in pair 'a' on line number 1"),
    ("N:b\tk\tv",
     "Header keys should not be equal to the null marker 'N' as they can't be null"),
])  # fmt: skip
def test_what_is_wrong_with_a_line(line: str, said: str) -> None:
    with pytest.raises(Failure) as raised:
        LineReader(ALL).record(line)
    assert raised.value.message == said


def test_separators_must_differ() -> None:
    with pytest.raises(Failure, match=r"null\.marker and key\.separator may not be equal"):
        LineReader({"null.marker": "\t"})
