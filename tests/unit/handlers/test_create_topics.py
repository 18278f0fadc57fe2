"""CreateTopics: what is refused, with Kafka's codes and sentences, and what is there afterwards."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import CreateTopicsRequest, MetadataRequest

Topic = CreateTopicsRequest.Topic


def topic(name, partitions=1, factor=1, settings=None, assignments=None):
    return Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[
            CreateTopicsRequest.Config(name=key, value=value)
            for key, value in (settings or {}).items()
        ],
        assignments=[
            CreateTopicsRequest.Assignment(partition_index=index, broker_ids=brokers)
            for index, brokers in assignments or []
        ],
    )


def create(world, *topics, version=7, validate_only=False):
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return world.ask(request, version).topics


@pytest.mark.parametrize("version", range(8))
def test_a_created_topic_is_there_on_every_path(world, version):
    (answer,) = create(world, topic("orders", 3), version=version)
    assert answer.error_code == Error.NONE
    state = world.metadata.image.partition("orders", 2)
    assert (state.leader, state.isr, state.leader_epoch) == (1, (1,), 0)
    partition = world.context.partitions.find("orders", 2)
    partition.check_leader()
    assert world.context.logs.get("orders", 2).topic_id == state.topic_id


def test_version_5_tells_the_settings_and_version_7_the_id(world):
    (answer,) = create(world, topic("t", settings={"retention.ms": "1000"}))
    settings = {each.name: each for each in answer.configs}
    assert (settings["retention.ms"].value, settings["retention.ms"].config_source) == ("1000", 1)
    assert settings["segment.bytes"].config_source == 5
    # With eligible leader replicas this one is set for the cluster from its first day.
    assert settings["min.insync.replicas"].config_source == 3
    assert "internal.segment.bytes" not in settings
    assert (answer.num_partitions, answer.replication_factor) == (1, 1)
    assert answer.topic_id == world.metadata.image.topics["t"].topic_id


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (topic(""), Error.INVALID_TOPIC_EXCEPTION, "the empty string is not allowed"),
        (topic(".."), Error.INVALID_TOPIC_EXCEPTION, "'..' is not allowed"),
        (topic("a b"), Error.INVALID_TOPIC_EXCEPTION, "other than ASCII alphanumerics"),
        (topic("x" * 250), Error.INVALID_TOPIC_EXCEPTION, "longer than the max allowed length 249"),
        (topic("taken"), Error.TOPIC_ALREADY_EXISTS, "Topic 'taken' already exists."),
        (topic("a_b"), Error.INVALID_TOPIC_EXCEPTION, "collides with existing topic: a.b"),
        (topic("t", 0), Error.INVALID_PARTITIONS, "invalid non-positive value"),
        (topic("t", -2), Error.INVALID_PARTITIONS, "invalid non-positive value"),
        (topic("t", 1, 0), Error.INVALID_REPLICATION_FACTOR, "must be larger than 0"),
        (topic("t", 1, 2), Error.INVALID_REPLICATION_FACTOR, "only 1 broker(s) are registered"),
        (topic("t", settings={"nope": "1"}), Error.INVALID_CONFIG, "Unknown topic config name"),
        (topic("t", settings={"retention.ms": "x"}), Error.INVALID_CONFIG, "Not a number of type"),
        (topic("t", settings={"retention.ms": None}), Error.INVALID_CONFIG, "Null value not"),
        (topic("t", -1, 1, assignments=[(0, [1])]), Error.INVALID_REQUEST, "factor was not"),
        (topic("t", 1, -1, assignments=[(0, [1])]), Error.INVALID_REQUEST, "numPartitions was"),
        (topic("t", -1, -1, assignments=[(0, [7])]), Error.INVALID_REPLICA_ASSIGNMENT, "broker 7"),
        (topic("t", -1, -1, assignments=[(0, [])]), Error.INVALID_REPLICA_ASSIGNMENT, "empty"),
        (topic("t", -1, -1, assignments=[(0, [1, 1])]), Error.INVALID_REPLICA_ASSIGNMENT, "once"),
        (topic("t", -1, -1, assignments=[(1, [1])]), Error.INVALID_REPLICA_ASSIGNMENT, "0-based"),
        (
            topic("t", -1, -1, assignments=[(0, [1]), (0, [1])]),
            Error.INVALID_REPLICA_ASSIGNMENT,
            "multiple manual",
        ),
        (topic("__cluster_metadata"), Error.INVALID_REQUEST, "is prohibited"),
    ],
    ids=lambda value: getattr(value, "name", "")[:20] if isinstance(value, Topic) else None,
)
def test_refuses_as_kafka_does_and_changes_nothing(world, asked, code, message):
    world.create("taken")
    world.create("a.b")
    end_offset = world.controller.log.end_offset
    (answer,) = create(world, asked)
    assert answer.error_code == code
    assert message in answer.error_message
    assert world.controller.log.end_offset == end_offset
    assert set(world.metadata.image.topics) == {"taken", "a.b"}


def test_one_bad_topic_does_not_fail_its_siblings(world):
    answers = create(world, topic("bad name"), topic("good"), topic("twice"), topic("twice"))
    assert {each.name: each.error_code for each in answers} == {
        "bad name": Error.INVALID_TOPIC_EXCEPTION,
        "good": Error.NONE,
        "twice": Error.INVALID_REQUEST,
    }
    assert set(world.metadata.image.topics) == {"good"}


def test_validate_only_changes_nothing(world):
    (answer,) = create(world, topic("t", 3), validate_only=True)
    assert (answer.error_code, answer.num_partitions) == (Error.NONE, 3)
    assert "t" not in world.metadata.image.topics


def test_a_request_for_too_many_partitions_is_refused_as_a_whole(world):
    answers = create(world, topic("a", 10_000), topic("b"))
    assert [each.error_code for each in answers] == [Error.POLICY_VIOLATION] * 2
    assert world.metadata.image.topics == {}


def test_a_topic_and_its_settings_count_with_its_partitions(world):
    (answer,) = create(world, topic("a", 9_999), validate_only=True)
    assert answer.error_code == Error.NONE
    wanted = topic("a", 9_999, settings={"retention.ms": "1000"})
    (answer,) = create(world, wanted, validate_only=True)
    assert answer.error_code == Error.POLICY_VIOLATION
    assert "excessively large batch" in answer.error_message


def test_counts_of_minus_one_are_the_brokers_defaults(make_world):
    world = make_world((1, 2), settings={"num.partitions": "4", "default.replication.factor": "2"})
    (answer,) = create(world, topic("t", -1, -1))
    assert (answer.num_partitions, answer.replication_factor) == (4, 2)


def test_leadership_is_spread_over_three_brokers(three):
    three.create("t", 9, 3)
    states = three.metadata.image.topics["t"].partitions.values()
    leaders = [state.leader for state in states]
    assert sorted(leaders) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert all(set(state.replicas) == set(state.isr) == {1, 2, 3} for state in states)
    for state in states:
        for node_id, node in three.nodes.items():
            assert node.partitions.find("t", state.index).is_leader == (state.leader == node_id)


def test_assignments_by_hand_are_kept(three):
    (answer,) = create(three, topic("t", -1, -1, assignments=[(0, [3, 1]), (1, [2, 3])]))
    assert (answer.num_partitions, answer.replication_factor) == (2, 2)
    states = three.metadata.image.topics["t"].partitions
    assert [states[index].replicas for index in (0, 1)] == [(3, 1), (2, 3)]
    assert three.nodes[2].partitions.get("t", 0) is None


def test_metadata_names_the_topic_in_the_next_reply(world):
    topic_id = world.create("t")
    request = MetadataRequest(topics=[MetadataRequest.Topic(name="t")])
    (answer,) = world.ask(request, 12).topics
    assert (answer.error_code, answer.topic_id) == (Error.NONE, topic_id)
