"""DeleteTopics: by name and by id, and what is left."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ZERO_UUID, DeleteTopicsRequest

Topic = DeleteTopicsRequest.Topic


def delete_names(world, *names, version=5):
    return world.ask(DeleteTopicsRequest(topic_names=list(names)), version).responses


def delete(world, *topics):
    return world.ask(DeleteTopicsRequest(topics=list(topics)), 6).responses


@pytest.mark.parametrize("version", range(6))
def test_a_deleted_topic_is_gone_on_every_path(world, version):
    topic_id = world.create("t", 2)
    partition = world.context.partitions.find("t", 1)
    (answer,) = delete_names(world, "t", version=version)
    assert (answer.name, answer.error_code) == ("t", Error.NONE)
    assert world.metadata.image.topic_name(topic_id) is None
    assert world.context.partitions.get("t", 1) is None
    assert world.context.logs.get("t", 1) is None
    assert not partition.is_leader


def test_a_recreated_topic_has_a_new_id_and_begins_at_nought(world):
    old_id = world.create("t")
    delete_names(world, "t")
    new_id = world.create("t", 3)
    assert new_id != old_id
    partition = world.context.partitions.find("t", 0)
    assert (partition.topic_id, partition.log.log_end_offset) == (new_id, 0)
    assert partition.leader_epoch == 0


def test_by_id(world):
    topic_id = world.create("t")
    (answer,) = delete(world, Topic(name=None, topic_id=topic_id))
    assert (answer.name, answer.topic_id, answer.error_code) == ("t", topic_id, Error.NONE)
    (answer,) = delete(world, Topic(name=None, topic_id=topic_id))
    assert answer.error_code == Error.UNKNOWN_TOPIC_ID


def test_what_is_named_twice_or_not_at_all_is_refused(world):
    topic_id = world.create("t")
    world.create("u")
    answers = delete(
        world,
        Topic(name="t"),
        Topic(name=None, topic_id=topic_id),
        Topic(name="u"),
        Topic(name="u"),
        Topic(name=None, topic_id=ZERO_UUID),
        Topic(name="u", topic_id=topic_id),
    )
    assert {each.error_code for each in answers} == {Error.INVALID_REQUEST}
    assert {each.error_message for each in answers} == {
        "Duplicate topic name.",
        "Neither topic name nor id were specified.",
        "The provided topic name maps to an ID that was already supplied.",
        "You may not specify both topic name and topic id.",
    }
    assert set(world.metadata.image.topics) == {"t", "u"}


def test_one_unknown_topic_does_not_keep_the_others(world):
    world.create("t")
    answers = {each.name: each.error_code for each in delete_names(world, "nix", "t")}
    assert answers == {"nix": Error.UNKNOWN_TOPIC_OR_PARTITION, "t": Error.NONE}


def test_deletion_takes_the_settings_along(world):
    world.create("t", retention_ms="5")
    delete_names(world, "t")
    world.create("t")
    assert world.metadata.image.config(2, "t") == {}


@pytest.mark.parametrize(
    ("version", "code"), [(1, Error.INVALID_REQUEST), (5, Error.TOPIC_DELETION_DISABLED)]
)
def test_deletion_may_be_disabled(make_world, version, code):
    world = make_world(settings={"delete.topic.enable": "false"})
    world.create("t")
    (answer,) = delete_names(world, "t", version=version)
    assert answer.error_code == code
    assert "t" in world.metadata.image.topics


def test_files_vanish_after_their_delay(world):
    world.create("t", file_delete_delay_ms="1000")
    delete_names(world, "t")
    disk = world.env.disk
    names = [name for each in ("a", "b") for name in disk.list_directory(f"/1/{each}")]
    assert any(name.endswith("-delete") for name in names)
    world.env.clock.advance(1000)
    names = [name for each in ("a", "b") for name in disk.list_directory(f"/1/{each}")]
    assert not any(name.endswith("-delete") for name in names)
