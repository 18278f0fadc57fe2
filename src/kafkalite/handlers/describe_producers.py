"""DescribeProducers, version 0: the producers that a partition's leader keeps state of (KIP-664).

What `find-hanging` of Apache Kafka's transactions tool stands on.
"""

from __future__ import annotations

from kafkalite.coordinators.cluster.create_topics import check_topic_name
from kafkalite.env.slicing import InSteps, Steps, in_steps
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.leaders import find_partition
from kafkalite.handlers.permission import require
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import DescribeProducersRequest, DescribeProducersResponse
from kafkalite.security.acl import READ, TOPIC

STEP_PARTITIONS = 25


def describe_producers(
    context: Context, call: Call, request: DescribeProducersRequest
) -> InSteps:
    return InSteps(_answer(context, call, request))


def _answer(
    context: Context, call: Call, request: DescribeProducersRequest
) -> Steps[DescribeProducersResponse]:
    response = DescribeProducersResponse()
    for asked in request.topics:
        topic = DescribeProducersResponse.Topic(name=asked.name)
        response.topics.append(topic)
        for number, index in enumerate(asked.partition_indexes):
            topic.partitions.append((yield from _describe(context, call, asked.name, index)))
            if number % STEP_PARTITIONS == STEP_PARTITIONS - 1:
                yield
        yield
    return response


def _describe(
    context: Context, call: Call, topic: str, index: int
) -> Steps[DescribeProducersResponse.Partition]:
    answer = DescribeProducersResponse.Partition(partition_index=index)
    try:
        _check_topic(context, call, topic)
    except KafkaError as error:
        answer.error_code = error.code
        answer.error_message = error.message or error.code.message
        return answer
    try:
        partition = find_partition(context, topic, index)
        partition.check_leader()
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    answer.active_producers = yield from in_steps(
        DescribeProducersResponse.ActiveProducer(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.transaction_start,
        )
        for producer in list(partition.log.active_producers())  # others come and go meanwhile
    )
    return answer


def _check_topic(context: Context, call: Call, topic: str) -> None:
    """Raises KafkaError for one that cannot be asked of."""
    check_topic_name(topic)
    require(context, call, READ, TOPIC, topic)
    if topic not in context.metadata.image.topics:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
