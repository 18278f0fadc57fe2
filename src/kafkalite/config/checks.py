"""Which values a setting takes: Kafka's validators, read from the VALID column of the tables.

Owns the sentences of refusal. Never converts a value: it is given one of the setting's type.
"""

from __future__ import annotations

import re

from kafkalite.config.setting import (
    Check,
    InvalidSetting,
    Kind,
    Value,
    refusal,
    render,
    whole_number,
)

MOST_SECONDS = 1 << 63  # that Java has a duration of


def check_for(column: str, kind: Kind) -> Check:
    """The check that a VALID column stands for."""
    if column == "-":
        return anything
    named = NAMED.get(column)
    if named is not None:
        return named
    if column.startswith("caseless:"):
        return _caseless(column.removeprefix("caseless:").split("|"))
    if kind is Kind.LIST:
        return _list_of(column)
    if column == "nonempty":
        return _not_empty
    if kind is Kind.STRING:
        return _one_of(column.split("|"))
    return _numbers(column)


def anything(name: str, value: Value) -> None:
    """Takes every value."""


def _numbers(column: str) -> Check:
    if column == "-1|1..9":
        return _gzip_level
    least, _, most = column.removeprefix(">=").partition("..")
    low, high = float(least), float(most) if most else None

    def check(name: str, value: Value) -> None:
        if not isinstance(value, (int, float)):
            raise refusal(name, "null", "Value must be non-null")
        if value < low:
            raise refusal(name, render(value), f"Value must be at least {least}")
        if high is not None and value > high:
            raise refusal(name, render(value), f"Value must be no more than {most}")

    return check


def _gzip_level(name: str, value: Value) -> None:
    if not isinstance(value, int) or (value != -1 and not 1 <= value <= 9):
        raise refusal(name, value, "Value must be between 1 and 9 or equal to -1")


def _one_of(words: list[str]) -> Check:
    def check(name: str, value: Value) -> None:
        if value not in words:
            shown = "null" if value is None else value
            raise refusal(name, shown, f"String must be one of: {', '.join(words)}")

    return check


def _caseless(words: list[str]) -> Check:
    def check(name: str, value: Value) -> None:
        if not isinstance(value, str) or value.upper() not in words:
            why = f"String must be one of (case insensitive): {', '.join(words)}"
            raise refusal(name, value, why)

    return check


def _list_of(column: str) -> Check:
    parts = column.split(",")
    words = [
        word for part in parts if part not in ("nonempty", "distinct") for word in part.split("|")
    ]
    each = _one_of(words) if words else anything

    def check(name: str, value: Value) -> None:
        if not isinstance(value, list):
            raise InvalidSetting(f"Configuration '{name}' values must not be null.")
        if "nonempty" in parts and not value:
            shown = f"[{', '.join(words)}]" if words else "any non-empty value"
            raise InvalidSetting(
                f"Configuration '{name}' must not be empty. Valid values include: {shown}"
            )
        for item in value:
            if not item:
                raise InvalidSetting(f"Configuration '{name}' values must not be empty.")
            each(name, item)

    return check


def _not_empty(name: str, value: Value) -> None:
    if value == "":
        raise refusal(name, "", "String must be non-empty")


def _throttled_replicas(name: str, value: Value) -> None:
    items = value if isinstance(value, list) else []
    are_replicas = all(re.fullmatch(r"([0-9]+:[0-9]+)?", item) for item in items)
    if not are_replicas and "".join(items) != "*":
        why = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        raise refusal(name, f"[{', '.join(items)}]", why)


def _voters(name: str, value: Value) -> None:
    for item in value if isinstance(value, list) else []:
        if not re.fullmatch(r"[0-9]+@\[?[^@\]]+\]?:[0-9]+", item):
            raise refusal(name, item, "Expected a voter as ID@HOST:PORT")


def _bootstrap_servers(name: str, value: Value) -> None:
    for item in value if isinstance(value, list) else []:
        if not re.fullmatch(r"\[?[^@\]]+\]?:[0-9]+", item):
            raise refusal(name, item, "Expected a server as HOST:PORT")


# As Java writes a duration: days, hours, minutes and seconds, each with a sign of its own.
DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(?:T(?=.)(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)


def _share_reset(name: str, value: Value) -> None:
    text = str(value)
    is_word = text in ("latest", "earliest")
    if not is_word and not _is_duration(text.removeprefix("by_duration:"), text):
        why = (
            f"Invalid value `{text}` for configuration {name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise refusal(name, value, why)


def _is_duration(text: str, whole: str) -> bool:
    """Whether it is one, and not a negative one."""
    match = DURATION.fullmatch(text)
    if match is None or text == whole or not any(match.groups()[1:5]):
        return False
    parts = [whole_number(each or "0") for each in match.groups()[1:5]]
    total = 0
    for part, times in zip(parts, (24, 60, 60, 1), strict=True):
        if part is None:
            return False
        total = (total + part) * times
    if abs(total) >= MOST_SECONDS:
        return False
    return total >= 0 if match[1] != "-" else total <= 0


NAMED: dict[str, Check] = {
    "throttled-replicas": _throttled_replicas,
    "voters": _voters,
    "bootstrap-servers": _bootstrap_servers,
    "share-reset": _share_reset,
}
