"""CreatePartitions: more partitions, never fewer."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import CreatePartitionsRequest

Request = CreatePartitionsRequest


def topic(name, count, assignments=None):
    given = None
    if assignments is not None:
        given = [Request.Assignment(broker_ids=each) for each in assignments]
    return Request.Topic(name=name, count=count, assignments=given)


def ask(world, *topics, version=3, validate_only=False):
    request = Request(topics=list(topics), validate_only=validate_only)
    return world.ask(request, version).results


@pytest.mark.parametrize("version", range(4))
def test_new_partitions_take_records_at_once(world, version):
    world.create("t", 2)
    (answer,) = ask(world, topic("t", 5), version=version)
    assert (answer.error_code, answer.error_message) == (Error.NONE, None)
    for index in range(5):
        world.context.partitions.find("t", index).check_leader()


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (topic("nix", 3), Error.UNKNOWN_TOPIC_OR_PARTITION, None),
        (topic("t", 2), Error.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (topic("t", 1), Error.INVALID_PARTITIONS, "1 would not be an increase"),
        (topic("t", 4, [[1]]), Error.INVALID_REPLICA_ASSIGNMENT, "only 1 assignment(s)"),
        (topic("t", 3, [[9]]), Error.INVALID_REPLICA_ASSIGNMENT, "broker 9"),
        (topic("t", 3, [[1, 1]]), Error.INVALID_REPLICA_ASSIGNMENT, "more than once"),
    ],
    ids=["unknown", "same", "fewer", "few assignments", "unknown broker", "twice"],
)
def test_refuses_as_kafka_does(world, asked, code, message):
    world.create("t", 2)
    (answer,) = ask(world, asked)
    assert answer.error_code == code
    assert message is None or message in answer.error_message
    assert len(world.metadata.image.topics["t"].partitions) == 2


def test_a_topic_that_is_named_twice_is_refused(world):
    world.create("t")
    (answer,) = ask(world, topic("t", 2), topic("t", 3))
    assert (answer.error_code, answer.error_message) == (
        Error.INVALID_REQUEST,
        "Duplicate topic name.",
    )


def test_validate_only_changes_nothing(world):
    world.create("t")
    (answer,) = ask(world, topic("t", 9), validate_only=True)
    assert answer.error_code == Error.NONE
    assert len(world.metadata.image.topics["t"].partitions) == 1


def test_assignments_by_hand_are_kept(three):
    three.create("t", 1, 2)
    (answer,) = ask(three, topic("t", 3, [[2, 1], [3, 2]]))
    assert answer.error_code == Error.NONE
    states = three.metadata.image.topics["t"].partitions
    assert [states[index].replicas for index in (1, 2)] == [(2, 1), (3, 2)]


def test_a_request_comes_to_a_bounded_number_of_records(world):
    world.create("t", 1)
    world.create("u", 1)
    answers = ask(world, topic("t", 2_000_000_000), topic("u", 3), validate_only=True)
    assert [each.error_code for each in answers] == [Error.UNKNOWN_SERVER_ERROR, Error.NONE]
    answers = ask(world, topic("t", 6_001), topic("u", 4_002), validate_only=True)
    assert [each.error_code for each in answers] == [Error.NONE, Error.UNKNOWN_SERVER_ERROR]
