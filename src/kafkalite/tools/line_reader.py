"""What `kafka-console-producer` makes of a line: headers, a key and a value, where they are parsed.

Owns the separators and what is wrong with a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kafkalite.client.producing import Headers
from kafkalite.tools.failures import kafka

_USUAL = {
    "key.separator": "\t",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
}
# Those of which each two must differ, in the order in which they are looked at.
_DIFFERENT = (
    ("headers.delimiter", "headers.separator"), ("headers.delimiter", "headers.key.separator"),
    ("headers.separator", "headers.key.separator"), ("null.marker", "key.separator"),
    ("null.marker", "headers.separator"), ("null.marker", "headers.delimiter"),
    ("null.marker", "headers.key.separator"),
)  # fmt: skip


@dataclass(slots=True)
class TypedRecord:
    key: bytes | None
    value: bytes | None
    headers: Headers


class LineReader:
    """properties: those of Apache Kafka's LineMessageReader."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        given = {**_USUAL, **properties}
        for one, other in _DIFFERENT:
            if given.get(one) == given.get(other):
                raise kafka(f"{one} and {other} may not be equal")
        self._key_separator, self._delimiter = given["key.separator"], given["headers.delimiter"]
        self._between = re.compile(given["headers.separator"])
        self._behind_name = given["headers.key.separator"]
        self._null = given.get("null.marker")
        self._has_key = is_true(given, "parse.key")
        self._has_headers = is_true(given, "parse.headers")
        self._ignores_errors = is_true(given, "ignore.error")
        self._number = 0

    def record(self, line: str) -> TypedRecord:
        """The next line as a record."""
        self._number += 1
        rest, headers, key = line, None, None
        if self._has_headers:
            headers, rest = self._cut(line, rest, self._delimiter, "headers delimiter")
        if self._has_key:
            key, rest = self._cut(line, rest, self._key_separator, "key separator")
        pairs = () if headers is None or headers == self._null else self._pairs(headers)
        return TypedRecord(self._bytes(key), self._bytes(rest), pairs)

    def _cut(self, line: str, rest: str, separator: str, name: str) -> tuple[str | None, str]:
        before, found, behind = rest.partition(separator)
        if found:
            return before, behind
        if self._ignores_errors:
            return None, rest
        raise kafka(f"No {name} found on line number {self._number}: '{line}'")

    def _pairs(self, text: str) -> Headers:
        parts = self._between.split(text)
        while len(parts) > 1 and not parts[-1]:  # Java leaves those at the end out
            parts.pop()
        return tuple(self._pair(part) for part in parts)

    def _pair(self, part: str) -> tuple[str, bytes | None]:
        name, found, value = part.partition(self._behind_name)
        if not found:
            if self._ignores_errors:
                return part, None
            raise kafka(
                f"No header key separator found in pair '{part}' on line number {self._number}"
            )
        if name == self._null:
            raise kafka(
                f"Header keys should not be equal to the null marker '{self._null}' as they can't "
                "be null"
            )
        return name, self._bytes(value)

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self._null else text.encode()


def is_true(properties: Mapping[str, str], name: str) -> bool:
    return properties.get(name, "").strip().lower() == "true"
