"""Reads files of Java properties: `key=value`, `key: value`, `key value`.

Owns that syntax: comments with # or !, lines continued by a backslash, escapes \\t \\n \\r \\f
\\uXXXX. Never knows which keys exist. A key given twice keeps its last value, as in Java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
BLANKS = " \t\f"


class MalformedProperties(ValueError):
    """A text that Java would refuse: an escape without four hexadecimal digits."""


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values of a properties text, in the order they stand there."""
    values: dict[str, str] = {}
    for number, line in logical_lines(text):
        key, value = _split(line)
        try:
            values[_unescape(key)] = _unescape(value)
        except MalformedProperties as error:
            raise MalformedProperties(f"line {number}: {error}") from None
    return values


def as_properties(values: Mapping[str, str]) -> str:
    """A text that is read as these values; keys are names of settings."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in values.items())


def _escaped(value: str) -> str:
    value = value.replace("\\", "\\\\")
    for letter, character in ESCAPES.items():
        value = value.replace(character, f"\\{letter}")
    value = "".join(each if each.isascii() else _as_escapes(each) for each in value)
    return f"\\{value}" if value.startswith(" ") else value


def _as_escapes(character: str) -> str:
    """Java reads Latin-1, and others UTF-8."""
    code = character.encode("utf-16-be").hex()
    return "".join(f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4))


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined, each with the number of its first line."""
    pending, start = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = raw.lstrip(BLANKS)
        if not start and (not line or line[0] in "#!"):
            continue
        start = start or number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield start, pending + line
        pending, start = "", 0
    if start and pending:
        yield start, pending


def _split(line: str) -> tuple[str, str]:
    """Key and value: the key ends at the first unescaped =, : or blank."""
    end = 0
    while end < len(line) and line[end] not in "=:" + BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(BLANKS)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = re.sub(r"\\(u.{0,4}|.|$)", _escape, text, flags=re.DOTALL)
    # Characters beyond the first plane are written as two escapes.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape(match: re.Match[str]) -> str:
    code = match[1]
    if not code.startswith("u"):
        return ESCAPES.get(code, code)
    if not re.fullmatch(r"u[0-9a-fA-F]{4}", code):
        raise MalformedProperties("Malformed \\uxxxx encoding.")
    return chr(int(code[1:], 16))
