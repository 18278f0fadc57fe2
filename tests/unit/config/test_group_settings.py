"""Settings of a group: its own, within the bounds of the broker, else the broker's."""

import pytest

from kafkalite.config import (
    BrokerConfig,
    InvalidSetting,
    Source,
    check_group_settings,
    given_for_group,
    group_value,
)

TIMEOUT = "consumer.session.timeout.ms"


def test_the_brokers_value_stands_in():
    config = BrokerConfig({"group.consumer.session.timeout.ms": "50000"})
    assert group_value(config, {}, TIMEOUT) == 50_000
    assert group_value(config, {TIMEOUT: "46000"}, TIMEOUT) == 46_000
    assert group_value(config, {}, "share.auto.offset.reset") == "latest"


def test_a_value_outside_the_bounds_is_taken_to_them():
    config = BrokerConfig({"group.consumer.max.session.timeout.ms": "47000"})
    assert group_value(config, {TIMEOUT: "60000"}, TIMEOUT) == 47_000
    assert group_value(config, {TIMEOUT: "1000"}, TIMEOUT) == 45_000


def test_where_it_comes_from():
    config = BrokerConfig()
    given = given_for_group(config, {TIMEOUT: "46000"}, TIMEOUT)
    assert [(each.name, each.source) for each in given] == [
        (TIMEOUT, Source.GROUP),
        ("group.consumer.session.timeout.ms", Source.DEFAULT),
    ]
    assert [each.text for each in given_for_group(config, {}, "share.auto.offset.reset")] == [
        "latest"
    ]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"nope": "1"}, "Unknown group config name: nope"),
        ({TIMEOUT: "x"}, "Not a number of type INT"),
        ({TIMEOUT: "1"}, "must be greater than or equal to group.consumer.min.session.timeout.ms"),
        ({TIMEOUT: "99999"}, "must be less than or equal to group.consumer.max.session.timeout.ms"),
        ({"streams.num.standby.replicas": "3"}, "group.streams.max.standby.replicas"),
        ({"share.auto.offset.reset": "never"}, "The value must be either 'earliest', 'latest'"),
    ],
)
def test_refuses_as_kafka_does(overrides, message):
    with pytest.raises(InvalidSetting, match=message):
        check_group_settings(BrokerConfig(), overrides)


def test_a_timeout_must_exceed_its_heartbeat():
    config = BrokerConfig(
        {
            "group.consumer.min.session.timeout.ms": "1",
            "group.consumer.max.heartbeat.interval.ms": "60000",
        }
    )
    with pytest.raises(InvalidSetting, match=r"must be greater than consumer\.heartbeat"):
        check_group_settings(config, {TIMEOUT: "5000"})
