"""kcat's format tokens and the escapes of the command line."""

from __future__ import annotations

import pytest

from kafkalite.cli._record_format import BadFormat, printer, unescaped
from kafkalite.records.record import Record

FULL = Record(7, 1_700_000_000_123, b"k\xff", b"a%s\\n", ((b"x", b"1"), (b"y", None)))
NULL = Record(8, -1, None, None)


@pytest.mark.parametrize(
    ("shape", "full", "null"),
    [
        ("%s", b"a%s\\n", b"NULL"),
        ("%k", b"k\xff", b"NULL"),
        ("%S %K", b"5 2", b"-1 -1"),
        ("%t %p %o %T", b"topic 3 7 1700000000123", b"topic 3 8 -1"),
        ("%h", b"x=1,y=NULL", b""),
        (r"%%|\n\t\r\\\x41\x0|\0", b"%|\n\t\r\\A\0|\0", b"%|\n\t\r\\A\0|\0"),
        ("ü%o", "ü7".encode(), "ü8".encode()),
        ("", b"", b""),
    ],
)
def test_tokens(shape: str, full: bytes, null: bytes) -> None:
    show = printer(shape, b"NULL")
    assert (show("topic", 3, FULL), show("topic", 3, NULL)) == (full, null)


def test_null_prints_nothing_unless_asked() -> None:
    assert printer("<%k:%s>")("topic", 0, NULL) == b"<:>"


@pytest.mark.parametrize("shape", ["%", "%q", "a%", r"\q", "\\", r"%s\q"])
def test_what_is_no_format_is_refused(shape: str) -> None:
    with pytest.raises(BadFormat):
        printer(shape)


def test_escapes() -> None:
    assert unescaped(r"a\tb\x1eé\\n") == "a\tb\x1eé\\n".encode()
