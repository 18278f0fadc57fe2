"""How `kafkalite consume` prints a record, in the format tokens of kcat; and escapes as people type
them.

    %t topic   %p partition   %o offset   %T time in milliseconds   %h headers, k=v,k=v
    %k key     %K its length  %s value    %S its length             %% a per cent sign

A key or value that is null prints nothing (or a text of one's own), and its length is -1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from os import fsencode

from kafkalite.records.record import Record

Printed = Callable[[str, int, Record], bytes]

_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|.)", re.DOTALL)
_NAMED = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
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


def printer(text: str, null: bytes = b"") -> Printed:
    """A function from topic, partition and record to bytes; BadFormat when it cannot be one."""
    parts: list[bytes | Printed] = []
    position = 0
    for match in _PART.finditer(text):
        if match.start() != position:
            break
        position = match.end()
        parts.append(unescaped(match[2]) if match[1] is None else _token(match[1], null))
    if position < len(text):
        raise BadFormat(f"{text!r} ends in %; %% is one")

    def show(topic: str, partition: int, record: Record) -> bytes:
        return b"".join(
            part if isinstance(part, bytes) else part(topic, partition, record) for part in parts
        )

    return show


def _token(name: str, null: bytes) -> bytes | Printed:
    tokens: dict[str, bytes | Printed] = {
        "%": b"%",
        "t": lambda topic, _, __: topic.encode(),
        "p": lambda _, partition, __: b"%d" % partition,
        "o": lambda _, __, record: b"%d" % record.offset,
        "T": lambda _, __, record: b"%d" % record.timestamp,
        "k": lambda _, __, record: null if record.key is None else record.key,
        "s": lambda _, __, record: null if record.value is None else record.value,
        "K": lambda _, __, record: _length(record.key),
        "S": lambda _, __, record: _length(record.value),
        "h": lambda _, __, record: _headers(record),
    }
    if name not in tokens:
        raise BadFormat(f"%{name} is none of {' '.join(f'%{each}' for each in tokens)}")
    return tokens[name]


def _length(field: bytes | None) -> bytes:
    return b"%d" % (-1 if field is None else len(field))


def _headers(record: Record) -> bytes:
    return b",".join(
        name + b"=" + (b"NULL" if value is None else value) for name, value in record.headers
    )
