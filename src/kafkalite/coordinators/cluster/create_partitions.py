"""Decides on more partitions for topics; there are never fewer.

One bad topic in a request never fails its siblings.
"""

from __future__ import annotations

from collections import Counter

from kafkalite.coordinators.cluster.assignments import (
    brokers_in_order,
    check_alive,
    check_assignment,
    partition_records,
)
from kafkalite.coordinators.cluster.events import CreatePartitions
from kafkalite.coordinators.cluster.placement import place
from kafkalite.coordinators.cluster.view import MAX_RECORDS_PER_REQUEST, View, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    PartitionRecord,
)

_AT_ONCE = 32  # assignments given by hand


def create_partitions(view: View, event: CreatePartitions) -> Steps[Effects]:
    """Gives topics more partitions."""
    request = event.request
    records: list[PartitionRecord] = []
    response = CreatePartitionsResponse()
    names = Counter(topic.name for topic in request.topics)
    for topic in request.topics:
        if names[topic.name] > 1:
            continue
        result = CreatePartitionsResponse.Result(name=topic.name, error_code=Error.NONE)
        try:
            most = MAX_RECORDS_PER_REQUEST - len(records)
            records += yield from _more_partitions(view, topic, event, most)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, error.message
        response.results.append(result)
        if len(response.results) % ELEMENTS_PER_STEP == 0:
            yield
    for name, count in names.items():
        if count > 1:
            response.results.append(
                CreatePartitionsResponse.Result(
                    name=name,
                    error_code=Error.INVALID_REQUEST,
                    error_message="Duplicate topic name.",
                )
            )
    return (yield from decided_in_steps(view, [] if request.validate_only else records, response))



def _more_partitions(
    view: View, asked: CreatePartitionsRequest.Topic, event: CreatePartitions, most: int
) -> Steps[list[PartitionRecord]]:
    topic = view.image.topics.get(asked.name)
    if topic is None:
        raise KafkaError(Error.UNKNOWN_TOPIC_OR_PARTITION)
    count = len(topic.partitions)
    if asked.count == count:
        raise KafkaError(Error.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if asked.count < count:
        why = (
            f"The topic {topic.name} currently has {count} partition(s); {asked.count} would "
            "not be an increase."
        )
        raise KafkaError(Error.INVALID_PARTITIONS, why)
    added = asked.count - count
    if added > most:
        raise KafkaError(Error.UNKNOWN_SERVER_ERROR)  # without a word, as Apache Kafka
    if asked.assignments is not None and len(asked.assignments) != added:
        why = (
            f"Attempted to add {added} additional partition(s), but only {len(asked.assignments)} "
            "assignment(s) were specified."
        )
        raise KafkaError(Error.INVALID_REPLICA_ASSIGNMENT, why)
    event.take(added)
    factor = len(topic.partitions[0].replicas)
    if asked.assignments is None:
        placed = place(brokers_in_order(view), added, factor, view.random)
        assignments = yield from in_steps(placed)
    else:
        assignments = yield from _given_assignments(view, asked, count, factor)
    records = partition_records(view, topic.topic_id, count, assignments)
    return (yield from in_steps(records))



def _given_assignments(
    view: View, asked: CreatePartitionsRequest.Topic, first: int, factor: int
) -> Steps[list[list[int]]]:
    given = [each.broker_ids for each in asked.assignments or ()]
    for offset, broker_ids in enumerate(given):
        check_assignment(view, broker_ids, factor)
        check_alive(view, broker_ids, first + offset)
        if (offset + 1) % _AT_ONCE == 0:
            yield
    return given
