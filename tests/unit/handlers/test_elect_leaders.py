"""ElectLeaders: preferred and unclean elections, and those that are not needed."""

import pytest

from kafkalite.coordinators.cluster.brokers import FenceBroker
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ElectLeadersRequest

Request = ElectLeadersRequest


def elect(world, named, version=2, election_type=0):
    given = None
    if named is not None:
        given = [Request.TopicPartitions(topic=name, partitions=indexes) for name, indexes in named]
    response = world.ask(Request(election_type=election_type, topic_partitions=given), version)
    return response, {
        (topic.topic, each.partition_id): each.error_code
        for topic in response.replica_election_results
        for each in topic.partition_result
    }


@pytest.mark.parametrize("version", range(3))
def test_nothing_to_do_where_the_preferred_replica_leads(world, version):
    world.create("t", 2)
    _, results = elect(world, [("t", [0, 9]), ("nix", [0])], version)
    assert results == {
        ("t", 0): Error.ELECTION_NOT_NEEDED,
        ("t", 9): Error.UNKNOWN_TOPIC_OR_PARTITION,
        ("nix", 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_without_a_list_those_that_need_none_are_not_named(three):
    three.create("t", 3, 3)
    three.controller.decide(FenceBroker(2))
    (led_by_two,) = [
        each.index for each in three.metadata.image.topics["t"].partitions.values()
        if each.replicas[0] == 2
    ]
    _, results = elect(three, None)
    assert results == {("t", led_by_two): Error.PREFERRED_LEADER_NOT_AVAILABLE}
    _, results = elect(three, [("t", [led_by_two])], election_type=1)
    assert results == {("t", led_by_two): Error.ELECTION_NOT_NEEDED}, "another one leads it"


def test_an_unknown_kind_of_election_is_refused_for_all(world):
    world.create("t")
    response, results = elect(world, [("t", [0])], election_type=7)
    assert response.error_code == Error.INVALID_REQUEST
    assert results == {("t", 0): Error.INVALID_REQUEST}
