"""What only the broker itself can judge of a change to its settings, before the change is decided.

Owns Kafka's checks of names, of what may change while the broker runs, and of what the settings
would come to together. Changes nothing.
"""

from __future__ import annotations

from kafkalite.config import InvalidSetting, Kind, Update, broker_settings
from kafkalite.config.dynamic import check_change
from kafkalite.config.setting import whole_number
from kafkalite.coordinators.cluster.configs import Operation, Outcome, ResourceChange, Step, split
from kafkalite.env.later import Later
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError

INT_BOUND = 1 << 31


def check_node_id(context: Context, name: str) -> None:
    """Raises INVALID_REQUEST unless this is this broker's number."""
    node_id = node_number(name)
    if node_id is None:
        why = f"Node id must be an integer, but it is: {name}"
        raise KafkaError(Error.INVALID_REQUEST, why)
    if node_id != context.node_id:
        why = f"Unexpected broker id, expected {context.node_id}, but received {name}"
        raise KafkaError(Error.INVALID_REQUEST, why)


def check_logger_node(context: Context, name: str) -> None:
    """The same for the broker's loggers."""
    if node_number(name) not in (None, context.node_id):
        why = f"Unexpected node id. Expected {context.node_id}, but received {name}"
        raise KafkaError(Error.INVALID_REQUEST, why)
    check_node_id(context, name)


def node_number(text: str) -> int | None:
    """What Java's `parseInt` makes of it, however long it is."""
    number = whole_number(text)
    return number if number is not None and -INT_BOUND <= number < INT_BOUND else None


def check_broker_change(context: Context, change: ResourceChange) -> Later[Outcome]:
    """Refuses it with INVALID_REQUEST unless this broker could run with the changed settings: some
    of that is raised at once, some takes a look into files."""
    is_per_broker = change.name != ""
    if is_per_broker:
        check_node_id(context, change.name)
    layer = {} if change.is_whole else context.config.dynamic_layer(is_per_broker=is_per_broker)
    for step in change.steps:
        _apply(layer, step)
    try:
        check_change(context.config, layer, is_per_broker=is_per_broker)
        changed = context.config.with_layer(layer, is_per_broker=is_per_broker)
    except InvalidSetting as error:
        # An invalid request, not an invalid setting: so Kafka answers since its beginnings.
        raise KafkaError(Error.INVALID_REQUEST, str(error)) from None
    return context.check_keys(changed).map(_without_keys)


def _without_keys(why: InvalidSetting | None) -> Outcome:
    """As Kafka words it."""
    if why is None:
        return None
    return KafkaError(
        Error.INVALID_REQUEST,
        "Invalid value org.apache.kafka.common.config.ConfigException: Validation of dynamic "
        f"config update of SSLFactory failed: {why} for configuration Invalid dynamic "
        "configuration",
    )


def _apply(layer: dict[str, str], step: Step) -> None:
    """The broker's own reckoning of a step; the cluster's, which counts, is beside its records."""
    if step.operation == Operation.DELETE:
        layer.pop(step.name, None)
        return
    assert step.value is not None, "refused before"
    if step.operation == Operation.SET:
        layer[step.name] = step.value
        return
    setting = broker_settings().get(step.name)
    if setting is None or setting.update is Update.DYNAMIC_ONLY:
        raise KafkaError(Error.INVALID_CONFIG, f"Unknown config name: {step.name}")
    if setting.kind is not Kind.LIST:
        verb = Operation(step.operation).name.lower()
        why = f"Config value {verb} is not allowed for config key: {step.name}"
        raise KafkaError(Error.INVALID_CONFIG, why)
    items = split(layer.get(step.name, setting.default_text or ""))
    if step.operation == Operation.APPEND:
        items = [item for item in items if item] if items == [""] else items
        items += [item for item in split(step.value) if item not in items]
    else:
        for item in split(step.value):
            if item in items:
                items.remove(item)
    layer[step.name] = ",".join(items)
