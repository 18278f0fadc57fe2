"""What is asked of both brokers about their settings: every dynamic setting, by every operation.

A case is one change of one resource, small enough to be written into a table of verdicts. The
values of a setting come from its type and from the edges of its own range.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from kafkalite.config import (
    Kind,
    Setting,
    broker_settings,
    client_metrics_settings,
    group_settings,
    topic_settings,
)
from kafkalite.config.tables import base_name, lines_of

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
INCREMENTAL, WHOLE = "incremental", "whole"
TOPIC_NAME, GROUP_NAME, METRICS_NAME, NODE = "settings", "settings-group", "settings-metrics", "1"

Step = tuple[str, int, str | None]


@dataclass(frozen=True, slots=True)
class Case:
    """One change: of a resource, by one of the two APIs, in steps."""

    kind: int
    resource: str
    steps: tuple[Step, ...]
    api: str = INCREMENTAL
    validate_only: bool = False

    def __str__(self) -> str:
        steps = ", ".join(
            f"{('SET', 'DELETE', 'APPEND', 'SUBTRACT')[op] if 0 <= op < 4 else op} {name}={value!r}"
            for name, op, value in self.steps
        )
        only = " (validate only)" if self.validate_only else ""
        return f"{self.kind} {self.resource!r} {self.api}{only}: {steps}"


# --- values -------------------------------------------------------------------------------------

WRONG = ("", " ", "abc", "null", "ж", "1\u2003", "\u00a01", "x" * 60, "${env:HOME}", "[]")
NUMBERS = (
    "-2147483649", "-2147483648", "-32769", "-2", "-1", "0", "1", "2", "3", "5", "7", "10", "100",
    "1000", "32768", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", " 7 ", "\t7\n", "+7", "-0", "007", "7.0", "1e3",
    "1_000", "0x10", "٧", "７", "7 7", "--7",
)  # fmt: skip
FRACTIONS = (
    "0.5", " 0.5 ", ".5", "5.", "0.", "1.0", "1.01", "-0.01", "1e-3", "1E-4", "0.0001", "1e7",
    "0.1f", "0.1d", "NaN", "Infinity", "-Infinity", "infinity", "nan", "0x1p-1", "1_0.0", "1e400",
    "1e-400", "4.9E-324", "123456789.125", "0.30000000000000004", "100", "٠.٥", "1,5", "e5",
)  # fmt: skip
BOOLEANS = ("true", "false", "TRUE", "False", " true ", "\ttrue", "yes", "0", "1", "true,false")
LISTS = (
    "a", "a,b", " a , b ", "a,,b", ",", "a,", ",a", "a,a", "*", "*,a", "A", "a b", "ж,a", "a;b",
    "a\u2003,b", "\ta\t", "a\n,b",
)  # fmt: skip
TEXTS = ("a", " a ", "A", "a,b", "*", "ж", "a b", "a:b", "a:1", "a:1,b:2", "a:PLAINTEXT")
CLASSES = (
    "a.B", " a.B ", "", "a b", "a.B,a.C",
    " org.apache.kafka.common.metrics.JmxReporter ",
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "org.apache.kafka.common.metrics.JmxReporter",
)  # fmt: skip
OF_KIND = {
    Kind.BOOLEAN: BOOLEANS,
    Kind.INT: NUMBERS,
    Kind.SHORT: NUMBERS,
    Kind.LONG: NUMBERS,
    Kind.DOUBLE: NUMBERS + FRACTIONS,
    Kind.LIST: LISTS,
    Kind.STRING: TEXTS,
    Kind.CLASS: CLASSES,
    Kind.PASSWORD: TEXTS,
}
# What the words of a setting do not tell: forms of its own.
OF_NAME: dict[str, tuple[str, ...]] = {
    "max.connections.per.ip.overrides": (
        "127.0.0.1:abc",
        "127.0.0.1:5",
        "127.0.0.1",
        "127.0.0.1:",
        ":5",
        "10.0.0.1:0",
        "10.0.0.1:-1",
        " 10.0.0.1 : 5 , 10.0.0.2:6",
        "::1:5",
        "[::1]:5",
        "a/b:5",
        "h:5,h:6",
        "h:+5",
        "h:5,",
        ",h:5",
        "h:99999999999",
        "h: 5",
        "10.0.0.1:5 ,\t10.0.0.2:6",
        "h:5,,i:6",
        "a@b:1",
    ),
    "listeners": (
        "PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:{controller}",
        "plaintext://127.0.0.1:1,controller://127.0.0.1:{controller}",
        "PLAINTEXT://127.0.0.1:1",
        "CONTROLLER://127.0.0.1:{controller}",
        "PLAINTEXT://127.0.0.1:1,PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:{controller}",
        "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:1",
        "PLAINTEXT://127.0.0.1",
        "X://127.0.0.1:1,PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "SSL://127.0.0.1:1,PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "X://127.0.0.1:1,CONTROLLER://127.0.0.1:{controller}",
        "PLAINTEXT://[::1]:1",
        "PLAINTEXT://:1,CONTROLLER://:{controller}",
        "PLAINTEXT://127.0.0.1:99999999",
        "PLAINTEXT://127.0.0.1:-1,CONTROLLER://127.0.0.1:{controller}",
        "PLAINTEXT://127.0.0.1:70000,CONTROLLER://127.0.0.1:{controller}",
    ),
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "PLAINTEXT:PLAINTEXT",
        "PLAINTEXT:SSL",
        "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
        "PLAINTEXT:NONE,CONTROLLER:PLAINTEXT",
        "PLAINTEXT",
        "plaintext:plaintext,controller:plaintext",
        "X:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "X:SSL,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    ),
    "metric.reporters": (
        "org.apache.kafka.common.metrics.JmxReporter",
        "a.B",
        "a.B,a.C",
        "org.apache.kafka.common.metrics.JmxReporter,a.B",
        " org.apache.kafka.common.metrics.JmxReporter ",
        "org.apache.kafka.common.metrics.JmxReporter,org.apache.kafka.common.metrics.JmxReporter",
    ),
    "match": (
        "client_id=a",
        "client_id = a.*",
        "client_id",
        "client_id=",
        "=a",
        "client_id=a=b",
        "client_id=(",
        "x=a",
        "client_id=a,client_software_name=b",
        "client_source_port=1{2",
        "client_id==a",
        "client_id=a=",
        " client_id =a",
        "client_id=a,client_id=b",
        "client_id=[a",
        "client_id=\\pL",
        "client_id=(?<n>a)\\k<n>",
        "client_id=a++",
        "CLIENT_ID=a",
        "client_id=\\Q",
        "client_id=(?P<n>a)",
        "client_id=*",
        "client_id=a{,2}",
        "client_id=\\",
        "client_id= ",
    ),
    "interval.ms": ("99", "100", "101", "3600000", "3600001"),
    "leader.replication.throttled.replicas": (
        "*",
        "0:1",
        "0:1,1:2",
        "0:1,",
        "0",
        "a:1",
        "0:a",
        "*,0:1",
        " 0:1 , 1:2 ",
        "0:1:2",
        "-1:1",
        "0 :1",
        ",",
        "0:99999999999",
        "٧:1",
        "0:1,0:1",
        "none",
    ),
    "share.auto.offset.reset": (
        "latest",
        "earliest",
        "LATEST",
        "by_duration:PT1H",
        "by_duration:P1D",
        "by_duration:-PT1H",
        "by_duration:",
        "by_duration",
        "by_duration:PT",
        "by_duration:P1Y",
        "none",
        " earliest ",
        "by_duration:pt1h",
        "BY_DURATION:PT1H",
        "by_duration:PT1.5S",
        "by_duration:PT0S",
    ),
    "cordoned.log.dirs": ("*", "*,a", "/nowhere", "{dir}", "{dir},{dir}", "{dir},*", " {dir} "),
    "sasl.kerberos.principal.to.local.rules": (
        "DEFAULT",
        "RULE:[1:$1]",
        "RULE:[1:$1",
        "RULE:[1:$1],DEFAULT",
        "default",
    ),
    "config.providers": ("file", "env", "a,b"),
    "log.retention.ms": ("-1", "0", "1", "-2"),
    "log.local.retention.ms": ("-2", "-1", "0", "604800000", "604800001"),
    "log.local.retention.bytes": ("-2", "-1", "0", "1", "9223372036854775807"),
    "log.cleaner.dedupe.buffer.size": ("1048576", "1048577", "2097152", "134217728"),
    "log.cleaner.threads": ("1", "2", "3"),
    "num.io.threads": ("3", "4", "8", "16", "17"),
    "num.network.threads": ("1", "2", "3", "6", "7"),
    "background.threads": ("4", "5", "10", "20", "21"),
    "local.retention.ms": ("-3", "-2", "-1", "604800001"),
    "local.retention.bytes": ("-3", "-2", "-1"),
}
OF_NAME["follower.replication.throttled.replicas"] = OF_NAME[
    "leader.replication.throttled.replicas"
]


def values_of(setting: Setting) -> list[str]:
    """Texts to try for a setting, each once."""
    found = [*OF_NAME.get(setting.name, ()), *OF_KIND[setting.kind], *WRONG]
    for bound in re.findall(r"-?\d+(?:\.\d+)?", _valid_column(setting.name)):
        if "." in bound:
            found.append(bound)
        else:
            found += [str(int(bound) + step) for step in (-1, 0, 1)]
    words = re.findall(r"[A-Za-z_]+", _valid_column(setting.name))
    for word in words:
        found += [word, word.upper(), word.lower(), f" {word} "]
    if setting.kind is Kind.LIST and words:
        found += [",".join(words), f"{words[0]},{words[0]}", f"{words[0]} , {words[-1]}"]
    if setting.default_text is not None:
        found.append(setting.default_text)
    return list(dict.fromkeys(found))


def _valid_column(name: str) -> str:
    """How the tables write which values a setting takes."""
    return _valid_columns().get(name, "")


@cache
def _valid_columns() -> dict[str, str]:
    rows = (
        line.split()
        for table in ("client-metrics", "group", "broker", "topic")
        for line in lines_of(table)
        if not line.startswith((" ", "section ", "ignored "))
    )
    return {row[0]: "" if row[3] == "-" else row[3] for row in rows}


# --- cases --------------------------------------------------------------------------------------


def dynamic_settings() -> Iterator[tuple[int, str, Setting]]:
    """Every setting that may change while a broker runs, with each resource that may have it."""
    for setting in broker_settings().values():
        if setting.dynamic and not setting.name.startswith("kafkalite."):
            yield BROKER, NODE, setting
            yield BROKER, "", setting
    for kind, name, table in (
        (TOPIC, TOPIC_NAME, topic_settings()),
        (GROUP, GROUP_NAME, group_settings()),
        (CLIENT_METRICS, METRICS_NAME, client_metrics_settings()),
    ):
        for setting in table.values():
            yield kind, name, setting


def all_cases() -> Iterator[Case]:
    """Every setting × value, each operation, both APIs, and what is no dynamic setting."""
    seen = set()
    for case in _every_case():
        if shuts_out(case):
            case = replace(case, validate_only=True)
        if case not in seen:
            seen.add(case)
            yield case


def shuts_out(case: Case) -> bool:
    """Whether who asks this could not ask again, on some broker: only the verdict is compared."""
    return any(base_name(name) in SHUTTING_OUT for name, _, _ in case.steps)


def _every_case() -> Iterator[Case]:
    for kind, resource, setting in dynamic_settings():
        yield from _cases_of(kind, resource, setting)
    yield from _odd_cases()


def _cases_of(kind: int, resource: str, setting: Setting) -> Iterator[Case]:
    name = setting.name
    values = values_of(setting)
    for value in values:
        yield Case(kind, resource, ((name, SET, value),))
    for value in (values[0], "abc", ""):
        yield Case(kind, resource, ((name, SET, value),), validate_only=True)
        yield Case(kind, resource, ((name, SET, value),), api=WHOLE)
    yield Case(kind, resource, ((name, DELETE, None),))
    yield Case(kind, resource, ((name, DELETE, "abc"),))
    yield Case(kind, resource, ((name, SET, None),))
    yield Case(kind, resource, ((name, SET, None),), api=WHOLE)
    added = [*values[:6], "a,b"] if setting.kind is Kind.LIST else ["1"]
    for value in dict.fromkeys([*added, "", ","]):
        yield Case(kind, resource, ((name, APPEND, value),))
        yield Case(kind, resource, ((name, SUBTRACT, value),))
    yield Case(kind, resource, ((name, APPEND, None),))
    if kind == BROKER:
        prefixed = f"listener.name.plaintext.{name}"
        for value in dict.fromkeys([values[0], values[-1], "abc", "0", ""]):
            yield Case(kind, resource, ((prefixed, SET, value),))


def _odd_cases() -> Iterator[Case]:
    """Names and resources that are none, settings that are fixed, one name twice."""
    for name in ("unknown.setting", "", "listener.name.x.unknown", "ж", "a b", "listener.name.x."):
        for kind, resource in RESOURCES:
            yield Case(kind, resource, ((name, SET, "1"),))
            yield Case(kind, resource, ((name, DELETE, None),))
            yield Case(kind, resource, ((name, APPEND, "1"),))
    for setting in broker_settings().values():
        if not setting.dynamic and not setting.name.startswith("kafkalite."):
            for resource in (NODE, ""):
                yield Case(BROKER, resource, ((setting.name, SET, setting.default_text or "1"),))
            yield Case(BROKER, NODE, ((setting.name, DELETE, None),), validate_only=True)
    first = "log.retention.bytes"
    yield Case(BROKER, NODE, ((first, SET, "1"), (first, SET, "2")))
    yield Case(BROKER, NODE, ((first, 4, "1"),))
    yield Case(BROKER, NODE, ((first, -1, "1"),))
    for resource in ("2", "x", "-1", "01", "+1", " 1", "1.0", "99999999999", "١"):
        yield Case(BROKER, resource, ((first, SET, "1"),))
    for resource in ("", "nowhere", "a b", ".", "x" * 250):
        yield Case(TOPIC, resource, (("retention.bytes", SET, "1"),))
    for kind in (GROUP, CLIENT_METRICS):
        yield Case(kind, "", (("consumer.session.timeout.ms", SET, "45000"),))
    fixed = "listener.name.plaintext.ssl.client.auth"
    for name in ("max.connections", "log.retention.bytes", "cordoned.log.dirs", "ssl.provider"):
        yield Case(BROKER, NODE, ((fixed, SET, "none"), (name, SET, "")))
        yield Case(BROKER, NODE, ((fixed, SET, "none"), (name, SET, "1000")))
    yield from _together()


def _together() -> Iterator[Case]:
    """Rules over two settings, and a bad one beside a good one."""
    for steps in TOGETHER:
        kind = BROKER if steps[0][0].startswith(("log.", "max.", "num.")) else TOPIC
        kind = GROUP if steps[0][0].startswith(("consumer.", "share.", "streams.")) else kind
        resources = (NODE, "") if kind == BROKER else (dict(RESOURCES)[kind],)
        for resource in resources:
            for api in (INCREMENTAL, WHOLE):
                yield Case(kind, resource, tuple((name, SET, text) for name, text in steps), api)


SHUTTING_OUT = (
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.connection.creation.rate",
    "num.network.threads",
    "listeners",
    "listener.security.protocol.map",
)
RESOURCES = (
    (BROKER, NODE),
    (BROKER, ""),
    (TOPIC, TOPIC_NAME),
    (GROUP, GROUP_NAME),
    (CLIENT_METRICS, METRICS_NAME),
)
TOGETHER = (
    (("log.retention.bytes", "1000"), ("num.io.threads", "x")),
    (("log.retention.bytes", "1000"), ("max.connections.per.ip", "0")),
    (("max.connections.per.ip", "0"), ("max.connections.per.ip.overrides", "10.0.0.1:5")),
    (("log.retention.ms", "1000"), ("log.local.retention.ms", "1001")),
    (("log.retention.ms", "1000"), ("log.local.retention.ms", "1000")),
    (("log.retention.bytes", "1000"), ("log.local.retention.bytes", "1001")),
    (("log.cleaner.threads", "2"), ("log.cleaner.dedupe.buffer.size", "2097152")),
    (("log.cleaner.min.compaction.lag.ms", "2"), ("log.cleaner.max.compaction.lag.ms", "1")),
    (("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1")),
    (("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "2")),
    (("retention.bytes", "1000"), ("segment.bytes", "1")),
    (("retention.bytes", "1000"), ("unknown", "1")),
    (("retention.ms", "1000"), ("local.retention.ms", "2000")),
    (("remote.storage.enable", "true"), ("cleanup.policy", "compact")),
    (("consumer.session.timeout.ms", "45000"), ("consumer.heartbeat.interval.ms", "15000")),
    (("consumer.session.timeout.ms", "45000"), ("consumer.heartbeat.interval.ms", "45000")),
    (("share.session.timeout.ms", "45000"), ("share.heartbeat.interval.ms", "4999")),
    (("streams.session.timeout.ms", "45000"), ("unknown", "4999")),
)


def random_case(rng: random.Random) -> Case:
    """One to three steps on one resource, on top of what cases before left behind."""
    kind, resource, _ = rng.choice(_SETTINGS)
    mine = [each[2] for each in _SETTINGS if each[:2] == (kind, resource)]
    names: dict[str, Step] = {}
    for setting in rng.choices(mine, k=rng.choice((1, 1, 2, 3))):
        operation = rng.choice((SET, SET, SET, DELETE, APPEND, SUBTRACT))
        value = rng.choice(values_of(setting))
        if setting.name.endswith(".assignment.interval.ms"):
            value = value.strip()  # else Apache Kafka ignores what was set with it and after it
        names[setting.name] = setting.name, operation, None if operation == DELETE else value
    api = WHOLE if rng.random() < 0.1 else INCREMENTAL
    steps = tuple(names.values())
    if api == WHOLE:
        steps = tuple((name, SET, value or "") for name, _, value in steps)
    case = Case(kind, resource, steps, api, validate_only=rng.random() < 0.1)
    return replace(case, validate_only=True) if shuts_out(case) else case


# Apache Kafka takes any `config.providers`, and with a bad one refuses all that comes after it.
_SETTINGS = [each for each in dynamic_settings() if each[2].name != "config.providers"]
# Accepted, and still there after a restart: one or more for each resource and kind of value.
LASTING = (
    (BROKER, NODE, "log.retention.bytes", " 7 "),
    (BROKER, NODE, "log.cleaner.min.cleanable.ratio", "0.25d"),
    (BROKER, NODE, "log.cleanup.policy", "compact , delete"),
    (BROKER, NODE, "cordoned.log.dirs", ""),
    (BROKER, NODE, "listeners", "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:{controller}"),
    (BROKER, NODE, "ssl.client.auth", "none"),
    (BROKER, NODE, "leader.replication.throttled.rate", "1000"),
    (BROKER, NODE, "listener.name.plaintext.max.connections", "1000"),
    (BROKER, NODE, "listener.name.plaintext.ssl.keystore.password", "secret"),
    (BROKER, NODE, "unknown.setting", "kept"),
    (BROKER, "", "log.preallocate", "TRUE"),
    (BROKER, "", "max.connections.per.ip.overrides", "10.0.0.1:5"),
    (BROKER, "", "max.connection.creation.rate", "500"),
    (BROKER, "", "log.retention.ms", "-1"),
    (BROKER, "", "follower.replication.throttled.rate", " 5 "),
    (BROKER, "", "num.io.threads", "16"),
    (TOPIC, TOPIC_NAME, "cleanup.policy", "compact,compact"),
    (TOPIC, TOPIC_NAME, "min.cleanable.dirty.ratio", "1e-3"),
    (TOPIC, TOPIC_NAME, "preallocate", "TRUE"),
    (TOPIC, TOPIC_NAME, "leader.replication.throttled.replicas", "0:1,"),
    (GROUP, GROUP_NAME, "consumer.session.timeout.ms", "+45001"),
    (GROUP, GROUP_NAME, "share.auto.offset.reset", "by_duration:pt1h"),
    (CLIENT_METRICS, METRICS_NAME, "match", " client_id = a.* "),
    (CLIENT_METRICS, METRICS_NAME, "interval.ms", "0100"),
)


def lasting_cases() -> list[Case]:
    """What a restart must not change; nothing of it is put back."""
    return [Case(kind, resource, ((name, SET, value),)) for kind, resource, name, value in LASTING]
