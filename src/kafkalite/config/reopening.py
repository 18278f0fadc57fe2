"""Changes of `listeners` while a broker runs: what Kafka says to them.

A broker here listens where it was told at its start, and a change that a client asks for never
moves it: Kafka moves none of the listeners it has either. A name that is new would have to be
opened, and is refused; so is a change that would close one.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from typing import TYPE_CHECKING

from kafkalite.config.listeners import PROTOCOLS, pairs_of
from kafkalite.config.setting import InvalidSetting, Requirement

if TYPE_CHECKING:
    from kafkalite.config.broker import BrokerConfig

LISTENERS, MAP = "listeners", "listener.security.protocol.map"
ENDPOINT = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
CONTROLLERS = "controller.listener.names"


def check_listeners(changed: BrokerConfig) -> None:
    """Raises InvalidSetting unless the listeners could be those of the running broker."""
    texts = changed.get_list(LISTENERS)
    protocols = _protocols(changed)
    if changed.text(MAP) is None:
        for text in texts:
            if ":" not in text:
                raise InvalidSetting(f"Unable to parse a listener name from {text}")
    names = _names(texts, protocols)
    kept_for_controllers = [each.upper() for each in changed.get_list(CONTROLLERS)]
    at_start = _names(changed.at_start(LISTENERS), None)
    for name in kept_for_controllers:
        if name in at_start and name not in names:
            raise Requirement(
                f"{CONTROLLERS} must contain at least one value appearing in the '{LISTENERS}' "
                "configuration when running the KRaft controller role"
            )
    gone = [name for name in at_start if name not in names]
    if gone:
        advertised = ",".join(each.name for each in changed.listeners)
        raise Requirement(
            "advertised.listeners listener names must be equal to or a subset of the ones defined "
            f"in {LISTENERS}. Found {advertised}. The valid options based on the current "
            f"configuration are {','.join(names)}"
        )


def check_reopening(changed: BrokerConfig) -> None:
    """Raises InvalidSetting for a listener that would have to be opened, or to speak otherwise."""
    protocols = _protocols(changed)
    for listener in changed.listeners:
        if protocols[listener.name] != listener.protocol:
            raise InvalidSetting(
                "Security protocol cannot be updated for existing listener "
                f"ListenerName({listener.name})"
            )
    at_start = _names(changed.at_start(LISTENERS), None)
    new = [each for each in _names(changed.get_list(LISTENERS), None) if each not in at_start]
    if new:
        raise InvalidSetting(
            f"kafkalite opens its listeners when it starts: set {', '.join(new)} in "
            "server.properties and start it again"
        )


def _names(texts: list[str], protocols: dict[str, str] | None) -> list[str]:
    """The names of listeners; each must have a protocol if protocols are given."""
    try:
        found = [_endpoint(text, protocols) for text in texts]
        names = [name for name, _, _ in found]
        shown = f"{LISTENERS}: [{', '.join(texts)}]"
        if len(set(names)) < len(names):
            raise InvalidSetting(f"Each listener must have a different name, {shown}")
        _check_ports([(host, port) for _, host, port in found], shown)
    except InvalidSetting as error:
        shown = ", ".join(texts)
        raise InvalidSetting(f"Error creating broker listeners from '[{shown}]': {error}") from None
    return names


def _endpoint(text: str, protocols: dict[str, str] | None) -> tuple[str, str, int]:
    match = ENDPOINT.fullmatch(text)
    if match is None:
        raise InvalidSetting(f"Unable to parse {text} to a broker endpoint")
    name = match[1].upper()
    if protocols is not None and name not in protocols:
        raise InvalidSetting(f"No security protocol defined for listener {name}")
    return name, match[2], int(match[3])


def _check_ports(addresses: list[tuple[str, int]], shown: str) -> None:
    """One port serves two listeners only where one has an IPv4 address and one an IPv6 address."""
    ports = Counter(port for _, port in addresses if port)
    for port in (port for port, count in ports.items() if count > 1):
        hosts = [host for host, each in addresses if each == port]
        versions = [version for version in map(_ip_version, hosts) if version]
        if len(hosts) - len(versions) > 1:
            raise InvalidSetting(f"Each listener must have a different port, {shown}")
        if len(versions) == 2 and (versions[0] == versions[1] or len(hosts) > 2):
            raise InvalidSetting(
                "If you have two listeners on the same port then one needs to be IPv4 and the "
                f"other IPv6, {shown}, port: {port}"
            )
        if len(versions) != 2:
            raise InvalidSetting(
                "Each listener must have a different port unless exactly one listener has an IPv4 "
                f"address and the other IPv6 address, {shown}, port: {port}"
            )


def _ip_version(host: str) -> int:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0


def _protocols(config: BrokerConfig) -> dict[str, str]:
    """Security protocol by listener name, the change included."""
    protocols = {}
    for name, protocol in pairs_of(MAP, config.get_str(MAP)).items():
        if protocol.upper() not in PROTOCOLS:
            raise InvalidSetting(f"Invalid security protocol `{protocol}` defined in {MAP}")
        protocols[name.upper()] = protocol.upper()
    if config.text(MAP) is None:
        controllers = config.get_list(CONTROLLERS)
        protocols |= {name.upper(): "PLAINTEXT" for name in controllers if name not in protocols}
    return protocols
