"""Settings of topics, brokers, loggers, groups and client metrics, as a cluster tells them.

Owns who is asked: a broker knows its own settings and loggers, anyone the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kafkalite.client.admin import Admin, check
from kafkalite.protocol.messages import DescribeConfigsRequest, IncrementalAlterConfigsRequest

_SET, _UNSET = 0, 1  # operations
_STATIC, _DEFAULT = 4, 5
SOURCES = {
    1: "topic", 2: "broker", 3: "all brokers", _STATIC: "file", _DEFAULT: "default",
    6: "logger", 7: "client metrics", 8: "group",
}  # fmt: skip


class Kind(IntEnum):
    """What has settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(slots=True)
class Value:
    """text: None is one that is hidden, or none."""

    key: str
    text: str | None
    source: str
    is_default: bool
    is_hidden: bool
    is_fixed: bool  # while the broker runs
    doc: str | None
    # What would count without it, the next one first.
    behind: list[tuple[str, str | None]]


def values(admin: Admin, kind: Kind, name: str, keys: Sequence[str] | None = None) -> list[Value]:
    """All of one thing, or those asked for; ClientFailed when they cannot be had."""
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsRequest.Resource(
            resource_type=kind, resource_name=name,
            configuration_keys=None if keys is None else list(keys),
        )],
        include_synonyms=True, include_documentation=True,
    )  # fmt: skip
    [answer] = _ask(admin, kind, name, request).results
    check(f"the settings of {name or 'all brokers'} cannot be had", answer)
    return [_value(each) for each in sorted(answer.configs, key=lambda each: str(each.name))]


def alter(
    admin: Admin,
    kind: Kind,
    name: str,
    changed: Mapping[str, str],
    unset: Sequence[str] = (),
    *,
    is_tried: bool = False,
) -> None:
    """is_tried: it is only asked whether it would be done."""
    config = IncrementalAlterConfigsRequest.Config
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=kind, resource_name=name,
        configs=[
            *(config(name=key, config_operation=_SET, value=changed[key]) for key in changed),
            *(config(name=key, config_operation=_UNSET, value=None) for key in unset),
        ],
    )  # fmt: skip
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=is_tried)
    [answer] = _ask(admin, kind, name, request).responses
    check(f"the settings of {name or 'all brokers'} are not changed", answer)


def _ask(admin: Admin, kind: Kind, name: str, request: Any) -> Any:
    if kind in (Kind.BROKER, Kind.BROKER_LOGGER) and name:
        return admin.ask_broker(int(name), request)
    return admin.ask(request)


def _value(answer: Any) -> Value:
    source = SOURCES.get(answer.config_source, str(answer.config_source))
    behind = [
        (SOURCES.get(each.source, str(each.source)), each.value)
        for each in answer.synonyms
        if each.source != answer.config_source
    ]
    return Value(
        answer.name, answer.value, source, answer.config_source == _DEFAULT, answer.is_sensitive,
        answer.read_only, answer.documentation, behind,
    )  # fmt: skip
