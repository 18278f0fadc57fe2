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
from kafkalite.config.layers import synonyms_of
from kafkalite.coordinators.cluster.configs import ResourceType
from kafkalite.coordinators.cluster.create_topics import check_topic_name
from kafkalite.coordinators.cluster.view import text_of
from kafkalite.env.slicing import InSteps, Steps
from kafkalite.handlers.broker_loggers import levels
from kafkalite.handlers.broker_settings import node_number
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import require_for_settings
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DescribeConfigsRequest, DescribeConfigsResponse
from kafkalite.security.acl import DESCRIBE_CONFIGS

UNKNOWN_TYPE = 0

Answer = DescribeConfigsResponse.Config
Result = DescribeConfigsResponse.Result


def describe_configs(
    context: Context, call: Call, request: DescribeConfigsRequest
) -> InSteps:
    for asked in request.resources:
        if asked.resource_type not in DESCRIBERS:
            why = f"Unexpected resource type {asked.resource_type}"
            raise KafkaError(Error.INVALID_REQUEST, f"{why} for resource {asked.resource_name}")
    return InSteps(_answers(context, call, request))


def _answers(
    context: Context, call: Call, request: DescribeConfigsRequest
) -> Steps[DescribeConfigsResponse]:
    """What is refused comes behind what is told."""
    response, refused = DescribeConfigsResponse(), list[Result]()
    for asked in request.resources:
        kind, name = asked.resource_type, asked.resource_name
        try:
            require_for_settings(context, call, DESCRIBE_CONFIGS, kind, name)
        except KafkaError as error:
            refused.append(
                Result(
                    error_code=error.code, error_message=text_of(error), resource_type=kind,
                    resource_name=name,
                )
            )
        else:
            response.results.append(_resource(context, request, asked))
        yield
    response.results += refused
    return response


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
    if name not in context.metadata.image.topics:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, "")
    config, overrides = context.config, context.metadata.image.config(ResourceType.TOPIC, name)
    answers = []
    for setting in topic_settings().values():
        given = given_for_topic(config, overrides, setting.name)
        if setting.name in overrides:
            answers.append(_answer(setting.name, given[0].text, given, setting))
        elif not setting.internal:
            value = render(topic_value(config, {}, setting.name))
            answers.append(_answer(setting.name, value, given, setting))
    return answers


def _group(context: Context, name: str) -> list[Answer]:
    if not name:
        raise KafkaError(Error.INVALID_REQUEST, "Group name must not be empty")
    config, overrides = context.config, context.metadata.image.config(ResourceType.GROUP, name)
    answers = []
    for setting in group_settings().values():
        given = given_for_group(config, overrides, setting.name)
        # What was set is told as it was set, also where the broker's bounds hold it back.
        is_own = given[0].source is Source.GROUP
        value = given[0].text if is_own else render(group_value(config, {}, setting.name))
        answers.append(_answer(setting.name, value, given, setting))
    return answers


def _client_metrics(context: Context, name: str) -> list[Answer]:
    if not name:
        why = "Client metrics subscription name must not be empty"
        raise KafkaError(Error.INVALID_REQUEST, why)
    settings = context.metadata.image.config(ResourceType.CLIENT_METRICS, name)
    answers = []
    for setting in client_metrics_settings().values():
        text = settings.get(setting.name)
        value = render(setting.default()) if text is None else setting.normal(text)
        given = [] if text is None else [Given(setting.name, value, Source.CLIENT_METRICS)]
        answers.append(_answer(setting.name, value, given, setting))
    return answers


def _broker(context: Context, name: str) -> list[Answer]:
    if not name:
        return _cluster_defaults(context)
    _check_broker(context, name, "expected {} or empty string, but received {}")
    config = context.config
    table = broker_settings()
    answers = [
        _broker_setting(each.name, render(config.get(each.name)), config.given(each.name))
        for each in table.values()
        if not each.internal and each.has_static
    ]
    # What a file never has is shown as it was written, like what nobody knows.
    extra = [
        name for name in config.given_names() if name not in table or not table[name].has_static
    ]
    return answers + [
        _broker_setting(name, config.text(name), config.given(name)) for name in extra
    ]


def _cluster_defaults(context: Context) -> list[Answer]:
    """Only what was set for all brokers."""
    config = context.config
    return [
        _broker_setting(
            name,
            text,
            [each for each in config.given(name) if each.source is Source.DYNAMIC_DEFAULT_BROKER],
        )
        for name, text in config.dynamic_layer(is_per_broker=False).items()
    ]


def _broker_setting(name: str, value: str | None, given: list[Given]) -> Answer:
    known = broker_settings().get(name)
    base = broker_settings().get(synonyms_of(name)[-1])
    setting = base if known is None and base is not None and base.has_static else known
    answer = _answer(name, value, given, setting)
    answer.read_only = known is None or not known.dynamic
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
    node_id = node_number(name)
    if node_id is None:
        why = f"Broker id must be an integer, but it is: {name}"
        raise KafkaError(Error.INVALID_REQUEST, why)
    if node_id != context.node_id:
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
