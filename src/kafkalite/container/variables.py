"""Which variables of an environment are settings of the broker, and under which names.

Elsewhere the environment is never read: a Kubernetes service called `kafka` puts KAFKA_PORT and
its like into every container beside it, and those are told apart here. A variable that no broker
knows is somebody else's, and stops nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from kafkalite.config import InvalidSetting
from kafkalite.config.check import nearest_to
from kafkalite.config.protections import PROMISES
from kafkalite.config.tables import base_name, broker_settings, removed_settings

PREFIX = "KAFKA_"
BITNAMI_PREFIX = "KAFKA_CFG_"
FILE_SUFFIX = "_FILE"

# Options of a JVM and its logging, which there is none of here, of images that wrap Kafka, and of
# other programs whose variables begin alike.
_NOT_SETTINGS = re.compile(
    r"KAFKA_(\w+_OPTS|OPTS|JMX_\w+|LOG4J_\w+|TOOLS_LOG4J_\w+|VERSION|HOME|USER|GROUP"
    r"|\w*CLUSTER_ID|GC_LOG_\w+|CREATE_TOPICS\w*|CONFLUENT_\w+|REST_\w+|SCHEMA_REGISTRY_\w+|UI_\w+"
    r"|KSQL_\w+|ADVERTISED_HOST_NAME|ADVERTISED_PORT|PORT|\w*PASSWORDS?|\w*_USERS?)"
)
# What is no setting and is taken all the same, so that it may come out of a file.
_TAKEN = re.compile(
    r"KAFKA_(\w*CLUSTER_ID|CREATE_TOPICS|ADVERTISED_HOST_NAME|ADVERTISED_PORT|PORT"
    r"|\w*PASSWORDS?|\w*_USERS?|\w+_CREDENTIALS)"
)
# What Kubernetes adds for a service of that name.
_OF_A_SERVICE = re.compile(r"KAFKA_(SERVICE_HOST|SERVICE_PORT\w*|PORT_\d+_(TCP|UDP)\w*)")
# Where Apache Kafka's image has stores of keys, and files with their passwords.
SECRETS = "/etc/kafka/secrets"
_SECRETS = {
    "KAFKA_SSL_KEYSTORE_FILENAME": "KAFKA_SSL_KEYSTORE_LOCATION",
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "KAFKA_SSL_KEYSTORE_PASSWORD",
    "KAFKA_SSL_KEY_CREDENTIALS": "KAFKA_SSL_KEY_PASSWORD",
    "KAFKA_SSL_TRUSTSTORE_FILENAME": "KAFKA_SSL_TRUSTSTORE_LOCATION",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "KAFKA_SSL_TRUSTSTORE_PASSWORD",
}
_WITH_PROTOCOLS = ("KAFKA_ADVERTISED_LISTENERS", "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP")
_TLS = re.compile(r"SSL://|:(SASL_)?SSL\b")
# How Bitnami's image calls what the broker calls otherwise.
_OTHER_NAMES = {
    "max.message.bytes": "message.max.bytes",
    "segment.bytes": "log.segment.bytes",
    "logs.dirs": "log.dirs",
    "log.dir": "log.dirs",
}
# What Debezium's image takes without a prefix.
_WITHOUT_PREFIX = ("NODE_ID", "BROKER_ID")


def settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Each variable that is a setting, under the setting's own name; an empty one is not set.

    One underscore is a dot, two are an underscore and three a dash. What KAFKA_CFG_ says counts
    before what KAFKA_ says, and that before a name without a prefix.
    """
    found: dict[str, str] = {}
    for variable in _WITHOUT_PREFIX:
        if environment.get(variable, "").strip():
            found[_name(variable)] = environment[variable]
    for variable in sorted(environment, key=lambda name: (name.startswith(BITNAMI_PREFIX), name)):
        value = environment[variable]
        written = _without_cfg(variable)
        is_foreign = _NOT_SETTINGS.fullmatch(written) and not _is_setting(_name(written))
        is_address = value.startswith("tcp://") or _OF_A_SERVICE.fullmatch(variable)
        if variable.startswith(PREFIX) and value.strip() and not is_foreign and not is_address:
            name = _name(written)
            found[_OTHER_NAMES.get(name, name)] = value
    return found


def _without_cfg(variable: str) -> str:
    is_bitnamis = variable.startswith(BITNAMI_PREFIX)
    return f"{PREFIX}{variable.removeprefix(BITNAMI_PREFIX)}" if is_bitnamis else variable


def _name(variable: str) -> str:
    name = variable.removeprefix(PREFIX).lower()
    return name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def _is_setting(name: str) -> bool:
    return base_name(name) in broker_settings()


def unknown(found: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """The names that no broker of Apache Kafka knows, each with the nearest that it does."""
    for name in found:
        if not _is_setting(name) and name not in removed_settings():
            near = nearest_to(name)
            if near not in PROMISES:  # a protection that was meant must not be passed over
                yield name, near


# --- secrets --------------------------------------------------------------------------------------


def with_files_read(environment: Mapping[str, str], read: Callable[[str], str]) -> dict[str, str]:
    """The environment in which KAFKA_X_FILE=/path stands for KAFKA_X: what is in that file. Of an X
    that nobody takes here it is somebody else's, and nothing is read."""
    found = dict(environment)
    for variable, path in environment.items():
        meant = variable.removesuffix(FILE_SUFFIX)
        if meant != variable and path.strip() and _is_read(variable, meant):
            found[meant] = content_of(variable, path, read)
            del found[variable]
    return found


def with_secrets_read(environment: Mapping[str, str], read: Callable[[str], str]) -> dict[str, str]:
    """The environment in which stores of keys and files of passwords that lie in the folder of
    secrets are named in full, and read, as settings have them. Only where a listener has TLS, as
    in Apache Kafka's image."""
    found = dict(environment)
    protocols = (environment.get(variable, "") for variable in _WITH_PROTOCOLS)
    if not any(_TLS.search(each) for each in protocols):
        return found
    for variable, meant in _SECRETS.items():
        name = found.pop(variable, "").strip()
        if name:
            path = f"{SECRETS}/{name}"
            is_store = variable.endswith("_FILENAME")
            found.setdefault(meant, path if is_store else content_of(variable, path, read))
    return found


def _is_read(variable: str, meant: str) -> bool:
    if not variable.startswith(PREFIX) or _is_setting(_name(_without_cfg(variable))):
        return False
    written = _without_cfg(meant)
    name = _name(written)
    return _is_setting(_OTHER_NAMES.get(name, name)) or _TAKEN.fullmatch(written) is not None


def content_of(variable: str, path: str, read: Callable[[str], str]) -> str:
    """What is in a file that a variable names, but for its last line's end."""
    try:
        return read(path.strip()).rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "this is no text"
        raise InvalidSetting(f"{variable}: {path} cannot be read: {why}") from None
