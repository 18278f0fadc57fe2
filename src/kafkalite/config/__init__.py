"""Every setting of the broker, its topics and groups: names, types, defaults, rules and values.

A leaf: imports nothing else of kafkalite. The tables stand in `tables/`; `BrokerConfig` is what the
other rooms are given.
"""

from kafkalite.config.broker import BrokerConfig
from kafkalite.config.check import (
    Judgement,
    RefusedSettings,
    Verdict,
    broker_config,
    judge,
)
from kafkalite.config.group import check_group_settings, given_for_group, group_value
from kafkalite.config.layers import Given, Source
from kafkalite.config.listeners import Listener
from kafkalite.config.properties import MalformedProperties, parse_properties
from kafkalite.config.setting import InvalidSetting, Kind, Setting, Update, Value, render
from kafkalite.config.tables import (
    broker_settings,
    client_metrics_settings,
    group_settings,
    topic_settings,
)
from kafkalite.config.topic import (
    check_topic_settings,
    given_for_topic,
    topic_value,
    topic_values,
)

__all__ = [
    "BrokerConfig",
    "Given",
    "InvalidSetting",
    "Judgement",
    "Kind",
    "Listener",
    "MalformedProperties",
    "RefusedSettings",
    "Setting",
    "Source",
    "Update",
    "Value",
    "Verdict",
    "broker_config",
    "broker_settings",
    "check_group_settings",
    "check_topic_settings",
    "client_metrics_settings",
    "given_for_group",
    "given_for_topic",
    "group_settings",
    "group_value",
    "judge",
    "parse_properties",
    "render",
    "topic_settings",
    "topic_value",
    "topic_values",
]
