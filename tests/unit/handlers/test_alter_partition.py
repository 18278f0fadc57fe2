"""AlterPartition: the leader of partitions wants others in sync."""

import pytest

from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AlterPartitionRequest

Partition = AlterPartitionRequest.Partition
Epoch = AlterPartitionRequest.NewIsrWithEpoch


def wanted(desk, version, topic_id, isr, name="t"):
    state = desk.world.metadata.image.topics["t"].partitions[0]
    asked = Partition(
        partition_index=0,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        new_isr=isr,
        new_isr_with_epochs=[
            Epoch(broker_id=each, broker_epoch=desk.broker(each).epoch) for each in isr
        ],
    )
    topic = AlterPartitionRequest.Topic(topic_name=name, topic_id=topic_id, partitions=[asked])
    request = AlterPartitionRequest(
        broker_id=state.leader, broker_epoch=desk.broker(state.leader).epoch, topics=[topic]
    )
    [answer] = desk.world.ask(request, version).topics
    return answer.partitions[0]


@pytest.mark.parametrize("version", range(4))
def test_a_replica_leaves_and_comes_back(desk, version):
    desk.enter(7)
    topic_id = desk.world.create("t", 1, 2)
    leader = desk.world.metadata.image.topics["t"].partitions[0].leader
    alone = wanted(desk, version, topic_id, [leader])
    assert (alone.error_code, alone.leader_id, alone.isr) == (0, leader, [leader])
    both = wanted(desk, version, topic_id, [1, 7])
    assert (both.error_code, both.isr, both.partition_epoch) == (0, [1, 7], 2)


@pytest.mark.parametrize(
    ("version", "error"),
    [(1, Error.UNKNOWN_TOPIC_OR_PARTITION), (3, Error.UNKNOWN_TOPIC_ID)],
)
def test_an_unknown_topic_is_told_in_the_words_of_the_version(desk, version, error):
    desk.world.create("t")
    assert wanted(desk, version, b"x" * 16, [1], "unknown").error_code == error
