"""ListPartitionReassignments: only what moves is named."""

import pytest

from kafkalite.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
)

Alter = AlterPartitionReassignmentsRequest
List = ListPartitionReassignmentsRequest


@pytest.mark.parametrize(
    "asked", [None, [List.Topic(name="t", partition_indexes=[0, 1, 9]), List.Topic(name="nix")]]
)
def test_names_what_moves(three, asked):
    three.create("still")
    three.create("t", 2)
    assert three.ask(List(topics=asked), 0).topics == []
    leader = three.metadata.image.partition("t", 1).leader
    other = 1 if leader != 1 else 2
    move = Alter.Topic(name="t", partitions=[Alter.Partition(partition_index=1, replicas=[other])])
    three.ask(Alter(topics=[move]), 0)
    (topic,) = three.ask(List(topics=asked), 0).topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index) == ("t", 1)
    assert partition.replicas == [other, leader]
    assert (partition.adding_replicas, partition.removing_replicas) == ([other], [leader])
