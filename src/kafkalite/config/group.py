"""The settings of one group: its own, or the broker's for all groups of its kind.

Owns the way from `consumer.session.timeout.ms` to the broker's `group.consumer.…` settings: its
default, and the bounds that `min` and `max` set. Raises InvalidSetting with Kafka's sentences.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkalite.config.broker import BrokerConfig
from kafkalite.config.layers import Given, Source
from kafkalite.config.setting import InvalidSetting, Value
from kafkalite.config.tables import broker_settings, group_settings

# Settings of a group whose bounds and default have other names on the broker.
BOUND_NAMES = {"streams.num.standby.replicas": "standby.replicas"}
KINDS = ("consumer", "share", "streams")


def group_value(config: BrokerConfig, overrides: Mapping[str, str], name: str) -> Value:
    """One setting of a group, parsed; never outside what the broker allows."""
    if name not in overrides:
        stand_in = f"group.{name}"
        if stand_in in broker_settings():
            return config.get(stand_in)
        return group_settings()[name].default()
    value = group_settings()[name].parse(overrides[name])
    least, most = _bound(config, name, "min"), _bound(config, name, "max")
    if isinstance(value, int) and least is not None:
        value = max(value, least)
    if isinstance(value, int) and most is not None:
        value = min(value, most)
    return value


def check_group_settings(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raises InvalidSetting unless a group may have these settings of its own."""
    table = group_settings()
    for name in overrides:
        if name not in table:
            raise InvalidSetting(f"Unknown group config name: {name}")
    parsed = {name: table[name].parse(text) for name, text in overrides.items()}
    for name, value in parsed.items():
        _check_bounds(config, name, value)
    for kind in KINDS:
        timeout, interval = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        values = [group_value(config, overrides, each) for each in (timeout, interval)]
        assert isinstance(values[0], int)
        assert isinstance(values[1], int)
        if values[0] <= values[1]:
            raise InvalidSetting(f"{timeout} must be greater than {interval}")


def given_for_group(config: BrokerConfig, overrides: Mapping[str, str], name: str) -> list[Given]:
    """Every value there is for a group's setting, the one that holds first."""
    found = config.given(f"group.{name}") if f"group.{name}" in broker_settings() else []
    if not found:
        default = group_settings()[name].default_text
        found = [Given(name, default, Source.DEFAULT)]
    if name in overrides:
        return [Given(name, group_settings()[name].normal(overrides[name]), Source.GROUP), *found]
    return found


def _check_bounds(config: BrokerConfig, name: str, value: Value) -> None:
    least, most = _bound(config, name, "min"), _bound(config, name, "max")
    if least is not None and isinstance(value, int) and value < least:
        bound = _bound_name(name, "min")
        raise InvalidSetting(f"{name} must be greater than or equal to {bound}")
    if most is not None and isinstance(value, int) and value > most:
        bound = _bound_name(name, "max")
        raise InvalidSetting(f"{name} must be less than or equal to {bound}")


def _bound(config: BrokerConfig, name: str, edge: str) -> int | None:
    bound = _bound_name(name, edge)
    return config.get_int(bound) if bound in broker_settings() else None


def _bound_name(name: str, edge: str) -> str:
    kind, _, rest = name.partition(".")
    return f"group.{kind}.{edge}.{BOUND_NAMES.get(name, rest)}"
