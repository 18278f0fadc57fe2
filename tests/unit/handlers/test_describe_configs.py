"""DescribeConfigs: every setting with its value, source, synonyms, type and documentation."""

import pytest

from kafkalite.config import Source, broker_settings, group_settings, topic_settings
from kafkalite.coordinators.cluster.configs import AlterConfigs, ResourceChange, Step
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeConfigsRequest

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def ask(world, kind, name, keys=None, version=4, **fields):
    resource = DescribeConfigsRequest.Resource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    (result,) = world.ask(DescribeConfigsRequest(resources=[resource], **fields), version).results
    return result


def settings_of(result):
    assert result.error_code == Error.NONE, result.error_message
    return {each.name: each for each in result.configs}


def change(world, kind, name, **settings):
    steps = [Step(key.replace("_", "."), 0, value) for key, value in settings.items()]
    assert world.controller.decide(AlterConfigs([ResourceChange(kind, name, steps)])) == [None]


@pytest.mark.parametrize("version", range(5))
def test_answers_every_topic_setting(world, version):
    world.create("t", retention_ms="1000")
    found = settings_of(ask(world, TOPIC, "t", version=version))
    assert set(found) == {each.name for each in topic_settings().values() if not each.internal}
    assert found["retention.ms"].value == "1000"
    assert not found["retention.ms"].read_only


def test_version_0_says_what_is_default(world):
    world.create("t", retention_ms="1000")
    found = settings_of(ask(world, TOPIC, "t", version=0))
    assert found["segment.bytes"].is_default
    assert not found["retention.ms"].is_default


def test_synonyms_and_documentation_only_when_asked(world):
    world.create("t")
    plain = settings_of(ask(world, TOPIC, "t", ["retention.ms"]))["retention.ms"]
    assert (plain.synonyms, plain.documentation) == ([], None)
    full = settings_of(
        ask(
            world,
            TOPIC,
            "t",
            ["retention.ms"],
            include_synonyms=True,
            include_documentation=True,
        )
    )["retention.ms"]
    assert [(each.name, each.value) for each in full.synonyms] == []
    assert full.documentation == topic_settings()["retention.ms"].doc
    assert full.config_type == 5


def test_a_setting_without_effect_says_so(world):
    world.create("t")
    found = settings_of(ask(world, TOPIC, "t", ["local.retention.ms"], include_documentation=True))
    assert "No effect here" in found["local.retention.ms"].documentation


def test_sources_from_the_topic_down_to_the_default(world):
    world.create("t")

    def source():
        found = settings_of(
            ask(world, TOPIC, "t", ["max.message.bytes"], include_synonyms=True)
        )["max.message.bytes"]
        return found.value, found.config_source, [each.source for each in found.synonyms]

    assert source() == ("1048588", Source.DEFAULT, [5])
    change(world, BROKER, "", message_max_bytes="3")
    assert source() == ("3", Source.DYNAMIC_DEFAULT_BROKER, [3, 5])
    change(world, BROKER, "1", message_max_bytes="2")
    assert source() == ("2", Source.DYNAMIC_BROKER, [2, 3, 5])
    change(world, TOPIC, "t", max_message_bytes="1")
    assert source() == ("1", Source.TOPIC, [1, 2, 3, 5])


def test_a_broker_answers_every_broker_setting(make_world):
    world = make_world(settings={"num.partitions": "7", "my.plugin.key": "1"})
    found = settings_of(ask(world, BROKER, "1"))
    known = {
        each.name
        for each in broker_settings().values()
        if not each.internal and each.update.value != "dynamic-only"
    }
    assert set(found) == known | {"my.plugin.key"}
    assert (found["num.partitions"].value, found["num.partitions"].config_source) == ("7", 4)
    assert found["num.partitions"].read_only
    assert not found["log.retention.ms"].read_only


def test_secrets_are_never_told(make_world):
    world = make_world(settings={"ssl.key.password": "secret", "my.plugin.key": "secret"})
    found = settings_of(ask(world, BROKER, "1", include_synonyms=True))
    for name in ("ssl.key.password", "my.plugin.key"):
        assert (found[name].value, found[name].is_sensitive) == (None, True)
        assert {each.value for each in found[name].synonyms} == {None}


def test_the_clusters_defaults_are_what_was_set_for_all(world):
    change(world, BROKER, "", log_retention_ms="5")
    change(world, BROKER, "1", log_retention_ms="6")
    found = settings_of(ask(world, BROKER, "", include_synonyms=True))
    assert {name: each.value for name, each in found.items()} == {
        "min.insync.replicas": "1",
        "log.retention.ms": "5",
    }
    assert [each.source for each in found["log.retention.ms"].synonyms] == [3]


def test_levels_of_loggers(world):
    found = settings_of(ask(world, LOGGER, "1"))
    assert found["root"].value in ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")


def test_groups_and_subscriptions_answer_without_existing(world):
    found = settings_of(ask(world, GROUP, "g"))
    assert set(found) == set(group_settings())
    assert found["consumer.session.timeout.ms"].value == "45000"
    assert set(settings_of(ask(world, CLIENT_METRICS, "s"))) == {"interval.ms", "match", "metrics"}


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "nix", Error.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (TOPIC, "a b", Error.INVALID_TOPIC_EXCEPTION, "ASCII"),
        (BROKER, "7", Error.INVALID_REQUEST, "expected 1 or empty string, but received 7"),
        (BROKER, "x", Error.INVALID_REQUEST, "must be an integer"),
        (BROKER, "9" * 5_000, Error.INVALID_REQUEST, "must be an integer"),
        (LOGGER, "", Error.INVALID_REQUEST, "must not be empty"),
        (LOGGER, "7", Error.INVALID_REQUEST, "expected 1 but received 7"),
        (CLIENT_METRICS, "", Error.INVALID_REQUEST, "must not be empty"),
        (GROUP, "", Error.INVALID_REQUEST, "must not be empty"),
        (99, "x", Error.INVALID_REQUEST, "Unexpected resource type"),
    ],
)
def test_refuses_as_kafka_does(world, kind, name, code, message):
    result = ask(world, kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert message in result.error_message


def test_of_a_topic_that_is_not_there_nothing_more_is_said(world):
    result = ask(world, TOPIC, "nix")
    assert (result.error_code, result.error_message) == (Error.UNKNOWN_TOPIC_OR_PARTITION, "")
