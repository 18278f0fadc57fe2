"""UpdateFeatures: levels that go up and down, and those that may not."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import UpdateFeaturesRequest
from tests.unit.handlers.world import World

Request = UpdateFeaturesRequest
UPGRADE, SAFE, UNSAFE = 1, 2, 3


def update(world, *updates, version=2, validate_only=False):
    given = [
        Request.FeatureUpdate(
            feature=name,
            max_version_level=level,
            upgrade_type=kind,
            allow_downgrade=True,
        )
        for name, level, kind in updates
    ]
    return world.ask(Request(feature_updates=given, validate_only=validate_only), version)


@pytest.mark.parametrize("version", [1, 2])
def test_down_and_up_again(world, version):
    features = world.metadata.image.features
    assert update(world, ("transaction.version", 1, SAFE), version=version).error_code == 0
    assert features["transaction.version"] == 1
    assert update(world, ("transaction.version", 2, UPGRADE), version=version).error_code == 0
    assert features["transaction.version"] == 2


def test_first_version_only_raises(world):
    features = world.metadata.image.features
    response = update(world, ("transaction.version", 1, SAFE), version=0)
    assert response.error_code == Error.INVALID_UPDATE_VERSION
    assert features["transaction.version"] == 2


def test_level_nought_is_off(world):
    assert update(world, ("group.version", 0, SAFE)).error_code == 0
    assert "group.version" not in world.metadata.image.features


@pytest.mark.parametrize(
    ("name", "level", "kind", "message"),
    [
        ("nope", 1, UPGRADE, "does not support this feature"),
        ("nope", 0, SAFE, "Feature nope not found."),
        ("streams.version", 2, UPGRADE, "only supports versions 0-1"),
        ("share.version", 2, UPGRADE, "only supports versions 0-1"),
        ("transaction.version", 3, UPGRADE, "only supports versions 0-2"),
        ("transaction.version", -1, UPGRADE, "cannot be less than 0"),
        ("transaction.version", 1, UPGRADE, "Can't downgrade the version of this feature without"),
        ("transaction.version", 1, 0, "does not support the given upgrade type"),
        ("metadata.version", 29, SAFE, "might delete metadata information"),
        ("metadata.version", 29, UNSAFE, "Unsafe metadata downgrade is not supported"),
        ("kraft.version", 1, UPGRADE, "voters of this cluster are static"),
    ],
)
def test_refuses_as_kafka_does(world, name, level, kind, message):
    before = dict(world.metadata.image.features)
    response = update(world, ("group.version", 0, SAFE), (name, level, kind))
    assert response.error_code == Error.INVALID_UPDATE_VERSION
    assert message in response.error_message
    assert world.metadata.image.features == before


def test_levels_that_need_no_newer_release_than_an_old_release_has():
    world = World(settings={"kafkalite.features": "metadata.version=20"})
    features = world.metadata.image.features
    assert update(world, ("group.version", 1, UPGRADE)).error_code == 0
    assert update(world, ("transaction.version", 2, UPGRADE)).error_code == 0
    assert (features["group.version"], features["transaction.version"]) == (1, 2)
    response = update(world, ("eligible.leader.replicas.version", 1, UPGRADE))
    assert response.error_code == Error.INVALID_UPDATE_VERSION
    assert response.error_message.endswith(
        "eligible.leader.replicas.version could not be set to 1 because it depends on"
        " metadata.version level 23"
    )


def test_validate_only_changes_nothing(world):
    response = update(world, ("transaction.version", 1, SAFE), validate_only=True)
    assert response.error_code == Error.NONE
    assert world.metadata.image.features["transaction.version"] == 2


def test_voters_that_are_in_the_log_stay_there(world):
    world.controller.shard.view.kraft_version = 1
    assert update(world, ("kraft.version", 1, UPGRADE)).error_code == Error.NONE
    for kind in (SAFE, UNSAFE):
        response = update(world, ("kraft.version", 0, kind))
        assert response.error_code == Error.INVALID_UPDATE_VERSION
        assert response.error_message.endswith(
            "Invalid update version 0 for feature kraft.version. Can't downgrade the version of"
            " this feature."
        )
