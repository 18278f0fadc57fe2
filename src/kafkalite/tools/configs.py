"""`kafka-configs`: describes and alters the settings of topics, brokers, groups, users and more."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

from kafkalite.tools import config_quotas, config_resources
from kafkalite.tools.asking import connect
from kafkalite.tools.config_names import NAMES
from kafkalite.tools.config_resources import BROKERS, LOGGERS, Change, Subject
from kafkalite.tools.failures import Failure, WrongUse, illegal_argument
from kafkalite.tools.files import read_properties
from kafkalite.tools.java_maps import in_map_order
from kafkalite.tools.java_numbers import whole
from kafkalite.tools.options import Given, Option
from kafkalite.tools.running import begin, tell, tell_use

_ABOUT = (
    "This tool helps to manipulate and describe entity config for a topic, client, user, broker, "
    "ip, client-metrics or group"
)
_TYPES = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups", LOGGERS)
_WITH_DEFAULTS = ("users", "clients", "brokers", "ips")
# Options that name an entity, and those that name the defaults of all of a type.
_FLAGS = {
    "topic": "topics", "client": "clients", "user": "users", "broker": BROKERS,
    "broker-logger": LOGGERS, "ip": "ips", "client-metrics": "client-metrics", "group": "groups",
}  # fmt: skip
_DEFAULT_FLAGS = {
    "client-defaults": "clients", "user-defaults": "users", "broker-defaults": BROKERS,
    "ip-defaults": "ips",
}  # fmt: skip
_OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"
_INVALID = "org.apache.kafka.common.errors.InvalidConfigurationException"

OPTIONS = [
    Option("bootstrap-server", "The Kafka servers to connect to.", "server to connect to"),
    Option(
        "bootstrap-controller", "The Kafka controllers to connect to.", "controller to connect to"
    ),
    Option(
        "command-config",
        "Property file containing configs to be passed to Admin Client. This is used only with "
        "--bootstrap-server option for describing and altering broker configs.",
        "command config property file",
    ),
    Option("alter", "Alter the configuration for the entity."),
    Option("describe", "List configs for the given entity."),
    Option(
        "all", "List all configs for the given entity, including static configs if available."
    ),
    Option(
        "entity-type",
        "Type of entity (topics/clients/users/brokers/broker-loggers/ips/client-metrics/groups)",
        "",
    ),
    Option(
        "entity-name",
        "Name of entity (topic name/client id/user principal name/broker id/ip/client "
        "metrics/group id)", "",
    ),
    Option(
        "entity-default",
        "Default entity name for clients/users/brokers/ips (applies to corresponding entity type)",
    ),
    Option(
        "add-config",
        "Key Value pairs of configs to add. Square brackets can be used to group values which "
        "contain commas: 'k1=v1,k2=[v1,v2,v2],k3=v3'. The following is a list of valid "
        "configurations: " + "".join(
            f"For entity-type '{kind}': \n" + "".join(f"\t{name}\n" for name in names)
            for kind, names in NAMES.items()
        ) + "Entity types 'users' and 'clients' may be specified together to update config for "
        "clients of a specific user.", "",
    ),
    Option(
        "add-config-file",
        "Path to a properties file with configs to add. See add-config for a list of valid "
        "configurations.", "",
    ),
    Option("delete-config", "config keys to remove 'k1,k2'", ""),
    Option("topic", "The topic's name.", ""),
    Option("client", "The client's ID.", ""),
    Option("client-defaults", "The config defaults for all clients."),
    Option("user", "The user's principal name.", ""),
    Option("user-defaults", "The config defaults for all users."),
    Option("broker", "The broker's ID.", ""),
    Option("broker-defaults", "The config defaults for all brokers."),
    Option("broker-logger", "The broker's ID for its logger config.", ""),
    Option("ip-defaults", "The config defaults for all IPs."),
    Option("ip", "The IP address.", ""),
    Option("group", "The group's ID.", ""),
    Option("client-metrics", "The client metrics config resource name.", ""),
]  # fmt: skip


def main(words: list[str]) -> int:
    given = Given(OPTIONS)
    try:
        if (ended := begin(given, words, _ABOUT)) is not None:
            return ended
        _check(given)
        _act(given)
    except WrongUse as wrong:
        return tell_use(wrong, given)
    except Failure as failure:
        known = (illegal_argument("").java, _INVALID)
        if failure.java in known or failure.java.startswith("joptsimple."):
            tell(failure.message)
        else:
            tell(f"Error while executing config command with args '{' '.join(words)}'")
            tell(failure.stack().removesuffix("\n"))
        return 1
    return 0


def _subject(given: Given) -> Subject:
    """The types and names of what is asked for; an empty name is that of the defaults."""
    names = iter(given.all("entity-name"))
    return Subject(
        [
            *given.all("entity-type"),
            *(kind for flag, kind in (_FLAGS | _DEFAULT_FLAGS).items() if given.has(flag)),
        ],
        [
            *(
                next(names) if option == "entity-name" else ""
                for option in given.named
                if option in ("entity-name", "entity-default")
            ),
            *(given.one(flag) for flag in _FLAGS if given.has(flag)),
            *("" for flag in _DEFAULT_FLAGS if given.has(flag)),
        ],
    )


def _check(given: Given) -> None:
    if given.has("alter") == given.has("describe"):
        raise WrongUse("Command must include exactly one action: --describe, --alter")
    given.refuse("describe", "add-config", "delete-config")
    subject = _subject(given)
    twice = [kind for number, kind in enumerate(subject.types) if kind in subject.types[:number]]
    _refuse_if(bool(twice), f"Duplicate entity type(s) specified: {','.join(twice)}")
    _refuse_if(
        not given.has("bootstrap-server") and not given.has("bootstrap-controller"),
        "Either --bootstrap-server or --bootstrap-controller must be specified.",
    )
    for kind in subject.types:
        _refuse_if(
            kind not in _TYPES,
            f"Invalid entity type {kind}, the entity type must be one of {', '.join(_TYPES)} with "
            "a --bootstrap-server or --bootstrap-controller argument",
        )
    _refuse_if(not subject.types, "At least one entity type must be specified")
    _refuse_if(
        len(subject.types) > 1 and set(subject.types) != {"users", "clients"},
        "Only 'users' and 'clients' entity types may be specified together",
    )
    _refuse_if(
        any(map(given.has, ("entity-name", "entity-type", "entity-default")))
        and any(map(given.has, (*_FLAGS, *_DEFAULT_FLAGS))),
        "--entity-{type,name,default} should not be used in conjunction with specific entity flags",
    )
    _refuse_if(
        given.has("bootstrap-server") and given.has("bootstrap-controller"),
        "Only one of --bootstrap-server or --bootstrap-controller can be specified",
    )
    _check_names(given, subject)
    if given.has("describe"):
        _check_describe(given, subject)
    else:
        _check_alter(given, subject)


def _refuse_if(is_wrong: bool, message: str) -> None:
    if is_wrong:
        raise illegal_argument(message)


def _check_names(given: Given, subject: Subject) -> None:
    if not any(subject.names):
        return
    rules: tuple[tuple[set[str], tuple[str, ...], Callable[[str], bool], str], ...] = (
        ({BROKERS, LOGGERS}, ("entity-name", "broker", "broker-logger"), _is_int,
         "valid integer broker id"),
        ({"ips"}, ("entity-name", "ip"), _is_host, "valid IP or resolvable host"),
    )  # fmt: skip
    for kinds, options, is_valid, what in rules:
        for option in options if kinds & set(subject.types) else ():
            if given.has(option) and not is_valid(name := given.one(option)):
                raise illegal_argument(
                    f"The entity name for {subject.types[0]} must be a {what}, but it is: {name}"
                )


def _is_int(text: str) -> bool:
    try:
        return whole(text) is not None
    except ValueError:
        return False


def _is_host(text: str) -> bool:
    try:
        socket.getaddrinfo(text, None)
    except (OSError, UnicodeError):
        return False
    return True


def _check_describe(given: Given, subject: Subject) -> None:
    kinds = ",".join(subject.types)
    _refuse_if(
        given.has("entity-default") and not set(_WITH_DEFAULTS) & set(subject.types),
        f"--entity-default must not be specified with --describe of {kinds}",
    )
    _refuse_if(
        LOGGERS in subject.types and not any(subject.names),
        f"An entity name must be specified with --describe of {kinds}",
    )


def _check_alter(given: Given, subject: Subject) -> None:
    if set(_WITH_DEFAULTS) & set(subject.types):
        _refuse_if(
            not subject.names,
            "An entity-name or default entity must be specified with --alter of users, clients, "
            "brokers or ips",
        )
    else:
        _refuse_if(
            not any(subject.names),
            f"An entity name must be specified with --alter of {','.join(subject.types)}",
        )
    _refuse_if(
        given.has("add-config") and given.has("add-config-file"),
        "Only one of --add-config or --add-config-file must be specified",
    )
    _refuse_if(
        not any(map(given.has, ("add-config", "add-config-file", "delete-config"))),
        "At least one of --add-config, --add-config-file, or --delete-config must be specified "
        "with --alter",
    )


def _act(given: Given) -> None:
    subject = _subject(given)
    is_of_controllers = given.has("bootstrap-controller")
    where = given.one("bootstrap-controller" if is_of_controllers else "bootstrap-server")
    asking = connect(where, given.one("command-config"))
    try:
        is_of_quotas = subject.types[0] in config_quotas.TYPES
        if given.has("describe"):
            if is_of_quotas:
                config_quotas.describe(asking, subject)
            else:
                resources = config_resources.Resources(asking, is_of_controllers)
                resources.describe(subject, is_all=given.has("all"))
            return
        _refuse_if(
            len(subject.types) != len(subject.names),
            "An entity name must be specified for every entity type",
        )
        change = Change(_added(given), _deleted(given))
        if is_of_quotas:
            config_quotas.alter(asking, subject, change)
        else:
            config_resources.Resources(asking, is_of_controllers).alter(subject, change)
    finally:
        asking.close()
    kind, name = subject.types[0], subject.names[0]
    if name:
        print(f"Completed updating config for {kind[:-1]} {name}.")
    else:
        print(f"Completed updating default config for {kind} in the cluster.")


def _added(given: Given) -> dict[str, str]:
    found: dict[str, str] = {}
    if given.has("add-config-file"):
        found |= read_properties(given.one("add-config-file"))
    if given.has("add-config"):
        texts = re.split(f",{_OUTSIDE_BRACKETS}", given.one("add-config"))
        while len(texts) > 1 and not texts[-1]:  # Java leaves those at the end out
            texts.pop()
        pairs = [re.split(rf"\s*={_OUTSIDE_BRACKETS}\s*", text) for text in texts]
        _refuse_if(
            any(len(pair) != 2 for pair in pairs),
            "requirement failed: Invalid entity config: all configs to be added must be in the "
            'format "key=val" or  "key=[val1,val2]" to group values which contain commas.',
        )
        found |= {key.strip(): re.sub(r"\[?\]?", "", value).strip() for key, value in pairs}
    for key in found:
        is_wrong = re.fullmatch(r"[$a-zA-Z0-9._-]*", key) is None
        _refuse_if(is_wrong, f"Invalid character found for config key: {key}")
    return {key: found[key] for key in in_map_order(found)}


def _deleted(given: Given) -> list[str]:
    return [
        name.strip()
        for text in given.all("delete-config")
        for name in text.split(",")
        if name
    ]
