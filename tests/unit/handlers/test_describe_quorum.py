"""DescribeQuorum: one voter, who is always caught up."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import DescribeQuorumRequest

Request = DescribeQuorumRequest


def ask(world, topic, index, version):
    partitions = [Request.Partition(partition_index=index)]
    request = Request(topics=[Request.Topic(topic_name=topic, partitions=partitions)])
    response = world.ask(request, version)
    return response, response.topics[0].partitions[0]


@pytest.mark.parametrize("version", range(3))
def test_the_controller_is_the_only_voter(three, version):
    three.create("t")
    _, partition = ask(three, "__cluster_metadata", 0, version)
    (voter,) = partition.current_voters
    assert (partition.leader_id, voter.replica_id, partition.observers) == (1, 1, [])
    assert partition.high_watermark == voter.log_end_offset == three.controller.log.end_offset
    assert partition.leader_epoch == three.controller.log.epoch


def test_version_2_tells_directory_and_nodes(world):
    response, partition = ask(world, "__cluster_metadata", 0, 2)
    directory_id = world.context.logs.directories[0].directory_id
    assert partition.current_voters[0].replica_directory_id == directory_id
    assert [each.node_id for each in response.nodes] == [1]


@pytest.mark.parametrize(("topic", "index"), [("nix", 0), ("__cluster_metadata", 1)])
def test_there_is_no_other_quorum(world, topic, index):
    _, partition = ask(world, topic, index, 2)
    assert partition.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


def test_brokers_that_follow_over_connections_are_observers(desk):
    desk.world.context.quorum.observed(7, b"d" * 16, 3)
    topic = DescribeQuorumRequest.Topic(
        topic_name="__cluster_metadata",
        partitions=[DescribeQuorumRequest.Partition(partition_index=0)],
    )
    answer = desk.world.ask(DescribeQuorumRequest(topics=[topic]), 2)
    [seen] = answer.topics[0].partitions[0].observers
    assert (seen.replica_id, seen.replica_directory_id, seen.log_end_offset) == (7, b"d" * 16, 3)
    [node] = answer.nodes
    assert [(each.host, each.port) for each in node.listeners] == [("10.0.0.1", 9093)]
