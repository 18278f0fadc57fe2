"""The settings of a tool's producer or consumer: a file, key=value words, options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkalite.tools.asking import refuse_security, settings_of
from kafkalite.tools.failures import wrong_setting
from kafkalite.tools.options import Given


@dataclass(frozen=True, slots=True)
class Number:
    """A setting that is a number; None where it may be any."""

    name: str
    default: int
    least: int | None = 0
    is_long: bool = True


def client_settings(given: Given, file: str, pairs: str) -> dict[str, str]:
    """Of the options that name a file and pairs; a pair wins."""
    found = settings_of(given.one(file)) | key_values(given.all(pairs))
    refuse_security(found, f"--{pairs}")
    return found


def key_values(words: Iterable[str]) -> dict[str, str]:
    found = {}
    for word in words:
        key, _, value = word.partition("=")
        found[key] = value
    return found


def numbers(settings: Mapping[str, str], known: Iterable[Number]) -> dict[str, int]:
    """The numbers among the settings, or their defaults."""
    return {each.name: _number(settings, each) for each in known}


def _number(settings: Mapping[str, str], number: Number) -> int:
    if number.name not in settings:
        return number.default
    text = settings[number.name].strip()
    try:
        value = int(text)
    except ValueError:
        kind = "LONG" if number.is_long else "INT"
        raise wrong_setting(
            f"Invalid value {text} for configuration {number.name}: Not a number of type {kind}"
        ) from None
    if number.least is not None and value < number.least:
        raise wrong_setting(
            f"Invalid value {value} for configuration {number.name}: Value must be at least "
            f"{number.least}"
        )
    return value


def choice(settings: Mapping[str, str], name: str, known: Iterable[str], default: str) -> str:
    """One of those that a setting may be."""
    value = settings.get(name, default)
    if value not in known:
        raise wrong_setting(
            f"Invalid value {value} for configuration {name}: String must be one of: "
            f"{', '.join(known)}"
        )
    return value
