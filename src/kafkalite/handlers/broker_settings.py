"""What only the broker itself can judge of a change to its settings, before the change is decided.

Owns Kafka's checks of names, of what may change while the broker runs, and of what the settings
would come to together. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalite.config import InvalidSetting, Update, broker_settings
from kafkalite.config.tables import LISTENER_PREFIX, base_name
from kafkalite.coordinators.cluster.configs import ResourceChange, ResourceType, new_value
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError

# Listener settings that may also be set for the cluster.
CLUSTER_LEVEL = ("max.connections", "max.connection.creation.rate", "num.network.threads")


def check_node_id(context: Context, name: str) -> None:
    """Raises INVALID_REQUEST unless this is this broker's number."""
    if not _is_integer(name):
        why = f"Node id must be an integer, but it is: {name}"
        raise KafkaError(Error.INVALID_REQUEST, why)
    if int(name) != context.node_id:
        why = f"Unexpected broker id, expected {context.node_id}, but received {name}"
        raise KafkaError(Error.INVALID_REQUEST, why)


def check_logger_node(context: Context, name: str) -> None:
    """The same for the broker's loggers."""
    if _is_integer(name) and int(name) != context.node_id:
        why = f"Unexpected node id. Expected {context.node_id}, but received {name}"
        raise KafkaError(Error.INVALID_REQUEST, why)
    check_node_id(context, name)


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and text.isascii()


def check_broker_change(context: Context, change: ResourceChange) -> None:
    """Raises INVALID_REQUEST unless this broker could run with the changed settings."""
    if change.name:
        check_node_id(context, change.name)
    image = context.cluster.image
    settings = {} if change.is_whole else dict(image.config(ResourceType.BROKER, change.name))
    for step in change.steps:
        value = new_value(ResourceType.BROKER, step, settings.get(step.name))
        if value is None:
            settings.pop(step.name, None)
        else:
            settings[step.name] = value
    is_per_broker = change.name != ""
    _check_names(settings, is_per_broker=is_per_broker)
    try:
        if is_per_broker:
            context.config.with_dynamic(image.config(ResourceType.BROKER, ""), settings)
        else:
            own = image.config(ResourceType.BROKER, str(context.node_id))
            context.config.with_dynamic(settings, own)
        for name, text in settings.items():
            setting = broker_settings().get(base_name(name))
            if setting is not None:
                setting.parse(text)
    except InvalidSetting as error:
        # An invalid request, not an invalid setting: so Kafka answers since its beginnings.
        raise KafkaError(Error.INVALID_REQUEST, str(error)) from None


def _check_names(names: Iterable[str], *, is_per_broker: bool) -> None:
    table = broker_settings()
    known = [name for name in names if name in table]
    fixed = [name for name in known if not table[name].dynamic]
    _refuse(fixed, "Cannot update these configs dynamically")
    bare = [name for name in known if name.startswith("ssl.") and table[name].dynamic]
    _refuse(
        bare,
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix",
    )
    if not is_per_broker:
        own = [name for name in names if _is_per_broker(name)]
        why = "Cannot update these configs at default cluster level, broker id must be specified"
        _refuse(own, why)


def _is_per_broker(name: str) -> bool:
    if name.startswith(LISTENER_PREFIX):
        return base_name(name) not in CLUSTER_LEVEL
    setting = broker_settings().get(name)
    return setting is not None and setting.update is Update.PER_BROKER


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise KafkaError(Error.INVALID_REQUEST, f"{why}: [{', '.join(sorted(names))}]")
