"""Decides on new topics, with their partitions and settings.

Owns Kafka's rules and sentences for them. Answers with the records of one batch and the reply; one
bad topic in a request never fails its siblings.
"""

from __future__ import annotations

import re

from kafkalite.config import (
    BrokerConfig,
    InvalidSetting,
    Source,
    check_topic_settings,
    given_for_topic,
    render,
)
from kafkalite.config.tables import topic_settings
from kafkalite.config.topic import topic_value
from kafkalite.coordinators.cluster.assignments import (
    brokers_in_order,
    check_alive,
    check_assignment,
    partition_records,
)
from kafkalite.coordinators.cluster.events import CreateTopics
from kafkalite.coordinators.cluster.image import unified
from kafkalite.coordinators.cluster.placement import place
from kafkalite.coordinators.cluster.states import TOPIC
from kafkalite.coordinators.cluster.view import (
    MAX_RECORDS_PER_REQUEST,
    METADATA_TOPIC,
    View,
    decided_in_steps,
    text_of,
)
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.java_hash import in_hash_order
from kafkalite.env.slicing import Steps, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    ClearElrRecord,
    ConfigRecord,
    CreateTopicsRequest,
    CreateTopicsResponse,
    TopicRecord,
)

# Kafka's bound on what one request may create.
MAX_PARTITIONS_PER_REQUEST = 10_000
MAX_NAME_LENGTH = 249
_AT_ONCE = 32  # assignments given by hand

TopicAsked = CreateTopicsRequest.Topic
Records = list[object]


def create_topics(view: View, event: CreateTopics) -> Steps[Effects]:
    """Creates topics with their partitions and settings."""
    request = event.request
    _check_total(view, request)
    names, repeated = set[str](), list[str]()
    for topic in request.topics:
        if topic.name in names:
            repeated.append(topic.name)
        names.add(topic.name)
    twice = dict.fromkeys(in_hash_order(repeated))
    records: Records = []
    response = CreateTopicsResponse()
    for topic in request.topics:
        if topic.name not in twice and topic.name != METADATA_TOPIC:
            response.topics.append((yield from _create_or_refuse(view, topic, event, records)))
            yield
    response.topics += [
        _refused(name, Error.INVALID_REQUEST, "Duplicate topic name.") for name in twice
    ]
    if len(records) > MAX_RECORDS_PER_REQUEST:
        why = "Unable to perform excessively large batch operation."
        raise KafkaError(Error.POLICY_VIOLATION, why)
    if METADATA_TOPIC in names and METADATA_TOPIC not in twice:
        why = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        response.topics.append(_refused(METADATA_TOPIC, Error.INVALID_REQUEST, why))
    return (yield from decided_in_steps(view, [] if request.validate_only else records, response))


def _check_total(view: View, request: CreateTopicsRequest) -> None:
    default = view.config.get_int("num.partitions")
    total = 0
    for topic in request.topics:
        count = default if topic.num_partitions == -1 else max(0, topic.num_partitions)
        total += len(topic.assignments) or count
    if total > MAX_PARTITIONS_PER_REQUEST:
        why = "Excessively large number of partitions per request."
        raise KafkaError(Error.POLICY_VIOLATION, why)


def _create_or_refuse(
    view: View, topic: TopicAsked, event: CreateTopics, records: Records
) -> Steps[CreateTopicsResponse.Topic]:
    try:
        return (yield from _create_topic(view, topic, event, records))
    except KafkaError as error:
        is_throttled = error.code == Error.THROTTLING_QUOTA_EXCEEDED
        return _refused(topic.name, error.code, None if is_throttled else text_of(error))
    except InvalidSetting as error:
        return _refused(topic.name, Error.INVALID_CONFIG, str(error))


def _refused(name: str, code: Error, why: str | None) -> CreateTopicsResponse.Topic:
    return CreateTopicsResponse.Topic(name=name, error_code=code, error_message=why, configs=[])


def _create_topic(
    view: View, topic: TopicAsked, event: CreateTopics, records: Records
) -> Steps[CreateTopicsResponse.Topic]:
    check_topic_name(topic.name)
    if topic.name in view.image.topics:
        why = f"Topic '{topic.name}' already exists."
        raise KafkaError(Error.TOPIC_ALREADY_EXISTS, why)
    others = view.image.unified.get(unified(topic.name))
    if others is not None and ("." in topic.name or "_" in topic.name):
        why = f"Topic '{topic.name}' collides with existing topic: {next(iter(others))}"
        raise KafkaError(Error.INVALID_TOPIC_EXCEPTION, why)
    settings = _settings(view, topic)
    assignments = yield from _assignments(view, topic)
    event.take(len(assignments))
    topic_id = view.random_uuid()
    records.append(TopicRecord(name=topic.name, topic_id=topic_id))
    records += [
        ConfigRecord(resource_type=TOPIC, resource_name=topic.name, name=name, value=value)
        for name, value in settings.items()
    ]
    if "min.insync.replicas" in settings and view.image.has_elr:
        records.append(ClearElrRecord(topic_name=topic.name))
    records += yield from in_steps(partition_records(view, topic_id, 0, assignments))
    return _created(view, topic.name, topic_id, assignments, settings)


def check_topic_name(name: str) -> None:
    """Raises INVALID_TOPIC_EXCEPTION unless a topic may have this name."""
    if not name:
        why = "the empty string is not allowed"
    elif name in (".", ".."):
        why = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        why = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not re.fullmatch(r"[a-zA-Z0-9._-]+", name):
        why = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    else:
        return
    raise KafkaError(Error.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def _settings(view: View, topic: TopicAsked) -> dict[str, str]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        why = f"Null value not supported for topic configs: {','.join(nulls)}"
        raise KafkaError(Error.INVALID_CONFIG, why)
    settings = {config.name: config.value for config in topic.configs if config.value is not None}
    check_topic_settings(view.config, settings)
    return settings


def _assignments(view: View, topic: TopicAsked) -> Steps[list[list[int]]]:
    if topic.assignments:
        return (yield from _manual_assignments(view, topic))
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        why = "Replication factor must be larger than 0, or -1 to use the default value."
        raise KafkaError(Error.INVALID_REPLICATION_FACTOR, why)
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        why = "Number of partitions was set to an invalid non-positive value."
        raise KafkaError(Error.INVALID_PARTITIONS, why)
    count, factor = topic.num_partitions, topic.replication_factor
    if count == -1:
        count = view.config.get_int("num.partitions")
    if factor == -1:
        factor = view.config.get_int("default.replication.factor")
    try:
        placed = place(brokers_in_order(view), count, factor, view.random)
    except KafkaError as error:
        why = f"Unable to replicate the partition {factor} time(s): {error.message}"
        raise KafkaError(error.code, why) from None
    return (yield from in_steps(placed))


def _manual_assignments(view: View, topic: TopicAsked) -> Steps[list[list[int]]]:
    for value, what in (
        (topic.replication_factor, "replication factor"),
        (topic.num_partitions, "numPartitions"),
    ):
        if value != -1:
            why = f"A manual partition assignment was specified, but {what} was not set to -1."
            raise KafkaError(Error.INVALID_REQUEST, why)
    found: dict[int, list[int]] = {}
    factor: int | None = None
    for each in topic.assignments:
        if each.partition_index in found:
            why = (
                "Found multiple manual partition assignments for partition "
                f"{each.partition_index}"
            )
            raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, why)
        check_assignment(view, each.broker_ids, factor)
        check_alive(view, each.broker_ids, each.partition_index)
        factor = len(each.broker_ids)
        found[each.partition_index] = each.broker_ids
        if len(found) % _AT_ONCE == 0:
            yield
    if set(found) != set(range(len(found))):
        why = "partitions should be a consecutive 0-based integer sequence"
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, why)
    return [found[index] for index in range(len(found))]


def _created(
    view: View, name: str, topic_id: bytes, assignments: list[list[int]], settings: dict[str, str]
) -> CreateTopicsResponse.Topic:
    return CreateTopicsResponse.Topic(
        name=name,
        topic_id=topic_id,
        error_code=Error.NONE,
        error_message=None,
        num_partitions=len(assignments),
        replication_factor=len(assignments[0]),
        configs=_described(view, settings),
    )


def _described(view: View, settings: dict[str, str]) -> list[CreateTopicsResponse.Config]:
    """A topic's settings as its creator is told of them; most are those of every topic."""
    usual: dict[str, CreateTopicsResponse.Config] = view.config.derived(_described_usually)
    if not settings:
        return list(usual.values())
    own = {name: _described_one(view.config, name, settings) for name in settings}
    return [found for _, found in sorted((usual | own).items())]


def _described_usually(config: BrokerConfig) -> dict[str, CreateTopicsResponse.Config]:
    return {
        name: _described_one(config, name, {})
        for name, setting in sorted(topic_settings().items())
        if not setting.internal
    }


def _described_one(
    config: BrokerConfig, name: str, settings: dict[str, str]
) -> CreateTopicsResponse.Config:
    given = given_for_topic(config, settings, name)
    return CreateTopicsResponse.Config(
        name=name,
        value=render(topic_value(config, settings, name)),
        read_only=False,
        config_source=given[0].source if given else Source.DEFAULT,
        is_sensitive=False,
    )
