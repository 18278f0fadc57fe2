"""How `kafkalite consume` prints a record, in the format tokens of kcat; and escapes as people type
them.

    %t topic   %p partition   %o offset   %T time in milliseconds   %h headers, k=v,k=v
    %k key     %K its length  %s value    %S its length             %% a per cent sign
    %R the value's length in four bytes, the highest first

A key or value that is null prints nothing (or a text of one's own), and its length is -1.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import partial
from os import fsencode
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafkalite.records.batch import BatchHeader
    from kafkalite.records.record import Record


class Printed(Protocol):
    """What a record looks like, with its topic, partition and batch."""

    def __call__(
        self, topic: str, partition: int, record: Record, header: BatchHeader | None = None, /
    ) -> bytes: ...


_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_NAMED = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_FRAME = struct.Struct(">i")
_PART = re.compile(r"%(.)|([^%]+)", re.DOTALL)


class BadFormat(ValueError):
    """What was typed, and what may be."""


def unescaped(text: str) -> bytes:
    r"""The bytes that a text stands for: those that were typed, and \n, \t, \r, \0, \\ and \xHH."""
    found, position = bytearray(), 0
    for match in _ESCAPE.finditer(text):
        found += fsencode(text[position : match.start()])
        name = match[1]
        if name[0] == "x" and len(name) > 1:
            found.append(int(name[1:], 16))
        elif name in _NAMED:
            found += _NAMED[name]
        else:
            raise BadFormat(rf"\{name} is no escape: there are \n \t \r \0 \\ and \xHH")
        position = match.end()
    if text[position:].endswith("\\"):
        raise BadFormat(rf"{text!r} ends in a backslash; \\ is one")
    return bytes(found + fsencode(text[position:]))


def printer(text: str, null: bytes = b"", shown: Callable[[bytes], bytes] | None = None) -> Printed:
    """A function from topic, partition and record to bytes; BadFormat when it cannot be one.

    shown: what becomes of the bytes of a field before they are printed."""
    template, fields, position = b"", [], 0
    for match in _PART.finditer(text):
        if match.start() != position:
            break
        position = match.end()
        if match[1] is None:
            template += unescaped(match[2]).replace(b"%", b"%%")
        elif match[1] not in _TOKENS:
            names = " ".join(f"%{each}" for each in _TOKENS)
            raise BadFormat(f"%{match[1]} is none of {names}")
        else:
            kind, field = _TOKENS[match[1]]
            template += kind
            fields += [field.format("shown" if shown else "")] if field else []
    if position < len(text):
        raise BadFormat(f"{text!r} ends in %; %% is one")
    known = {
        "template": template, "null": null, "shown": shown, "length": _length,
        "frame": _FRAME.pack, "pairs": partial(_headers, shown or bytes),
    }  # fmt: skip
    values = "".join(f"{each}, " for each in fields)
    code = f"lambda topic, partition, record, header=None: template % ({values})"
    made: Printed = eval(code, known)
    return made


def around_value(text: str) -> tuple[bytes, bytes] | None:
    """What a format has before the value and behind it, when there is nothing else in it."""
    before, token, behind = text.partition("%s")
    if not token or "%" in before + behind:
        return None
    return unescaped(before), unescaped(behind)


# How bytes.__mod__ is told of each, and what; straight-line code costs a third of calls.
_TOKENS = {
    "t": (b"%b", "topic.encode()"),
    "p": (b"%d", "partition"),
    "o": (b"%d", "record.offset"),
    "T": (b"%d", "record.timestamp"),
    "k": (b"%b", "null if record.key is None else {0}(record.key)"),
    "s": (b"%b", "null if record.value is None else {0}(record.value)"),
    "K": (b"%d", "length(record.key)"),
    "S": (b"%d", "length(record.value)"),
    "R": (b"%b", "frame(length(record.value))"),
    "h": (b"%b", "pairs(record)"),
    "%": (b"%%", ""),
}


def _length(field: bytes | None) -> int:
    return -1 if field is None else len(field)


def _headers(shown: Callable[[bytes], bytes], record: Record) -> bytes:
    return b",".join(
        shown(name) + b"=" + (b"NULL" if value is None else shown(value))
        for name, value in record.headers
    )


def readable(field: bytes) -> bytes:
    r"""What a terminal can be given: text as it is, and \xHH for what would command it."""
    text = field.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text.encode()
    return "".join(
        each if each.isprintable() or each in "\n\t" else
        each.encode("unicode_escape").decode()
        for each in text
    ).encode()  # fmt: skip
