"""Where brokers are, as people write it: HOST:PORT, several with commas, IPv6 in brackets."""

from __future__ import annotations

Address = tuple[str, int]

HIGHEST_PORT = 65_535


def addresses(text: str) -> list[Address]:
    """ValueError when it is none."""
    found = [_address(each.strip()) for each in text.split(",") if each.strip()]
    if not found:
        raise ValueError(f"{text!r}: expected HOST:PORT, several with commas")
    return found


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > HIGHEST_PORT:
        raise ValueError(f"{text!r}: expected HOST:PORT, several with commas")
    return host.strip("[]"), int(port)
