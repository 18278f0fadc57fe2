"""AlterPartitionReassignments: moves begun, called off, over at once and refused."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterPartitionReassignmentsRequest

Request = AlterPartitionReassignmentsRequest


def alter(world, *moves, version=1, may_change_factor=True):
    topics = [
        Request.Topic(
            name=name, partitions=[Request.Partition(partition_index=index, replicas=replicas)]
        )
        for name, index, replicas in moves
    ]
    request = Request(topics=topics, allow_replication_factor_change=may_change_factor)
    response = world.ask(request, version)
    assert response.error_code == Error.NONE
    return [each.partitions[0].error_code for each in response.responses]


@pytest.fixture
def moving(three):
    """A topic with one partition on broker 1."""
    three.create("t")
    state = three.metadata.image.partition("t", 0)
    others = [each for each in (1, 2, 3) if each != state.leader]
    return three, state.leader, others


@pytest.mark.parametrize("version", range(2))
def test_a_move_is_under_way_until_the_newcomer_is_in_sync(moving, version):
    world, leader, (other, _) = moving
    assert alter(world, ("t", 0, [other]), version=version) == [Error.NONE]
    state = world.metadata.image.partition("t", 0)
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == (
        (other, leader), (other,), (leader,),
    )
    # Who has the data leads on.
    assert (state.leader, state.isr) == (leader, (leader,))


def test_a_move_can_be_called_off(moving):
    world, leader, (other, _) = moving
    before = world.metadata.image.partition("t", 0)
    alter(world, ("t", 0, [other]))
    assert alter(world, ("t", 0, None)) == [Error.NONE]
    state = world.metadata.image.partition("t", 0)
    assert (state.replicas, state.isr, state.is_reassigning) == ((leader,), (leader,), False)
    assert state.partition_epoch > before.partition_epoch
    assert state.leader_epoch > before.leader_epoch
    assert world.nodes[other].partitions.get("t", 0) is None


def test_another_order_of_the_same_replicas_is_over_at_once(three):
    three.create("t", 1, 3)
    old = three.metadata.image.partition("t", 0)
    turned = [*old.replicas[1:], old.replicas[0]]
    assert alter(three, ("t", 0, turned)) == [Error.NONE]
    state = three.metadata.image.partition("t", 0)
    assert (list(state.replicas), state.is_reassigning) == (turned, False)
    assert state.leader == old.leader


@pytest.mark.parametrize(
    ("move", "code"),
    [
        (("nix", 0, [1]), Error.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", 9, [1]), Error.UNKNOWN_TOPIC_OR_PARTITION),
        (("t", 0, [9]), Error.INVALID_REPLICA_ASSIGNMENT),
        (("t", 0, []), Error.INVALID_REPLICA_ASSIGNMENT),
        (("t", 0, [1, 1]), Error.INVALID_REPLICA_ASSIGNMENT),
        (("t", 0, None), Error.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_refuses_as_kafka_does(three, move, code):
    three.create("t")
    assert alter(three, move) == [code]


def test_the_replication_factor_may_be_held(moving):
    world, leader, (other, _) = moving
    codes = alter(world, ("t", 0, [leader, other]), may_change_factor=False)
    assert codes == [Error.INVALID_REPLICATION_FACTOR]
    assert alter(world, ("t", 0, [other]), may_change_factor=False) == [Error.NONE]
