"""A JAAS file, as java.security.auth.login.config names one: users where no setting has them.

Owns which of its sections counts for whom, in Apache Kafka's order: a setting of the listener and
mechanism, the section of the listener (`outside.KafkaServer`), that of all (`KafkaServer`); of
clients `KafkaClient`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kafkalite.config.broker import BrokerConfig
from kafkalite.config.listeners import SASL_PROTOCOLS
from kafkalite.config.setting import InvalidSetting
from kafkalite.config.tables import LISTENER_PREFIX
from kafkalite.security.client_settings import JAAS, jaas_line, module_of
from kafkalite.security.jaas import Entry, MalformedJaas, parse_file
from kafkalite.security.mechanisms import BY_PASSWORD, SERVED

PROPERTY = "java.security.auth.login.config"
_OPTION = re.compile(rf"(?:^|\s)-D{re.escape(PROPERTY)}==?(?:file:(?://)?)?(\S+)")
LARGEST_FILE = 1 << 20


def named_in(options: str) -> str | None:
    """The file that a JVM's options name."""
    found = _OPTION.findall(options)
    return found[-1] if found else None


def read(path: str) -> dict[str, list[Entry]]:
    """Its sections; raises InvalidSetting, which quotes nothing of it."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(LARGEST_FILE).decode(errors="replace")
        return parse_file(text)
    except (OSError, MalformedJaas) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidSetting(f"{PROPERTY}: {path}: {why}") from None


def settings_in(sections: Mapping[str, Sequence[Entry]], config: BrokerConfig) -> dict[str, str]:
    """The settings of listeners for which the file has logins."""
    found = {}
    for listener in config.listeners:
        if listener.protocol not in SASL_PROTOCOLS:
            continue
        name = listener.name.lower()
        entries = sections.get(f"{name}.KafkaServer", sections.get("KafkaServer", ()))
        for mechanism in SERVED:
            line = _line(entries, mechanism)
            if line is not None:
                found[f"{LISTENER_PREFIX}{name}.{mechanism.lower()}.{JAAS}"] = line
    return found


def client_line(sections: Mapping[str, Sequence[Entry]], mechanism: str) -> str | None:
    """What a client's sasl.jaas.config would be."""
    is_known = mechanism in BY_PASSWORD
    return _line(sections.get("KafkaClient", ()), mechanism) if is_known else None


def _line(entries: Sequence[Entry], mechanism: str) -> str | None:
    wanted = module_of(mechanism)
    options = [each.options for each in entries if each.module == wanted]
    return jaas_line(wanted, options[0]) if options else None
