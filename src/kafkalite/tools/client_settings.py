"""The settings of a tool's client: a file, key=value words, options; and how it comes to brokers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkalite.security.client_login import OPEN, Security
from kafkalite.tools.failures import kafka, wrong_setting
from kafkalite.tools.files import read_properties
from kafkalite.tools.java_numbers import INT, LONG, whole
from kafkalite.tools.options import Given


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
    return read_properties(config)


def security_in(settings: Mapping[str, str], told: str) -> Security:
    """How a client comes to brokers; the failure of one that cannot be made, which begins with what
    is told."""
    protocol = settings.get("security.protocol", "PLAINTEXT").strip()
    if protocol.upper() not in _PROTOCOLS:
        raise wrong_setting(
            f"Invalid value {protocol} for configuration security.protocol: String must be "
            f"one of (case insensitive): {', '.join(_PROTOCOLS)}"
        )
    if protocol.upper() == "PLAINTEXT":
        return OPEN
    from kafkalite.config.setting import InvalidSetting  # all of config comes along
    from kafkalite.security.client_settings import security_of

    try:
        return security_of({**_logins(settings), **settings})
    except InvalidSetting as error:
        raise kafka(told, wrong_setting(str(error))) from None


def _logins(settings: Mapping[str, str]) -> dict[str, str]:
    """Of the JAAS file that a JVM would be told of."""
    from kafkalite.security.login_file import client_line, named_in, read

    file = named_in(os.environ.get("KAFKA_OPTS", ""))
    if file is None or "sasl.jaas.config" in settings:
        return {}
    line = client_line(read(file), settings.get("sasl.mechanism", "").strip())
    return {} if line is None else {"sasl.jaas.config": line}


def client_settings(given: Given, file: str, pairs: str) -> dict[str, str]:
    """Of the options that name a file and pairs; a pair wins."""
    return settings_of(given.one(file)) | key_values(given.all(pairs))


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
