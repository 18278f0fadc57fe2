"""AlterConfigs: all settings of a resource at once; what is not named is lost."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterConfigsRequest

TOPIC, LOGGER = 2, 8

Request = AlterConfigsRequest


def alter(world, kind, name, settings, version=2, validate_only=False):
    configs = [Request.Config(name=key, value=value) for key, value in settings.items()]
    resource = Request.Resource(resource_type=kind, resource_name=name, configs=configs)
    request = Request(resources=[resource], validate_only=validate_only)
    (answer,) = world.ask(request, version).responses
    return answer


@pytest.mark.parametrize("version", range(3))
def test_replaces_all_settings(world, version):
    world.create("t", retention_ms="5", segment_ms="6")
    answer = alter(world, TOPIC, "t", {"segment.ms": "7"}, version=version)
    assert (answer.error_code, answer.error_message) == (Error.NONE, None)
    assert world.metadata.image.config(TOPIC, "t") == {"segment.ms": "7"}
    assert world.context.logs.get("t", 0).config.retention_ms == 604_800_000


def test_validate_only_changes_nothing(world):
    world.create("t", retention_ms="5")
    assert alter(world, TOPIC, "t", {}, validate_only=True).error_code == Error.NONE
    assert world.metadata.image.config(TOPIC, "t") == {"retention.ms": "5"}


@pytest.mark.parametrize(
    ("kind", "name", "settings", "code"),
    [
        (TOPIC, "t", {"nope": "1"}, Error.INVALID_CONFIG),
        (TOPIC, "t", {"retention.ms": None}, Error.INVALID_REQUEST),
        (TOPIC, "nix", {"retention.ms": "1"}, Error.UNKNOWN_TOPIC_OR_PARTITION),
        (LOGGER, "1", {"root": "INFO"}, Error.INVALID_REQUEST),
    ],
)
def test_refuses_as_kafka_does_and_changes_nothing(world, kind, name, settings, code):
    world.create("t", retention_ms="5")
    assert alter(world, kind, name, settings).error_code == code
    assert world.metadata.image.config(TOPIC, "t") == {"retention.ms": "5"}
