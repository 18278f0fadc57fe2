"""The settings of a tool's client: a file, key=value words, options.

Security comes later: settings that ask for it are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkalite.tools.failures import wrong_setting
from kafkalite.tools.files import read_properties
from kafkalite.tools.java_numbers import INT, LONG, whole
from kafkalite.tools.options import Given
from kafkalite.tools.running import tell


@dataclass(frozen=True, slots=True)
class Number:
    """A setting that is a number; None where it may be any."""

    name: str
    default: int
    least: int | None = 0
    is_long: bool = True


_PROTOCOLS = ("SASL_SSL", "PLAINTEXT", "SSL", "SASL_PLAINTEXT")


def settings_of(config: str | None) -> dict[str, str]:
    """Those of a file."""
    if config is None:
        return {}
    settings = read_properties(config)
    refuse_security(settings, config)
    return settings


def refuse_security(settings: Mapping[str, str], where: str) -> None:
    protocol = settings.get("security.protocol", "PLAINTEXT")
    if protocol.strip().upper() not in _PROTOCOLS:
        raise wrong_setting(
            f"Invalid value {protocol.strip()} for configuration security.protocol: String must be "
            f"one of (case insensitive): {', '.join(_PROTOCOLS)}"
        )
    if protocol.strip().upper() != "PLAINTEXT":
        tell(
            f"{where}: security.protocol={protocol} is not there yet in kafkalite's tools: use "
            "PLAINTEXT, or Apache Kafka's own tools"
        )
        sys.exit(1)


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
        value = whole(text, LONG if number.is_long else INT)
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
    value = settings.get(name, default).strip()
    if value not in known:
        raise wrong_setting(
            f"Invalid value {value} for configuration {name}: String must be one of: "
            f"{', '.join(known)}"
        )
    return value
