"""The settings of one topic: its own, or those of the broker, or the default.

Owns the way from a topic's setting to the broker setting that stands in for it, and the rules for
a topic's settings. Raises InvalidSetting with Kafka's sentences.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkalite.config.broker import BrokerConfig
from kafkalite.config.layers import FLUSH, RETENTION, ROLL, ROLL_JITTER, Given, Source
from kafkalite.config.setting import InvalidSetting, Value
from kafkalite.config.tables import topic_settings

# Broker settings that stand in for a topic's setting; the number is milliseconds per unit.
STAND_IN: dict[str, dict[str, int]] = {
    "segment.ms": ROLL,
    "segment.jitter.ms": ROLL_JITTER,
    "retention.ms": RETENTION,
    "flush.ms": FLUSH,
    "segment.index.bytes": {"log.index.size.max.bytes": 1},
    "flush.messages": {"log.flush.interval.messages": 1},
    "max.message.bytes": {"message.max.bytes": 1},
    "file.delete.delay.ms": {"log.segment.delete.delay.ms": 1},
    "min.cleanable.dirty.ratio": {"log.cleaner.min.cleanable.ratio": 1},
} | {
    name: {f"log.{name}": 1}
    for name in (
        "segment.bytes", "retention.bytes", "index.interval.bytes", "cleanup.policy", "preallocate",
        "message.timestamp.type", "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms", "local.retention.ms", "local.retention.bytes",
    )
} | {
    name: {f"log.cleaner.{name}": 1}
    for name in ("delete.retention.ms", "min.compaction.lag.ms", "max.compaction.lag.ms")
} | {
    name: {name: 1}
    for name in (
        "unclean.leader.election.enable", "min.insync.replicas", "compression.type",
        "compression.gzip.level", "compression.lz4.level", "compression.zstd.level",
    )
}


def check_topic_settings(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """Raises InvalidSetting unless a topic may have these settings of its own."""
    table = topic_settings()
    for name in overrides:
        if name not in table:
            raise InvalidSetting(f"Unknown topic config name: {name}")
    values = topic_values(config, overrides)
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least > most:
        raise InvalidSetting(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})"
        )
    if values["remote.storage.enable"]:
        raise InvalidSetting(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )


def topic_values(config: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, Value]:
    """Every setting of a topic, parsed, internal ones included."""
    values = dict(config.derived(_values_without_own))
    values |= {
        name: setting.parse(overrides[name])
        for name, setting in topic_settings().items()
        if name in overrides
    }
    return values


def _values_without_own(config: BrokerConfig) -> dict[str, Value]:
    return {name: topic_value(config, {}, name) for name in topic_settings()}


def topic_value(config: BrokerConfig, overrides: Mapping[str, str], name: str) -> Value:
    """One setting of a topic, parsed."""
    setting = topic_settings()[name]
    if name in overrides:
        return setting.parse(overrides[name])
    stand_in = STAND_IN.get(name)
    return setting.default() if stand_in is None else _from_broker(config, stand_in)


def _from_broker(config: BrokerConfig, stand_in: dict[str, int]) -> Value:
    """The broker's value: of several units the first that is set, else the last one's default."""
    for name, milliseconds in stand_in.items():
        value = config.get(name)
        if value is not None:
            return value * milliseconds if milliseconds > 1 and isinstance(value, int) else value
    return None


def given_for_topic(
    config: BrokerConfig, overrides: Mapping[str, str], name: str
) -> list[Given]:
    """Every value there is for a topic's setting, the one that holds first."""
    stand_in = STAND_IN.get(name)
    found = [] if stand_in is None else config.given(next(iter(stand_in)))
    if name in overrides:
        setting = topic_settings()[name]
        text = overrides[name] if setting.internal else setting.normal(overrides[name])
        return [Given(name, text, Source.TOPIC), *found]
    return found
