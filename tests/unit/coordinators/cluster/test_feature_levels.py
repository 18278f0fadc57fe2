"""With which levels of features a new cluster begins."""

from __future__ import annotations

import logging

import pytest

from kafkalite.config import InvalidSetting
from kafkalite.coordinators.cluster.feature_levels import FEATURES, first_levels
from kafkalite.env.memory import MemoryDisk
from tests.unit.handlers.world import World

ALL = {
    "metadata.version": 30,
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def test_unless_told_otherwise_as_apache_kafka() -> None:
    assert list(first_levels([]).items()) == list(ALL.items())


@pytest.mark.parametrize("name", [name for name in ALL if name != "metadata.version"])
def test_what_begins_at_nought_is_not_there(name: str) -> None:
    levels = {key: value for key, value in ALL.items() if key != name}
    assert first_levels([f"{name}=0"]) == levels
    world = World(settings={"kafkalite.features": f"{name}=0"})
    assert world.metadata.image.features == levels


def test_what_is_not_named_begins_as_its_release_does() -> None:
    assert first_levels(["metadata.version=24"]) == {
        "metadata.version": 24, "group.version": 1, "transaction.version": 2,
    }  # fmt: skip
    assert first_levels(["metadata.version=7", "share.version=1"]) == {
        "metadata.version": 7, "share.version": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("group.version", "group.version is not NAME=LEVEL"),
        ("group.version=x", "group.version=x is not NAME=LEVEL"),
        ("group.version=" + "9" * 5_000, "is not NAME=LEVEL"),
        ("group.version=2", "group.version has the levels 0 to 1, not 2"),
        ("metadata.version=31", "metadata.version has the levels 7 to 30, not 31"),
        ("kraft.version=1", "kraft.version is set when a directory is formatted"),
        ("grup.version=1", "unsupported feature grup.version"),
    ],
)
def test_what_cannot_be_is_one_sentence(word: str, why: str) -> None:
    with pytest.raises(InvalidSetting, match=why):
        first_levels([word])


def test_a_level_may_need_a_release() -> None:
    with pytest.raises(InvalidSetting, match=r"it depends on metadata\.version level 23"):
        first_levels(["metadata.version=22", "eligible.leader.replicas.version=1"])


def test_every_feature_has_a_level_for_each_release() -> None:
    for feature in FEATURES.values():
        assert len(feature.since) == len(feature.needs)
        assert feature.begins_with(30) == (feature.newest)


def test_a_cluster_that_is_there_keeps_its_levels_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = World()
    before.close()
    disk = before.env.disk
    assert isinstance(disk, MemoryDisk)
    caplog.set_level(logging.WARNING)
    world = World(settings={"kafkalite.features": "group.version=0,share.version=1"}, disk=disk)
    assert world.metadata.image.features == ALL
    (said,) = [each.getMessage() for each in caplog.records if "features" in each.getMessage()]
    assert "not group.version=0:" in said
