"""Listeners as server.properties writes them: NAME://HOST:PORT.

Owns that syntax and the map from listener names to security protocols. Opens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from kafkalite.config.setting import COMMA, InvalidSetting

FORM = re.compile(
    r"(?P<name>[^:]+)://(\[(?P<six>[^\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>-?[0-9]{1,6})"
)
PLAINTEXT, SSL = "PLAINTEXT", "SSL"
SASL_PLAINTEXT, SASL_SSL = "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
SASL_PROTOCOLS = (SASL_PLAINTEXT, SASL_SSL)  # those that have peers log in
# The kinds of listeners, as the specs of APIs have them.
BROKER, CONTROLLER = "broker", "controller"


@dataclass(slots=True, frozen=True)
class Listener:
    """One address; an empty host means every address of this machine."""

    name: str
    host: str
    port: int
    protocol: str
    kind: str = BROKER

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_listeners(
    setting: str,
    texts: list[str],
    protocols: dict[str, str],
    controllers: Collection[str] = (),
) -> list[Listener]:
    """The listeners of a list, each with its security protocol, and for controllers those of such
    names; raises InvalidSetting."""
    listeners = [_listener(setting, text, protocols, controllers) for text in texts]
    shown = ",".join(texts)
    names = [listener.name for listener in listeners]
    if len(set(names)) < len(names):
        raise InvalidSetting(f"Each listener must have a different name, {setting}: {shown}")
    ports = [(x.host, x.port) for x in listeners if x.port > 0]
    if setting == "listeners" and len(set(ports)) < len(ports):
        raise InvalidSetting(f"Each listener must have a different port, {setting}: {shown}")
    return listeners


def _listener(
    setting: str, text: str, protocols: dict[str, str], controllers: Collection[str]
) -> Listener:
    match = FORM.fullmatch(text)
    if match is None:
        raise InvalidSetting(f"Unable to parse {text} to a broker endpoint, {setting}")
    name, port = match["name"].upper(), int(match["port"])
    if not 0 <= port <= 65535:
        raise InvalidSetting(f"Port {port} of {text} is not between 0 and 65535, {setting}")
    if name not in protocols:
        raise InvalidSetting(
            f"No security protocol defined for listener {name}: "
            f"add {name}:PLAINTEXT to listener.security.protocol.map"
        )
    host = match["six"] if match["six"] is not None else match["host"]
    kind = CONTROLLER if name in controllers else BROKER
    return Listener(name, host, port, protocols[name], kind)


def protocol_map(text: str) -> dict[str, str]:
    """Security protocol by listener name; CONTROLLER is known without being listed, as in Kafka."""
    protocols = {"CONTROLLER": "PLAINTEXT"}
    for item in filter(None, re.split(r"\s*,\s*", text.strip())):
        name, separator, protocol = item.rpartition(":")
        if not separator or protocol.upper() not in PROTOCOLS:
            raise InvalidSetting(f"listener.security.protocol.map: {item} is not NAME:PROTOCOL")
        protocols[name.upper()] = protocol.upper()
    return protocols


def pairs_of(name: str, text: str) -> dict[str, str]:
    """The map that a text of `key:value,key:value` stands for; the last colon divides."""
    pairs = {}
    items = COMMA.split(text) if text else []
    while items and not items[-1]:  # as Java's split does
        items.pop()
    for item in items:
        key, colon, value = item.rpartition(":")
        if not colon:
            why = f"begin 0, end -1, length {len(item)}"
            raise InvalidSetting(f"Error parsing configuration property '{name}': {why}")
        pairs[key.strip()] = value.strip()
    return pairs
