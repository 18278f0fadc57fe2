"""What a page sends, read one field at a time.

Owns the limits of each field. Whatever does not fit is a Mistake, one sentence for a person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_TEXT = 1_000_000
MOST_NAME = 32_767  # as long as a string of the protocol may be
SHOWN = 60
HIGHEST = (1 << 63) - 1


class Mistake(ValueError):
    """What was sent cannot be meant."""


@dataclass(slots=True, frozen=True)
class Given:
    """The fields of a request."""

    fields: Mapping[str, Any]

    def text(self, name: str, default: str | None = None, most: int = MOST_NAME) -> str:
        value = self.fields.get(name, default)
        if not isinstance(value, str):
            raise Mistake(f"{name}: expected a text")
        if len(value) > most:
            raise Mistake(f"{name}: has {len(value)} characters, {most} are the most")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Mistake(f"{name}: has half a character, which is not UTF-8") from None
        return value

    def name(self, name: str) -> str:
        """A text that is not empty."""
        if not (value := self.text(name)):
            raise Mistake(f"{name}: is empty")
        return value

    def choice(self, name: str, choices: Sequence[str], default: str | None = None) -> str:
        value = self.fields.get(name, default)
        if value not in choices:
            raise Mistake(f"{name}: expected one of {', '.join(choices)}")
        return str(value)

    def number(
        self, name: str, default: int | None = None, low: int = 0, high: int = HIGHEST
    ) -> int:
        value = _number(name, self.fields.get(name, default))
        if not low <= value <= high:
            raise Mistake(f"{name}: {value} is not from {low} to {high}")
        return value

    def flag(self, name: str) -> bool:
        value = self.fields.get(name, False)
        if not isinstance(value, bool):
            raise Mistake(f"{name}: expected true or false")
        return value

    def numbers(self, name: str) -> list[int]:
        found = [_number(name, each) for each in self._list(name)]
        if any(not 0 <= each < 1 << 31 for each in found):
            raise Mistake(f"{name}: expected numbers of partitions")
        return found

    def names(self, name: str) -> list[str]:
        return [Given({name: each}).name(name) for each in self._list(name)]

    def pairs(self, name: str) -> dict[str, str]:
        """Texts by texts."""
        value = self._mapping(name)
        return {str(key): Given({key: each}).text(key, most=MOST_TEXT)
                for key, each in value.items()}  # fmt: skip

    def places(self, name: str) -> dict[int, int]:
        """Offsets by partition, which is text in JSON."""
        found = {}
        for key, value in self._mapping(name).items():
            number = _number(name, value)
            if not str(key).isdecimal() or not 0 <= number <= HIGHEST:
                raise Mistake(f"{name}: {key!r:.{SHOWN}} is no partition with its offset")
            found[_number(name, str(key))] = number
        return found

    def has(self, name: str) -> bool:
        return self.fields.get(name) is not None

    def _list(self, name: str) -> list[Any]:
        value = self.fields.get(name, [])
        if not isinstance(value, list):
            raise Mistake(f"{name}: expected a list")
        return value

    def _mapping(self, name: str) -> dict[Any, Any]:
        value = self.fields.get(name, {})
        if not isinstance(value, dict):
            raise Mistake(f"{name}: expected an object")
        return value


def _number(name: str, value: object) -> int:
    """From JSON a number, from an address its digits, also below 0."""
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) < 20:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Mistake(f"{name}: expected a whole number")
    return value
