"""One setting: its facts, how its text becomes a value, and how a value becomes text.

Owns Kafka's types and validators, and the sentences with which Kafka refuses a value. Never knows
where a value came from. Invariant: `parse(render(value)) == value` for every accepted value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum

Value = bool | int | float | str | list[str] | None

LONGEST_NUMBER = 1000


class InvalidSetting(ValueError):
    """A value that the setting does not take; the message is the one Kafka gives."""


class Requirement(InvalidSetting):
    """A rule over several settings that Kafka calls a requirement when it refuses a change."""


class Kind(IntEnum):
    """The types of Kafka's settings; the numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Update(Enum):
    """How a setting may change while the broker runs."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"
    # A broker setting that has no place in a file: only AlterConfigs sets it.
    DYNAMIC_ONLY = "dynamic-only"
    # Topic, group and subscription settings are always dynamic.
    DYNAMIC = "dynamic"


BITS = {Kind.INT: 32, Kind.SHORT: 16, Kind.LONG: 64}
Check = Callable[[str, Value], None]


@dataclass(slots=True, frozen=True)
class Setting:
    """One row of the tables; `ignored` says why it has no effect here, None that it has one."""

    name: str
    kind: Kind
    default_text: str | None
    required: bool
    check: Check
    importance: str
    update: Update
    doc: str
    section: str = ""
    ignored: str | None = None
    internal: bool = False
    # A list may hold an item twice.
    keeps_twins: bool = False
    # Text of Apache Kafka's own default, where ours is another.
    kafka_default_text: str | None = None

    @property
    def sensitive(self) -> bool:
        """A value of this setting is never shown."""
        return self.kind is Kind.PASSWORD

    @property
    def has_static(self) -> bool:
        """A file may name it, and its default is one of the values it has."""
        return self.update is not Update.DYNAMIC_ONLY

    @property
    def dynamic(self) -> bool:
        """The value may change while the broker runs."""
        return self.update is not Update.READ_ONLY

    def parse(self, text: str | None) -> Value:
        """The value that a text means; raises InvalidSetting as Kafka would."""
        value = None if text is None else convert(self.name, text, self.kind)
        if isinstance(value, list) and not self.keeps_twins:
            value = list(dict.fromkeys(value))
        self.check(self.name, value)
        return value

    def normal(self, text: str) -> str | None:
        """The text that Kafka shows in place of this one, which it accepted."""
        return render(self.parse(text))

    def default(self) -> Value:
        """The value where nobody set one; defaults are not checked, as in Kafka."""
        text = self.default_text
        return None if text is None else convert(self.name, text, self.kind)


# What Java's `trim` takes off, and what separates the items of a list; both are ASCII only.
TRIMMED = "".join(map(chr, range(33)))
COMMA = re.compile(r"\s*,\s*", re.ASCII)


def convert(name: str, text: str, kind: Kind) -> Value:
    """A text in the given type, surrounding blanks dropped."""
    trimmed = text.strip(TRIMMED)
    if kind is Kind.BOOLEAN:
        return _boolean(name, text, trimmed)
    if kind in BITS:
        return _integer(name, text, trimmed, kind)
    if kind is Kind.DOUBLE:
        return _double(name, text, trimmed)
    if kind is Kind.LIST:
        return COMMA.split(trimmed) if trimmed else []
    return trimmed


def _boolean(name: str, text: str, trimmed: str) -> bool:
    lowered = trimmed.lower()
    if lowered not in ("true", "false"):
        raise refusal(name, text, "Expected value to be either true or false")
    return lowered == "true"


def _integer(name: str, text: str, trimmed: str, kind: Kind) -> int:
    number = whole_number(trimmed)
    bound = 1 << (BITS[kind] - 1)
    if number is None or not -bound <= number < bound:
        raise refusal(name, text, f"Not a number of type {kind.name}")
    return number


def whole_number(text: str) -> int | None:
    """What Java's `parseInt` takes: a sign and decimal digits, of any script of the first plane."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    # Python would also take "1_000", and more digits than anybody wants to wait for.
    if not 0 < len(digits) <= LONGEST_NUMBER or not all(map(_is_digit, digits)):
        return None
    return int(text)


def _is_digit(character: str) -> bool:
    return character.isdecimal() and character <= "\uffff"


def _double(name: str, text: str, trimmed: str) -> float:
    if DECIMAL.fullmatch(trimmed):
        return float(trimmed.rstrip("dDfF"))
    if HEXADECIMAL.fullmatch(trimmed):
        return _hexadecimal(trimmed)
    if re.fullmatch(r"[+-]?(NaN|Infinity)", trimmed):
        return float(trimmed)
    raise refusal(name, text, "Not a number of type DOUBLE")


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text.rstrip("dDfF"))
    except OverflowError:
        return -math.inf if text.startswith("-") else math.inf


DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
HEXADECIMAL = re.compile(
    r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?"
)


def refusal(name: str, value: object, why: str) -> InvalidSetting:
    """Kafka's sentence for a bad value."""
    return InvalidSetting(f"Invalid value {value} for configuration {name}: {why}")


def render(value: Value) -> str | None:
    """The text that stands for a value, as Kafka writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    if isinstance(value, float):
        return _render_double(value)
    return str(value)


def _render_double(value: float) -> str:
    """Java's text of a double: plain from 0.001 to 10 million, else like 1.5E10."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    if abs(value) == 5e-324:  # Java writes the least of all with two digits
        return "4.9E-324" if value > 0 else "-4.9E-324"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"
