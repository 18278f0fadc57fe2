"""Which changes of its settings a broker takes while it runs: Kafka's checks, in Kafka's order.

Owns those checks and their sentences, and what is left of a stored layer whose values no longer
hold. Changes nothing. A value that is stored and bad is left out alone: the good ones beside it
have their effect.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from kafkalite.config.layers import OF_LISTENER
from kafkalite.config.reopening import check_reopening
from kafkalite.config.setting import (
    InvalidSetting,
    Kind,
    Requirement,
    Setting,
    Update,
    refusal,
)
from kafkalite.config.tables import LISTENER_PREFIX, broker_settings
from kafkalite.config.together import PRINCIPAL_BUILDER, check_local_retention, check_together

if TYPE_CHECKING:
    from kafkalite.config.broker import BrokerConfig

logger = logging.getLogger(__name__)

# Listener settings that may also be set for the cluster.
CLUSTER_LEVEL = ("max.connections", "max.connection.creation.rate", "num.network.threads")
# What a listener reads again while it runs; the rest of ssl.* waits for the next start.
READ_AGAIN = tuple(
    f"ssl.{name}"
    for name in (
        "keystore.type", "keystore.location", "keystore.password", "key.password",
        "truststore.type", "truststore.location", "truststore.password",
        "keystore.certificate.chain", "keystore.key", "truststore.certificates",
    )
)  # fmt: skip
REPORTERS = "metric.reporters"
REPORTER = "org.apache.kafka.common.metrics.JmxReporter"
# Classes of Apache Kafka that settings which may change can name; no other can be found here.
CLASSES = (
    PRINCIPAL_BUILDER,
    REPORTER,
    "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",
)
# Read before all others, and not looked at with them.
PROVIDERS = "config.providers"
THREADS = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "num.network.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)


def check_change(current: BrokerConfig, layer: Mapping[str, str], *, is_per_broker: bool) -> None:
    """Raises InvalidSetting unless a running broker may have this layer in place of its own."""
    check_layer(layer, is_per_broker=is_per_broker)
    changed = current.with_layer(layer, is_per_broker=is_per_broker)
    try:
        check_together(changed)
    except Requirement as error:
        raise InvalidSetting(f"requirement failed: {error}") from None
    try:
        _check_reconfiguration(current, changed)
    except InvalidSetting as error:
        raise InvalidSetting(
            f"Invalid value org.apache.kafka.common.config.ConfigException: {error} "
            "for configuration Invalid dynamic configuration"
        ) from None


def check_layer(layer: Mapping[str, str], *, is_per_broker: bool) -> None:
    """Raises InvalidSetting for names that may not be here, and values that are none."""
    for names, why in _misplaced(layer):
        _refuse(names, why)
    check_values(layer)
    if not is_per_broker:
        why = "Cannot update these configs at default cluster level, broker id must be specified"
        _refuse([name for name in layer if _is_per_broker(name)], why)


def _misplaced(names: Iterable[str]) -> list[tuple[list[str], str]]:
    table = broker_settings()
    fixed = [name for name in names if name in table and not table[name].dynamic]
    return [
        (fixed, "Cannot update these configs dynamically"),
        (
            [name for name in names if name in READ_AGAIN],
            "These security configs can be dynamically updated only per-listener using the "
            "listener prefix",
        ),
    ]


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise InvalidSetting(f"{why}: [{', '.join(sorted(names))}]")


def _is_per_broker(name: str) -> bool:
    setting = broker_settings().get(name)
    if setting is not None:
        return setting.update is Update.PER_BROKER
    base = OF_LISTENER.fullmatch(name)
    return base is not None and base[1] not in CLUSTER_LEVEL


def check_values(layer: Mapping[str, str]) -> None:
    """Raises InvalidSetting for the first value that its setting does not take."""
    for name, text in layer.items():
        match = OF_LISTENER.fullmatch(name)
        setting = broker_settings().get(name if match is None else match[1])
        if setting is not None and setting.dynamic and not name.startswith(PROVIDERS):
            setting.parse(text)
            if setting.kind is Kind.CLASS:
                _check_class(setting, text)


def _check_class(setting: Setting, text: str) -> None:
    if text.strip() not in CLASSES:
        raise refusal(setting.name, text, f"Class {text} could not be found.")


# --- what a running broker would have to do -------------------------------------------------------


def _check_reconfiguration(current: BrokerConfig, changed: BrokerConfig) -> None:
    names = {*current.given_names(), *changed.given_names()}
    touched = {name for name in names if current.text(name) != changed.text(name)}
    if REPORTERS in touched:
        for name in changed.get_list(REPORTERS):
            if name != REPORTER:
                updated = sorted(touched.intersection(changed.given_names()))
                what = f"update of Set({', '.join(updated)})"
                where = "class class kafka.server.DynamicMetricsReporters"
                raise InvalidSetting(f"Validation of dynamic config {what} failed with {where}")
    _check_listener_limits(changed, touched)
    if any(_is_of_listeners(name) for name in touched):
        check_reopening(changed)
        _check_fixed(current, changed)
    for name in THREADS:
        if name in touched:
            _check_threads(name, current.get_int(name), changed.get_int(name))
    _check_cleaner_threads(current, changed)
    check_local_retention(changed)


def _is_of_listeners(name: str) -> bool:
    """Whether a change of it makes Kafka look at all that its listeners were given."""
    setting = broker_settings().get(name)
    is_own = setting is not None and setting.update is Update.PER_BROKER
    return name in CLUSTER_LEVEL or (is_own and name != "cordoned.log.dirs")


def _check_fixed(current: BrokerConfig, changed: BrokerConfig) -> None:
    """What a listener has of its own is as it was at the start, but for what it reads again."""
    for listener in current.listeners:
        prefix = f"{LISTENER_PREFIX}{listener.name.lower()}."
        for name in changed.dynamic_names():
            base = name.removeprefix(prefix)
            if base != name and base not in READ_AGAIN and base not in CLUSTER_LEVEL:
                raise InvalidSetting(
                    "Configs cannot be updated dynamically for existing listener "
                    f"ListenerName({listener.name}), restart broker or create a new listener for "
                    "update"
                )


def _check_threads(name: str, old: int, new: int) -> None:
    why = None
    if new < old // 2:
        why = f"be at least half the current value {old}"
    if new > old * 2:
        why = f"not be greater than double the current value {old}"
    if why is not None:
        raise InvalidSetting(
            f"Dynamic thread count update validation failed for {name}={new}, value should {why}"
        )


def _check_cleaner_threads(current: BrokerConfig, changed: BrokerConfig) -> None:
    old, new = (each.get_int("log.cleaner.threads") for each in (current, changed))
    if new < old // 2:
        what = f"reduced to less than half the current value {old}"
    elif new > old * 2:
        what = f"increased to more than double the current value {old}"
    else:
        return
    raise InvalidSetting(f"Log cleaner threads cannot be {what}")


def _check_listener_limits(changed: BrokerConfig, touched: Collection[str]) -> None:
    """A listener that takes nobody could never be told to take somebody again."""
    for name in ("max.connections", "max.connection.creation.rate"):
        for listener in changed.listeners:
            own = f"{LISTENER_PREFIX}{listener.name.lower()}.{name}"
            text = changed.text(own)
            setting = broker_settings()[name]
            value = changed.get_int(name) if text is None else setting.parse(text)
            if value == 0 and {own, name} & set(touched):
                raise InvalidSetting(f"Invalid {name} {value}")


# --- what is stored -------------------------------------------------------------------------------


def kept(
    layer: Mapping[str, str], *, is_per_broker: bool, told: set[tuple[str, str]]
) -> dict[str, str]:
    """A stored layer without what has no place in it; each is named in the log."""
    held: dict[str, str] = {}
    for name, text in layer.items():
        try:
            check_layer({name: text}, is_per_broker=is_per_broker)
        except InvalidSetting as error:
            name_ignored(name, text, error, told)
        else:
            held[name] = text
    return held


def check_stored(config: BrokerConfig) -> None:
    """Raises InvalidSetting unless a broker can live with the dynamic layers that it has."""
    check_together(config)
    _check_listener_limits(config, config.dynamic_names())


def name_ignored(name: str, text: str, error: InvalidSetting, told: set[tuple[str, str]]) -> None:
    """Says once that a stored value has no effect, and how it is taken back."""
    if (name, text) not in told:
        told.add((name, text))
        logger.error(
            "the stored setting %s is ignored: %s; take it back with AlterConfigs", name, error
        )
