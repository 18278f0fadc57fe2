"""A directory that Apache Kafka formatted is one that Apache Kafka can go on with, at any moment:
its voters are named, and every record is in the version of the finalized level."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalite.coordinators.cluster.brokers import FenceBroker
from kafkalite.coordinators.cluster.events import AlterUserScramCredentials
from kafkalite.coordinators.cluster.features import SUPPORTED
from kafkalite.coordinators.cluster.records import as_record, encode_record
from kafkalite.env.disk import read_whole, replace_file
from kafkalite.env.slicing import finish
from kafkalite.protocol.messages import (
    AlterUserScramCredentialsRequest,
    BeginTransactionRecord,
    FeatureLevelRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from tests.unit.coordinators.cluster.formatted import (
    CHECKPOINT,
    DIRECTORY,
    apache_kafka_finds,
    append_raw,
    create,
    formatted,
    open_controller,
    write_bootstrap,
)
from tests.unit.coordinators.cluster.test_records import STEPS as VERSIONS

NUMBERS = {0: "RegisterBrokerRecord", 3: "PartitionRecord", 5: "PartitionChangeRecord"}
LEVELS = range(SUPPORTED["metadata.version"][0], SUPPORTED["metadata.version"][1] + 1)
# What may happen to a directory: a snapshot, a topic more, a stop in good order, one that is not.
DEEDS = st.lists(st.sampled_from(["snapshot", "topic", "stop", "kill"]), max_size=8)


def check_versions(found):
    for number, version, level in found.written:
        steps = VERSIONS.get(NUMBERS.get(number, ""), {0: 0})
        assert version == steps[max(step for step in steps if step <= level)], (number, level)


def served(env, deeds):
    """The directory after brokers have done these deeds; each stop is followed by a start."""
    controller = open_controller(env)
    names: list[str] = []
    for deed in [*deeds, "topic"]:
        if deed == "snapshot":
            controller.write_snapshot()
        elif deed == "topic":
            names.append(f"topic-{len(names)}")
            create(controller, names[-1])
        else:
            if deed == "stop":
                controller.close()
            controller = open_controller(env)
        assert sorted(controller.metadata.image.topics) == sorted(names)
    return controller


@settings(max_examples=60, deadline=None)
@given(DEEDS, st.booleans())
def test_the_voters_that_formatting_named_are_never_lost(deeds, is_standalone):
    env = formatted(is_standalone=is_standalone)
    controller = served(env, deeds)
    for _ in range(2):
        found = apache_kafka_finds(env)
        assert found.end_offset == controller.log.end_offset
        assert found.state["leaderId"] == 1
        assert found.state["leaderEpoch"] == controller.log.epoch
        if is_standalone:
            assert found.kraft_version == 1
            assert found.voters is not None
            assert found.voters in CHECKPOINT
            assert found.state["data_version"] == 1
            assert "currentVoters" not in found.state
        else:
            assert (found.kraft_version, found.voters) == (0, None)
            assert found.state["data_version"] == 0
            assert found.state["currentVoters"] == [{"voterId": 1}]
        controller.close()


def test_voters_come_into_the_log_once():
    """As with Apache Kafka: the first leader writes them, behind the offsets of no snapshot."""
    env = formatted()
    controller = open_controller(env)
    for _ in range(3):
        found = controller.log.log.read(0, 1 << 20).range
        voters = apache_kafka_finds(env).voters
        assert found is not None
        assert voters is not None
        assert found.read().count(voters) == 1
        controller = open_controller(env)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("deeds", [[], ["topic", "snapshot", "kill"], ["topic", "stop", "topic"]])
def test_every_record_has_the_version_of_the_finalized_level(level, deeds):
    env = formatted(level)
    controller = served(env, deeds)
    controller.decide(FenceBroker(1))
    for _ in range(2):
        found = apache_kafka_finds(env)
        assert found.level == controller.metadata.image.metadata_version == level
        check_versions(found)
        assert not found.is_in_transaction
        controller.close()


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_held_is_what_a_restart_reads(level):
    controller = served(formatted(level), ["topic", "topic"])
    before = controller.metadata.image
    for is_clean in (False, True):
        if is_clean:
            controller.close()
        controller = open_controller(controller.env)
        registered = before.brokers.pop(1), controller.metadata.image.brokers.pop(1)
        assert registered[0].log_dirs == registered[1].log_dirs
        assert registered[0].cordoned_log_dirs == registered[1].cordoned_log_dirs
        assert controller.metadata.image == before
        before = open_controller(controller.env).metadata.image


def test_a_cluster_begins_with_what_formatting_left():
    env = formatted()
    scram = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    write_bootstrap(env, FeatureLevelRecord(name="metadata.version", feature_level=21), scram)
    controller = open_controller(env)
    assert controller.metadata.image.features == {"metadata.version": 21}
    assert controller.metadata.finalized_features == {"metadata.version": 21, "kraft.version": 1}
    assert controller.metadata.image.scram == {("alice", 1): scram}
    assert controller.metadata.image.config(4, "") == {}


def test_before_release_3_5_a_cluster_has_no_scram_users():
    controller = open_controller(formatted(10))
    asked = AlterUserScramCredentialsRequest(
        upsertions=[
            AlterUserScramCredentialsRequest.Upsertion(
                name="alice", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"
            )
        ]
    )
    (answer,) = controller.decide(AlterUserScramCredentials(asked)).results
    assert answer.error_code == 35
    assert controller.metadata.image.scram == {}


# --- transactions that another controller left open -----------------------------------------------


HALF = [BeginTransactionRecord(name="a"), TopicRecord(name="half", topic_id=b"\7" * 16)]


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("has_snapshot", [False, True])
def test_a_transaction_left_open_swallows_nothing(length, has_snapshot):
    env = formatted()
    controller = open_controller(env)
    create(controller, "before")
    if has_snapshot:
        controller.close()
        controller = open_controller(env)
    append_raw(env, *(encode_record(each, 30) for each in HALF[:length]))
    controller = open_controller(env)
    create(controller, "behind")
    for is_clean in (False, True, False):
        if is_clean:
            controller.close()
        assert sorted(controller.metadata.image.topics) == ["before", "behind"]
        assert not apache_kafka_finds(env).is_in_transaction
        controller = open_controller(env)


def test_a_transaction_that_was_aborted_never_happened():
    env = formatted()
    controller = open_controller(env)
    records = [as_record(each, 30) for each in HALF]
    controller.log.append(finish(controller.log.batch_of(records)))
    controller = open_controller(env)
    create(controller, "half")
    assert list(open_controller(env).metadata.image.topics) == ["half"]


def test_no_snapshot_is_taken_within_a_transaction():
    controller = open_controller(formatted())
    controller.shard.fold(BeginTransactionRecord())
    with pytest.raises(AssertionError, match="held back"):
        controller.write_snapshot()


# --- the log behind a snapshot --------------------------------------------------------------------


def test_damage_in_what_a_snapshot_covers_harms_nothing_behind_it():
    """Apache Kafka keeps such segments for a week."""
    env = formatted()
    controller = open_controller(env)
    create(controller, "before")
    kept = {path: read_whole(env.disk, path) for path in segments(env)}
    controller.close()
    create(open_controller(env), "behind")
    for path, data in kept.items():
        replace_file(env.disk, path, data[:-1])
    for _ in range(3):
        assert sorted(open_controller(env).metadata.image.topics) == ["before", "behind"]
    assert kept.keys() & set(segments(env)) == set()


def segments(env):
    return [
        f"{DIRECTORY}/{name}" for name in env.disk.list_directory(DIRECTORY) if ".log" in name
    ]
