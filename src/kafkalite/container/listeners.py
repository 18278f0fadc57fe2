"""Listeners as other images derive them: those that are advertised, on every address."""

from __future__ import annotations

import re
from collections.abc import Mapping

PORT = "9092"
ANY_ADDRESS = "0.0.0.0"
_LISTENER = re.compile(r"(?P<name>[^:]+)://(?P<host>.*):(?P<port>[^:]*)")


def complete_listeners(found: dict[str, str], environment: Mapping[str, str]) -> list[str]:
    """Puts in what the settings found leave out, and returns what is to be said of it. A host that
    is left empty is told to each client as it has reached the broker."""
    _take_old_address(found, environment)
    advertised = _items(found.pop("advertised.listeners", ""))
    if advertised and "listeners" not in found:
        found["listeners"] = ",".join(_on_any_address(each) for each in advertised)
    elif "listeners" in found:
        found["listeners"] = ",".join(_items(found["listeners"]))
    told = [each for each in advertised if _part(each, "host")]
    if told:
        found["advertised.listeners"] = ",".join(map(_at_one_host, told))
    return [
        f"{each} names several hosts, and clients are told the first"
        for each in told
        if each != _at_one_host(each)
    ]


def _take_old_address(found: dict[str, str], environment: Mapping[str, str]) -> None:
    """Older images have variables for what is advertised, and listen at KAFKA_PORT."""
    host = _first_of(environment, "KAFKA_ADVERTISED_HOST_NAME", "ADVERTISED_HOST_NAME")
    if host and "advertised.listeners" not in found:
        told = _first_of(environment, "KAFKA_ADVERTISED_PORT", "ADVERTISED_PORT")
        port = environment.get("KAFKA_PORT", "").strip()
        port = port if port.isdecimal() else PORT  # Kubernetes has an address there
        found["advertised.listeners"] = f"PLAINTEXT://{host}:{told or port}"
        found.setdefault("listeners", f"PLAINTEXT://{ANY_ADDRESS}:{port}")


def _first_of(environment: Mapping[str, str], *variables: str) -> str:
    values = (environment.get(variable, "").strip() for variable in variables)
    return next(filter(None, values), "")


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _part(listener: str, part: str) -> str:
    match = _LISTENER.fullmatch(listener)
    return match[part] if match else listener  # one that is none is refused where it is read


def _on_any_address(listener: str) -> str:
    match = _LISTENER.fullmatch(listener)
    return f"{match['name']}://{ANY_ADDRESS}:{match['port']}" if match else listener


def _at_one_host(listener: str) -> str:
    """A container in two networks has two addresses, and `hostname -i` says both."""
    match = _LISTENER.fullmatch(listener)
    if match is None or len(match["host"].split()) < 2:
        return listener
    return f"{match['name']}://{match['host'].split()[0]}:{match['port']}"
