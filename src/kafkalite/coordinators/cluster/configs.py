"""Decides on settings of topics, brokers, groups and client metrics subscriptions.

Owns Kafka's rules for what may be set where, and what a change by steps comes to. A resource is
changed whole or not at all; a bad one never fails its siblings. What only one broker can judge (its
own number, its listeners) is judged before, by that broker's handler.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from kafkalite.config import (
    BrokerConfig,
    InvalidSetting,
    Kind,
    broker_settings,
    check_group_settings,
    check_topic_settings,
    client_metrics_settings,
    group_settings,
    topic_settings,
)
from kafkalite.config.setting import whole_number
from kafkalite.config.tables import Table
from kafkalite.coordinators.cluster.client_metrics import check_client_metrics
from kafkalite.coordinators.cluster.create_topics import check_topic_name
from kafkalite.coordinators.cluster.image import Image
from kafkalite.coordinators.cluster.view import View, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.coordinators.events import Event
from kafkalite.env.dataclasses import dataclass
from kafkalite.env.slicing import LOOKS_PER_STEP, Steps, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import ClearElrRecord, ConfigRecord

# Steps that append can make a value longer than a request could set it.
MAX_VALUE_LENGTH = 32_767


class ResourceType(IntEnum):
    """What can have settings; the numbers are the protocol's."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """What a step does to a setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(slots=True, frozen=True)
class Step:
    """One step of a change: a value is text, null only where it is deleted."""

    name: str
    # An Operation, unless the peer made it up.
    operation: int
    value: str | None


@dataclass(slots=True)
class ResourceChange:
    """What is asked for one resource; `is_whole` means that settings not named are lost."""

    resource_type: int
    name: str
    steps: list[Step]
    is_whole: bool = False


@dataclass(slots=True)
class AlterConfigs(Event["list[Outcome]"]):
    """Changes of several resources; the reply is an error or None for each, in their order."""

    changes: list[ResourceChange]
    validate_only: bool = False


Outcome = KafkaError | None
TABLES = {
    ResourceType.TOPIC: topic_settings,
    ResourceType.BROKER: broker_settings,
    ResourceType.CLIENT_METRICS: client_metrics_settings,
    ResourceType.GROUP: group_settings,
}


def alter_configs(view: View, asked: AlterConfigs) -> Steps[Effects]:
    """Changes settings; the reply tells for each resource what was wrong, None where nothing."""
    records: list[ConfigRecord | ClearElrRecord] = []
    outcomes: list[Outcome] = []
    for change in asked.changes:
        try:
            records += yield from _change(view, change)
            outcomes.append(None)
        except InvalidSetting as error:
            outcomes.append(KafkaError(Error.INVALID_CONFIG, str(error)))
        except KafkaError as error:
            outcomes.append(error)
        yield
    if view.image.has_elr:
        records += list(_clear_elr(records))
    return (yield from decided_in_steps(view, [] if asked.validate_only else records, outcomes))


def _change(view: View, change: ResourceChange) -> Steps[list[ConfigRecord]]:
    old = view.image.config(change.resource_type, change.name)
    new = {} if change.is_whole else dict(old)
    touched: dict[str, None] = {}
    for number, step in enumerate(change.steps, 1):
        value = new_value(change.resource_type, step, new.get(step.name))
        touched[step.name] = None
        if value is None:
            new.pop(step.name, None)
        else:
            new[step.name] = value
        if number % LOOKS_PER_STEP == 0:
            yield
    touched.update(dict.fromkeys(name for name in old if name not in new))
    yield from _check(view, change, new, touched)
    is_broker = change.resource_type == ResourceType.BROKER
    # A broker reloads what it is told again, so a broker's settings are written even unchanged.
    return (yield from in_steps(
        ConfigRecord(
            resource_type=change.resource_type,
            resource_name=change.name,
            name=name,
            value=new.get(name),
        )
        for name in touched
        if is_broker or old.get(name) != new.get(name)
    ))


def apply_dynamic_config(image: Image, config: BrokerConfig) -> None:
    """Gives a broker's configuration the dynamic settings that the image has for it."""
    own = image.config(ResourceType.BROKER, str(config.node_id))
    config.set_dynamic(image.config(ResourceType.BROKER, ""), own)


def new_value(resource_type: int, step: Step, old: str | None) -> str | None:
    """The value of a setting after a step; raises INVALID_CONFIG for steps on what is no list."""
    if step.operation == Operation.SET:
        return step.value
    if step.operation == Operation.DELETE:
        return None
    table: Table = TABLES[ResourceType(resource_type)]()
    setting = table.get(step.name)
    # Kafka's controller knows no types of subscriptions' settings.
    is_typed = resource_type != ResourceType.CLIENT_METRICS
    if setting is None or setting.kind is not Kind.LIST or not is_typed:
        verb = Operation(step.operation).name
        why = f"Can't {verb} to key {step.name} because its type is not LIST."
        raise KafkaError(Error.INVALID_CONFIG, why)
    start = old if old is not None else setting.default_text
    items = [item for item in (start or "").split(",") if item]
    for item in split(step.value or ""):
        if step.operation == Operation.APPEND and item not in items:
            items.append(item)
        elif step.operation == Operation.SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def split(text: str) -> list[str]:
    """The items of a list as Java splits them: what is empty at the end is dropped."""
    items = text.split(",")
    while text and items and not items[-1]:
        items.pop()
    return items


def _check(
    view: View, change: ResourceChange, new: dict[str, str], touched: dict[str, None]
) -> Steps[None]:
    for number, name in enumerate(touched, 1):
        if number % LOOKS_PER_STEP == 0:
            yield
        if len(new.get(name, "")) > MAX_VALUE_LENGTH:
            raise InvalidSetting(
                "The configuration value cannot be added because it exceeds the maximum value "
                f"size of {MAX_VALUE_LENGTH} bytes."
            )
    match change.resource_type:
        case ResourceType.TOPIC:
            _check_topic(view, change.name, new)
        case ResourceType.BROKER:
            _check_broker(view, change.name, new, touched)
        case ResourceType.GROUP:
            if not change.name:
                why = "Default group resources are not allowed."
                raise KafkaError(Error.INVALID_REQUEST, why)
            check_group_settings(view.config, new)
        case ResourceType.CLIENT_METRICS:
            yield from check_client_metrics(change.name, new)
        case _:
            why = f"Unknown resource type {change.resource_type}"
            raise KafkaError(Error.INVALID_REQUEST, why)


def _check_topic(view: View, name: str, new: dict[str, str]) -> None:
    if not name:
        raise KafkaError(Error.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_topic_name(name)
    check_topic_settings(view.config, new)
    if name not in view.image.topics:
        why = f"The topic '{name}' does not exist."
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION, why)


def _check_broker(view: View, name: str, new: dict[str, str], touched: dict[str, None]) -> None:
    node_id = whole_number(name)
    if name and node_id is None:
        why = "Unable to parse broker name as a base 10 number."
        raise KafkaError(Error.INVALID_REQUEST, why)
    if "min.insync.replicas" in touched and view.image.has_elr:
        if name:
            raise InvalidSetting(
                "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
            )
        if "min.insync.replicas" not in new:
            raise InvalidSetting(
                "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
            )
    if name and node_id not in view.image.brokers:
        raise KafkaError(Error.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")


def _clear_elr(records: list[ConfigRecord | ClearElrRecord]) -> Iterator[ClearElrRecord]:
    """With another least count of in-sync replicas, who was eligible before says nothing."""
    for record in records:
        if isinstance(record, ConfigRecord) and record.name == "min.insync.replicas":
            is_topic = record.resource_type == ResourceType.TOPIC
            yield ClearElrRecord(topic_name=record.resource_name if is_topic else "")
