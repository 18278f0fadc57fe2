"""DescribeConfigs, versions 0–4: settings of topics, brokers, loggers, groups and subscriptions.

Versions: 1 sources and synonyms (KIP-226), 3 types and documentation (KIP-569), 4 flexible. Every
setting is named with the layer that its value comes from; passwords are never told. A broker
answers for itself and for the cluster's defaults.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkalite.config import (
    Given,
    Setting,
    Source,
    broker_settings,
    client_metrics_settings,
    given_for_group,
    given_for_topic,
    group_settings,
    group_value,
    render,
    topic_settings,
    topic_value,
)
from kafkalite.config.tables import base_name
from kafkalite.coordinators.cluster.configs import ResourceType
from kafkalite.coordinators.cluster.create_topics import check_topic_name
from kafkalite.coordinators.cluster.deciding import text_of
from kafkalite.handlers.broker_loggers import levels
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse

UNKNOWN_TYPE = 0

Answer = DescribeConfigsResponse.Config
Result = DescribeConfigsResponse.Result


def describe_configs(
    context: Context, call: Call, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    for asked in request.resources:
        if asked.resource_type not in DESCRIBERS:
            why = f"Unexpected resource type {asked.resource_type}"
            raise KafkaError(Error.INVALID_REQUEST, f"{why} for resource {asked.resource_name}")
    return DescribeConfigsResponse(
        results=[_resource(context, request, asked) for asked in request.resources]
    )


def _resource(
    context: Context, request: DescribeConfigsRequest, asked: DescribeConfigsRequest.Resource
) -> Result:
    result = Result(
        error_code=Error.NONE,
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
    )
    try:
        answers = DESCRIBERS[asked.resource_type](context, asked.resource_name)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, text_of(error)
        return result
    wanted = set(asked.configuration_keys or ())
    result.configs = [each for each in answers if not wanted or each.name in wanted]
    for each in result.configs:
        each.synonyms = each.synonyms if request.include_synonyms else []
        each.documentation = each.documentation if request.include_documentation else None
    return result


def _topic(context: Context, name: str) -> list[Answer]:
    check_topic_name(name)
    if name not in context.cluster.image.topics:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    config, overrides = context.config, context.cluster.image.config(ResourceType.TOPIC, name)
    return [
        _answer(
            setting.name,
            render(topic_value(config, overrides, setting.name)),
            given_for_topic(config, overrides, setting.name),
            setting,
        )
        for setting in topic_settings().values()
        if not setting.internal or setting.name in overrides
    ]


def _group(context: Context, name: str) -> list[Answer]:
    if not name:
        raise KafkaError(Error.INVALID_REQUEST, "Group name must not be empty")
    config, overrides = context.config, context.cluster.image.config(ResourceType.GROUP, name)
    return [
        _answer(
            setting.name,
            render(group_value(config, overrides, setting.name)),
            given_for_group(config, overrides, setting.name),
            setting,
        )
        for setting in group_settings().values()
    ]


def _client_metrics(context: Context, name: str) -> list[Answer]:
    if not name:
        why = "Client metrics subscription name must not be empty"
        raise KafkaError(Error.INVALID_REQUEST, why)
    settings = context.cluster.image.config(ResourceType.CLIENT_METRICS, name)
    answers = []
    for setting in client_metrics_settings().values():
        text = settings.get(setting.name)
        given = [] if text is None else [Given(setting.name, text, Source.CLIENT_METRICS)]
        value = render(setting.default()) if text is None else text
        answers.append(_answer(setting.name, value, given, setting))
    return answers


def _broker(context: Context, name: str) -> list[Answer]:
    if not name:
        return _cluster_defaults(context)
    _check_broker(context, name, "expected {} or empty string, but received {}")
    config = context.config
    names = [each.name for each in broker_settings().values() if not each.internal]
    extra = [each for each in config.given_names() if each not in broker_settings()]
    return [
        _broker_setting(context, each, config.given(each))
        for each in [*names, *extra]
        if each in extra or broker_settings()[each].update.value != "dynamic-only"
        or config.is_given(each)
    ]


def _cluster_defaults(context: Context) -> list[Answer]:
    """Only what was set for all brokers."""
    answers = []
    for name in context.cluster.image.config(ResourceType.BROKER, ""):
        given = [
            each
            for each in context.config.given(name)
            if each.source is Source.DYNAMIC_DEFAULT_BROKER
        ]
        answers.append(_broker_setting(context, name, given))
    return answers


def _broker_setting(context: Context, name: str, given: list[Given]) -> Answer:
    setting = broker_settings().get(base_name(name))
    known = broker_settings().get(name)
    if known is not None and (not given or given[0].source is not Source.DYNAMIC_DEFAULT_BROKER):
        value = render(context.config.get(name))
    else:
        value = given[0].text if given else None
    answer = _answer(name, value, given, setting)
    answer.read_only = setting is None or not setting.dynamic
    return answer


def _loggers(context: Context, name: str) -> list[Answer]:
    if not name:
        raise KafkaError(Error.INVALID_REQUEST, "Broker id must not be empty")
    _check_broker(context, name, "expected {} but received {}")
    return [
        Answer(name=logger, value=level, config_source=Source.DYNAMIC_BROKER_LOGGER)
        for logger, level in levels().items()
    ]


def _check_broker(context: Context, name: str, mismatch: str) -> None:
    if not name.removeprefix("-").isdecimal():
        why = f"Broker id must be an integer, but it is: {name}"
        raise KafkaError(Error.INVALID_REQUEST, why)
    if int(name) != context.node_id:
        why = f"Unexpected broker id, {mismatch.format(context.node_id, name)}"
        raise KafkaError(Error.INVALID_REQUEST, why)


def _answer(name: str, value: str | None, given: list[Given], setting: Setting | None) -> Answer:
    """One setting; what is not in the tables may be a secret, and is treated as one."""
    is_sensitive = setting is None or setting.sensitive
    source = given[0].source if given else Source.DEFAULT
    return Answer(
        name=name,
        value=None if is_sensitive else value,
        is_default=source is Source.DEFAULT,
        config_source=source,
        is_sensitive=is_sensitive,
        synonyms=[
            DescribeConfigsResponse.Synonym(
                name=each.name, value=None if is_sensitive else each.text, source=each.source
            )
            for each in given
        ],
        config_type=UNKNOWN_TYPE if setting is None else setting.kind,
        documentation=None if setting is None else documentation(setting),
    )


def documentation(setting: Setting) -> str:
    """What a setting does, and whether it does so here."""
    if setting.ignored is None:
        return setting.doc
    return f"{setting.doc} (No effect here: {setting.ignored}.)"


DESCRIBERS: dict[int, Callable[[Context, str], list[Answer]]] = {
    ResourceType.TOPIC: _topic,
    ResourceType.BROKER: _broker,
    ResourceType.BROKER_LOGGER: _loggers,
    ResourceType.CLIENT_METRICS: _client_metrics,
    ResourceType.GROUP: _group,
}
