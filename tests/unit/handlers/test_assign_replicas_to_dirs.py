"""AssignReplicasToDirs: where broker processes have their replicas."""

from kafkalite.coordinators.cluster.directories import directory_of
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import AssignReplicasToDirsRequest

Directory = AssignReplicasToDirsRequest.Directory
Topic = AssignReplicasToDirsRequest.Topic
Partition = AssignReplicasToDirsRequest.Partition


def assignment(desk, directory, *places):
    topics = [
        Topic(topic_id=topic_id, partitions=[Partition(partition_index=index)])
        for topic_id, index in places
    ]
    return AssignReplicasToDirsRequest(
        broker_id=7,
        broker_epoch=desk.broker(7).epoch,
        directories=[Directory(id=directory, topics=topics)],
    )


def test_a_directory_is_named_and_each_partition_answered_alone(desk):
    one, two = b"a" * 16, b"b" * 16
    desk.enter(7, log_dirs=[one, two])
    topic_id = desk.world.create("t", 2, 2)
    other_id = desk.world.create("other", 2, 1)
    own = desk.world.metadata.image.topics["other"].partitions
    strange = next(index for index, each in own.items() if 7 not in each.replicas)
    asked = assignment(
        desk, two, (topic_id, 0), (topic_id, 9), (b"x" * 16, 0), (other_id, strange)
    )
    [answer] = desk.world.ask(asked, 0).directories
    codes = [each.error_code for topic in answer.topics for each in topic.partitions]
    assert codes == [
        Error.NONE, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID,
        Error.NOT_LEADER_OR_FOLLOWER,
    ]  # fmt: skip
    assert directory_of(desk.world.metadata.image.topics["t"].partitions[0], 7) == two
