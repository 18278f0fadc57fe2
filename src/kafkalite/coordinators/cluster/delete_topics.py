"""Decides on the deletion of topics, named by name or by id.

Owns Kafka's rules for what is named twice, both ways or not at all. The logs are closed and removed
by those who hold them, before the reply goes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

from kafkalite.coordinators.cluster.events import DeleteTopics
from kafkalite.coordinators.cluster.states import Topic
from kafkalite.coordinators.cluster.view import ZERO_UUID, View, decided_in_steps
from kafkalite.coordinators.effects import Effects
from kafkalite.env.slicing import ELEMENTS_PER_STEP, Steps, in_steps
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    RemoveTopicRecord,
)

Named = TypeVar("Named", str, bytes)


def delete_topics(view: View, event: DeleteTopics) -> Steps[Effects]:
    """Deletes topics that are named by name or by id."""
    request = event.request
    if not view.config.get_bool("delete.topic.enable"):
        raise KafkaError(Error.TOPIC_DELETION_DISABLED)
    response = DeleteTopicsResponse()
    names = list(request.topic_names)
    ids: list[bytes] = []
    for number, asked in enumerate(request.topics, 1):
        _sort_out(asked, names, ids, response)
        if number % ELEMENTS_PER_STEP == 0:
            yield
    refusals, image = response.responses, view.image
    wanted = yield from _find(
        names, image.topics, "Duplicate topic name.", Error.UNKNOWN_TOPIC_OR_PARTITION,
        lambda name, code, why: refusals.append(_kept(name, ZERO_UUID, code, why)),
    )
    wanted += yield from _find(
        ids, image.by_id, "Duplicate topic id.", Error.UNKNOWN_TOPIC_ID,
        lambda topic_id, code, why: refusals.append(_kept(None, topic_id, code, why)),
    )
    yield
    counts = Counter(topic.topic_id for topic in wanted)
    for topic_id, count in counts.items():
        if count > 1:
            name = image.by_id[topic_id].name
            why = "The provided topic name maps to an ID that was already supplied."
            refusals.append(_kept(name, topic_id, Error.INVALID_REQUEST, why))
    doomed: list[Topic] = []
    named_once = (topic for topic in wanted if counts[topic.topic_id] == 1)
    refusals += yield from in_steps(_gone(topic, event, doomed) for topic in named_once)
    records = (RemoveTopicRecord(topic_id=topic.topic_id) for topic in doomed)
    return (yield from decided_in_steps(view, records, response))


def _sort_out(
    asked: DeleteTopicsRequest.Topic,
    names: list[str],
    ids: list[bytes],
    response: DeleteTopicsResponse,
) -> None:
    if asked.name is None and asked.topic_id == ZERO_UUID:
        why = "Neither topic name nor id were specified."
        response.responses.append(_kept(None, ZERO_UUID, Error.INVALID_REQUEST, why))
    elif asked.name is None:
        ids.append(asked.topic_id)
    elif asked.topic_id == ZERO_UUID:
        names.append(asked.name)
    else:
        why = "You may not specify both topic name and topic id."
        refusal = _kept(asked.name, asked.topic_id, Error.INVALID_REQUEST, why)
        response.responses.append(refusal)


def _find(
    asked: list[Named],
    known: Mapping[Named, Topic],
    duplicate: str,
    missing: Error,
    refused: Callable[[Named, Error, str], None],
) -> Steps[list[Topic]]:
    """The topics that are named once and are there; of the others it is told why not."""
    found = []
    for number, (each, count) in enumerate(Counter(asked).items(), 1):
        if number % ELEMENTS_PER_STEP == 0:
            yield
        if count > 1:
            refused(each, Error.INVALID_REQUEST, duplicate)
        elif each in known:
            found.append(known[each])
        else:
            refused(each, missing, missing.message)
    return found


def _kept(
    name: str | None, topic_id: bytes, code: Error, why: str | None
) -> DeleteTopicsResponse.Response:
    return DeleteTopicsResponse.Response(
        name=name, topic_id=topic_id, error_code=code, error_message=why
    )


def _gone(
    topic: Topic, event: DeleteTopics, doomed: list[Topic]
) -> DeleteTopicsResponse.Response:
    try:
        event.take(len(topic.partitions))
    except KafkaError as error:
        return _kept(topic.name, topic.topic_id, error.code, error.message)
    doomed.append(topic)
    return DeleteTopicsResponse.Response(
        name=topic.name, topic_id=topic.topic_id, error_code=Error.NONE
    )
