"""What logs are told of their settings, made from those of the topic and the broker.

Owns the way from the settings' names to the fields of `LogConfig` and `LogSettings`, which are the
same words. A setting that the log does not know has no effect and is named so in the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from kafkalite.config import BrokerConfig, topic_values
from kafkalite.config.setting import Value
from kafkalite.log.config import LogConfig, LogSettings

LOG_FIELDS = frozenset(field.name for field in fields(LogConfig))
MOST_KNOWN = 1_000


def log_config(config: BrokerConfig, overrides: Mapping[str, str]) -> LogConfig:
    """The settings of a topic's logs. Most logs have those of many others."""
    known = config.derived(_made)
    own = frozenset(overrides.items())
    found = known.get(own)
    if found is None:
        if len(known) >= MOST_KNOWN:
            known.clear()
        found = known[own] = _make(config, overrides)
    return found


def _made(_: BrokerConfig) -> dict[frozenset[tuple[str, str]], LogConfig]:
    """By what topics have of their own, until a setting of the broker changes."""
    return {}


def _make(config: BrokerConfig, overrides: Mapping[str, str]) -> LogConfig:
    values = topic_values(config, overrides)
    segment_bytes = values.pop("internal.segment.bytes")
    if segment_bytes is not None:
        values["segment.bytes"] = segment_bytes
    given: dict[str, Any] = {}
    for name, value in values.items():
        field = name.replace(".", "_")
        if field in LOG_FIELDS:
            given[field] = _fixed(field, value)
    return LogConfig(**given, kafkalite_durability=config.get_str("kafkalite.durability"))


def _fixed(field: str, value: Value) -> object:
    if not isinstance(value, list):
        return value
    return frozenset(map(_replica, value)) if field.endswith("throttled_replicas") else tuple(value)


def _replica(text: str) -> str:
    """PARTITION:BROKER, as it is spelt here; `*` and nothing as they are. However many digits it
    has: it was taken, and a number that is too long for one is nobody's."""
    return ":".join(each.lstrip("0") or "0" for each in text.split(":")) if ":" in text else text


def log_settings(config: BrokerConfig) -> LogSettings:
    """The settings that all logs of a broker share."""
    settings = LogSettings()
    take_settings(settings, config)
    return settings


def take_settings(settings: LogSettings, config: BrokerConfig) -> None:
    """Brings them to what the broker's are now."""
    for field in fields(LogSettings):
        setattr(settings, field.name, config.get(field.name.replace("_", ".")))
