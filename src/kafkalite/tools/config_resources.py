"""The settings of topics, brokers, loggers, groups and client metrics, for `kafka-configs`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kafkalite.coordinators.cluster.create_topics import check_topic_name
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from kafkalite.tools.asking import Asking
from kafkalite.tools.failures import Failure, execution, refused, wrapped
from kafkalite.tools.group_questions import list_groups
from kafkalite.tools.java_maps import in_map_order, in_scala_set_order
from kafkalite.tools.topic_reports import all_topics

BROKERS, LOGGERS = "brokers", "broker-loggers"
_NUMBERS = {"topics": 2, BROKERS: 4, LOGGERS: 8, "client-metrics": 16, "groups": 32}
_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG", 2: "DYNAMIC_BROKER_CONFIG", 3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG", 5: "DEFAULT_CONFIG", 6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG", 8: "DYNAMIC_GROUP_CONFIG",
}  # fmt: skip
_OF_TYPE = {"topics": 1, BROKERS: 2, "client-metrics": 7, "groups": 8}
_OF_ALL_BROKERS = 3
_SET, _DELETE = 0, 1
_INVALID = "org.apache.kafka.common.errors.InvalidConfigurationException"


@dataclass(slots=True)
class Subject:
    """Whose settings: types of entities, and their names, "" for the defaults."""

    types: list[str]
    names: list[str]


@dataclass(slots=True)
class Change:
    added: dict[str, str]
    deleted: list[str]


class Resources:
    """is_of_controllers: whether it is controllers that are asked."""

    def __init__(self, asking: Asking, is_of_controllers: bool) -> None:
        self._asking, self._is_of_controllers = asking, is_of_controllers

    def describe(self, subject: Subject, *, is_all: bool) -> None:
        kind = subject.types[0]
        names = subject.names[:1]
        if kind == "topics" and names and not is_all:
            _check_topic(names[0])
        if names and not is_all and not self._is_there(kind, names[0]):
            print(f"The {kind[:-1]} '{names[0]}' doesn't exist and doesn't have dynamic config.")
            return
        for name in names or self._all(kind):
            if name:
                print(f"{'All' if is_all else 'Dynamic'} configs for {kind[:-1]} {name} are:")
            else:
                print(f"Default configs for {kind} in the cluster are:")
            for each in self._configs(kind, name, is_all=is_all):
                synonyms = ", ".join(
                    f"{_SOURCES[other.source]}:{other.name}={_shown(other.value)}"
                    for other in each.synonyms
                )
                is_sensitive = str(each.is_sensitive).lower()
                print(
                    f"  {each.name}={_shown(each.value)} sensitive={is_sensitive} "
                    f"synonyms={{{synonyms}}}"
                )

    def alter(self, subject: Subject, change: Change) -> None:
        kind, name = subject.types[0], subject.names[0]
        if kind == LOGGERS:
            known = {each.name for each in self._configs(kind, name, is_all=False)}
            wrong = [each for each in (*change.deleted, *change.added) if each not in known]
            if wrong:
                message = f"Invalid broker logger(s): {','.join(wrong)}"
                raise Failure(_INVALID, message)
        config = IncrementalAlterConfigsRequest.Config
        configs = [
            *(config(name=key, config_operation=_SET, value=change.added[key])
              for key in change.added),
            *(config(name=key, config_operation=_DELETE, value="") for key in change.deleted),
        ]  # fmt: skip
        resource = IncrementalAlterConfigsRequest.Resource(
            resource_type=_NUMBERS[kind], resource_name=name, configs=configs
        )
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        with wrapped(execution):
            [answer] = self._ask("incrementalAlterConfigs", kind, name, request).responses
            _check(answer)

    def _configs(self, kind: str, name: str, *, is_all: bool) -> list[Any]:
        if kind == "topics" and name:
            _check_topic(name)
        resource = DescribeConfigsRequest.Resource(
            resource_type=_NUMBERS[kind], resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
        with wrapped(execution):
            [answer] = self._ask("describeConfigs", kind, name, request).results
            _check(answer)
        source = _OF_ALL_BROKERS if kind == BROKERS and not name else _OF_TYPE.get(kind)
        return sorted(
            (
                each
                for each in answer.configs
                if is_all or source is None or each.config_source == source
            ),
            key=lambda each: str(each.name),
        )

    def _ask(self, call: str, kind: str, name: str, request: Any) -> Any:
        """A broker tells of itself; anybody of the rest."""
        if kind in (BROKERS, LOGGERS) and name and not self._is_of_controllers:
            return self._asking.broker(call, int(name), request)
        return self._asking.any(call, request)

    def _is_there(self, kind: str, name: str) -> bool:
        return (kind == BROKERS and not name) or name in self._all(kind)

    def _all(self, kind: str) -> list[str]:
        with wrapped(execution):
            if kind in (BROKERS, LOGGERS):
                request = DescribeClusterRequest(endpoint_type=2 if self._is_of_controllers else 1)
                answer = self._asking.any("listNodes", request)
                return [*(str(each.broker_id) for each in answer.brokers), ""]
            if self._is_of_controllers:
                raise refused(Error.UNSUPPORTED_ENDPOINT_TYPE, _NOT_OF_CONTROLLERS)
            if kind == "topics":
                return in_map_order(each.name for each in all_topics(self._asking))
            listed = self._listed(kind)
            if kind != "groups":
                return listed
            groups = [each.group_id for each in list_groups(self._asking)]
            return in_scala_set_order([*groups, *listed])

    def _listed(self, kind: str) -> list[str]:
        """Those that have settings."""
        request = ListConfigResourcesRequest(resource_types=[_NUMBERS[kind]])
        answer = self._asking.any("listConfigResources", request)
        if answer.error_code != Error.NONE:
            raise refused(answer.error_code)
        return list(_names(answer.config_resources))


_NOT_OF_CONTROLLERS = (
    "This Admin API is not yet supported when communicating directly with the controller quorum."
)


def _names(resources: Iterable[Any]) -> Iterable[str]:
    return (each.resource_name for each in resources)


def _shown(value: str | None) -> str:
    return "null" if value is None else value


def _check_topic(name: str) -> None:
    try:
        check_topic_name(name)
    except KafkaError as wrong:
        raise Failure(_INVALID, str(wrong)) from None


def _check(answer: Any) -> None:
    if answer.error_code != Error.NONE:
        raise refused(answer.error_code, answer.error_message)
