"""AlterPartition, versions 0–3: the leader of partitions wants others in sync.

Flexible (KIP-497). Versions: 1 recovery after an unclean election, 2 topic ids, 3 the epochs of the
brokers that are to be in sync (KIP-903). Each partition has its own outcome.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.alter_partition import (
    NO_EPOCH,
    AlterPartition,
    Outcomes,
    Place,
    WantedIsr,
)
from kafkalite.coordinators.cluster.states import NO_LEADER, PartitionState
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import AlterPartitionRequest, AlterPartitionResponse

IDS_VERSION = 2
EPOCHS_VERSION = 3
NO_ID = bytes(16)

Topic = AlterPartitionRequest.Topic
Partition = AlterPartitionRequest.Partition
Answer = AlterPartitionResponse.Partition


def alter_partition(
    context: Context, call: Call, request: AlterPartitionRequest
) -> Later[AlterPartitionResponse | KafkaError]:
    if call.version < IDS_VERSION:
        for topic in request.topics:
            topic.topic_id = context.metadata.image.topic_id(topic.topic_name) or NO_ID
    wanted = {
        (topic.topic_id, each.partition_index): _wanted(each, call.version)
        for topic in request.topics
        for each in topic.partitions
    }
    event = AlterPartition(request.broker_id, request.broker_epoch, wanted)

    def answered(outcomes: Outcomes | KafkaError) -> AlterPartitionResponse | KafkaError:
        if isinstance(outcomes, KafkaError):
            return outcomes
        return AlterPartitionResponse(
            topics=[_topic(topic, outcomes, call.version) for topic in request.topics]
        )

    return context.controller.submit(event).map(answered)


def _wanted(asked: Partition, version: int) -> WantedIsr:
    isr = tuple((each.broker_id, each.broker_epoch) for each in asked.new_isr_with_epochs)
    if version < EPOCHS_VERSION:
        isr = tuple((broker_id, NO_EPOCH) for broker_id in asked.new_isr)
    return WantedIsr(asked.leader_epoch, asked.partition_epoch, isr, asked.leader_recovery_state)


def _topic(topic: Topic, outcomes: Outcomes, version: int) -> AlterPartitionResponse.Topic:
    has_name = version < IDS_VERSION and topic.topic_id == NO_ID
    return AlterPartitionResponse.Topic(
        topic_name=topic.topic_name,
        topic_id=topic.topic_id,
        partitions=[
            _answer((topic.topic_id, each.partition_index), outcomes, has_name)
            for each in topic.partitions
        ],
    )


def _answer(place: Place, outcomes: Outcomes, has_name: bool) -> Answer:
    outcome = outcomes[place]
    if isinstance(outcome, PartitionState):
        return Answer(
            partition_index=place[1],
            leader_id=outcome.leader,
            leader_epoch=outcome.leader_epoch,
            isr=list(outcome.isr),
            leader_recovery_state=outcome.leader_recovery_state,
            partition_epoch=outcome.partition_epoch,
        )
    code = Error.UNKNOWN_TOPIC_OR_PARTITION if has_name else outcome
    return Answer(partition_index=place[1], error_code=code, leader_id=NO_LEADER)
