"""A directory that Apache Kafka formatted is one that Apache Kafka can go on with, at any moment:
its voters are named, and every record is in the version of the finalized level."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    open_cluster,
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
    cluster = open_cluster(env)
    names: list[str] = []
    for deed in [*deeds, "topic"]:
        if deed == "snapshot":
            cluster.write_snapshot()
        elif deed == "topic":
            names.append(f"topic-{len(names)}")
            create(cluster, names[-1])
        else:
            if deed == "stop":
                cluster.close()
            cluster = open_cluster(env)
        assert sorted(cluster.image.topics) == sorted(names)
    return cluster


@settings(max_examples=60, deadline=None)
@given(DEEDS, st.booleans())
def test_the_voters_that_formatting_named_are_never_lost(deeds, is_standalone):
    env = formatted(is_standalone=is_standalone)
    cluster = served(env, deeds)
    for _ in range(2):
        found = apache_kafka_finds(env)
        assert found.end_offset == cluster.log.end_offset
        assert found.state["leaderId"] == 1
        assert found.state["leaderEpoch"] == cluster.controller_epoch
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
        cluster.close()


def test_voters_come_into_the_log_once():
    """As with Apache Kafka: the first leader writes them, behind the offsets of no snapshot."""
    env = formatted()
    cluster = open_cluster(env)
    for _ in range(3):
        found = cluster.log.log.read(0, 1 << 20).range
        voters = apache_kafka_finds(env).voters
        assert found is not None
        assert voters is not None
        assert found.read().count(voters) == 1
        cluster = open_cluster(env)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("deeds", [[], ["topic", "snapshot", "kill"], ["topic", "stop", "topic"]])
def test_every_record_has_the_version_of_the_finalized_level(level, deeds):
    env = formatted(level)
    cluster = served(env, deeds)
    cluster.fence_broker(1)
    for _ in range(2):
        found = apache_kafka_finds(env)
        assert found.level == cluster.image.metadata_version == level
        check_versions(found)
        assert not found.is_in_transaction
        cluster.close()


@pytest.mark.parametrize("level", LEVELS)
def test_what_is_held_is_what_a_restart_reads(level):
    cluster = served(formatted(level), ["topic", "topic"])
    before = cluster.image
    for is_clean in (False, True):
        if is_clean:
            cluster.close()
        cluster = open_cluster(cluster.env)
        registered = before.brokers.pop(1), cluster.image.brokers.pop(1)
        assert registered[0].log_dirs == registered[1].log_dirs
        assert registered[0].cordoned_log_dirs == registered[1].cordoned_log_dirs
        assert cluster.image == before
        before = open_cluster(cluster.env).image


def test_a_cluster_begins_with_what_formatting_left():
    env = formatted()
    scram = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
    )
    write_bootstrap(env, FeatureLevelRecord(name="metadata.version", feature_level=21), scram)
    cluster = open_cluster(env)
    assert cluster.image.features == {"metadata.version": 21}
    assert cluster.finalized_features == {"metadata.version": 21, "kraft.version": 1}
    assert cluster.image.scram == {("alice", 1): scram}
    assert cluster.image.config(4, "") == {}


def test_before_release_3_5_a_cluster_has_no_scram_users():
    cluster = open_cluster(formatted(10))
    asked = AlterUserScramCredentialsRequest(
        upsertions=[
            AlterUserScramCredentialsRequest.Upsertion(
                name="alice", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"
            )
        ]
    )
    (answer,) = cluster.decide(asked).results
    assert answer.error_code == 35
    assert cluster.image.scram == {}


# --- transactions that another controller left open -----------------------------------------------


HALF = [BeginTransactionRecord(name="a"), TopicRecord(name="half", topic_id=b"\7" * 16)]


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("has_snapshot", [False, True])
def test_a_transaction_left_open_swallows_nothing(length, has_snapshot):
    env = formatted()
    cluster = open_cluster(env)
    create(cluster, "before")
    if has_snapshot:
        cluster.close()
        cluster = open_cluster(env)
    append_raw(env, *(encode_record(each, 30) for each in HALF[:length]))
    cluster = open_cluster(env)
    create(cluster, "behind")
    for is_clean in (False, True, False):
        if is_clean:
            cluster.close()
        assert sorted(cluster.image.topics) == ["before", "behind"]
        assert not apache_kafka_finds(env).is_in_transaction
        cluster = open_cluster(env)


def test_a_transaction_that_was_aborted_never_happened():
    env = formatted()
    cluster = open_cluster(env)
    records = [as_record(each, 30) for each in HALF]
    cluster.log.append(finish(cluster.log.batch_of(records)))
    cluster = open_cluster(env)
    create(cluster, "half")
    assert list(open_cluster(env).image.topics) == ["half"]


def test_no_snapshot_is_taken_within_a_transaction():
    cluster = open_cluster(formatted())
    cluster.shard.fold(BeginTransactionRecord())
    with pytest.raises(AssertionError, match="held back"):
        cluster.write_snapshot()


# --- the log behind a snapshot --------------------------------------------------------------------


def test_damage_in_what_a_snapshot_covers_harms_nothing_behind_it():
    """Apache Kafka keeps such segments for a week."""
    env = formatted()
    cluster = open_cluster(env)
    create(cluster, "before")
    kept = {path: read_whole(env.disk, path) for path in segments(env)}
    cluster.close()
    create(open_cluster(env), "behind")
    for path, data in kept.items():
        replace_file(env.disk, path, data[:-1])
    for _ in range(3):
        assert sorted(open_cluster(env).image.topics) == ["before", "behind"]
    assert kept.keys() & set(segments(env)) == set()


def segments(env):
    return [
        f"{DIRECTORY}/{name}" for name in env.disk.list_directory(DIRECTORY) if ".log" in name
    ]
