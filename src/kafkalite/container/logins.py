"""A file of JAAS, which other images have KAFKA_OPTS name: the users in it become those of each
listener that has its clients log in.

Owns how such a file is told apart into sections and login modules; what is in a module goes on as
it is written, and is read where its setting is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from kafkalite.container.variables import content_of

OPTIONS = "KAFKA_OPTS"
SECTION = "KafkaServer"
# Login modules that hold users, and the mechanism that each is for.
MECHANISMS = {"org.apache.kafka.common.security.plain.PlainLoginModule": "PLAIN"}
_FILE = re.compile(r"-Djava\.security\.auth\.login\.config==?(?:file:(?://)?)?(\S+)")
_QUOTED = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(rf"({_QUOTED})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_SECTION = re.compile(rf"([\w.-]+)\s*\{{((?:{_QUOTED}|[^{{}}\"])*)\}}\s*;")
_MODULE = re.compile(rf"\s*(([\w.$]+)\s(?:{_QUOTED}|[^;\"])*;)")
_LISTENER = re.compile(r"\s*([\w-]+)://")
_MAPPED = re.compile(r"\s*([\w-]+):(\w+)")


def with_logins_read(environment: Mapping[str, str], read: Callable[[str], str]) -> dict[str, str]:
    """The environment with a variable for each listener and mechanism that the file has users for;
    those that are there count."""
    found = dict(environment)
    named = _FILE.search(environment.get(OPTIONS, ""))
    listeners = list(_with_logins(environment))
    if named is None or not listeners:
        return found
    sections = _sections(content_of(OPTIONS, named[1], read))
    for listener in listeners:
        text = sections.get(f"{listener.lower()}.{SECTION}", sections.get(SECTION, ""))
        for module, name in _MODULE.findall(text):
            mechanism = MECHANISMS.get(name)
            if mechanism is not None:
                found.setdefault(_variable(listener, mechanism), module)
    return found


def _sections(text: str) -> dict[str, str]:
    return dict(_SECTION.findall(_COMMENT.sub(lambda match: match[1] or " ", text)))


def _with_logins(environment: Mapping[str, str]) -> Iterator[str]:
    """The names of listeners whose clients log in."""
    mapped = _value(environment, "LISTENER_SECURITY_PROTOCOL_MAP")
    protocols: dict[str, str] = dict(_MAPPED.findall(mapped))
    listeners = _value(environment, "LISTENERS") or _value(environment, "ADVERTISED_LISTENERS")
    for item in listeners.split(","):
        match = _LISTENER.match(item)
        name = "" if match is None else match[1]
        if protocols.get(name, name).startswith("SASL_"):
            yield name


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(f"KAFKA_CFG_{name}", "") or environment.get(f"KAFKA_{name}", "")


def _variable(listener: str, mechanism: str) -> str:
    written = listener.replace("_", "__").replace("-", "___").upper()
    return f"KAFKA_LISTENER_NAME_{written}_{mechanism}_SASL_JAAS_CONFIG"
