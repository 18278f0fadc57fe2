"""DeleteShareGroupOffsets, version 0: has an empty share group forget topics (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalite.coordinators.groups.events import DeleteShareOffsets, ShareOffsetsDeleted
from kafkalite.coordinators.shares.persister import Outcomes, Partitions
from kafkalite.env.later import Later
from kafkalite.handlers.call import Call
from kafkalite.handlers.context import Context
from kafkalite.handlers.permission import may
from kafkalite.handlers.share_replies import serves_share_groups
from kafkalite.protocol.errors import Error, KafkaError
from kafkalite.protocol.messages import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from kafkalite.security.acl import DELETE, GROUP, READ, TOPIC

Response = DeleteShareGroupOffsetsResponse
NOTHING_TO_DELETE = "There is no offset information to delete."


def delete_share_group_offsets(
    context: Context, call: Call, request: DeleteShareGroupOffsetsRequest
) -> Later[Response]:
    if not serves_share_groups(context):
        raise KafkaError(Error.UNSUPPORTED_VERSION, Error.UNSUPPORTED_VERSION.message)
    if not may(context, call, DELETE, GROUP, request.group_id):
        code = Error.GROUP_AUTHORIZATION_FAILED
        raise KafkaError(code, code.message)
    if not request.group_id:
        raise KafkaError(Error.INVALID_GROUP_ID, Error.INVALID_GROUP_ID.message)
    response = Response()
    topics: dict[bytes, str] = {}
    for topic in request.topics:
        found = context.metadata.image.topics.get(topic.topic_name)
        if not may(context, call, READ, TOPIC, topic.topic_name):
            _refuse(response, topic.topic_name, Error.TOPIC_AUTHORIZATION_FAILED)
        elif found is None:
            _refuse(response, topic.topic_name, Error.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            topics[found.topic_id] = topic.topic_name
    return _Deletion(context, request.group_id, topics, response).begin()


@dataclass(slots=True)
class _Deletion:
    """The topics that are known, by id, and what is told of all."""

    context: Context
    group_id: str
    topics: dict[bytes, str]
    response: Response

    def begin(self) -> Later[Response]:
        event = DeleteShareOffsets(self.group_id, self.topics)
        return self.context.groups.submit(self.group_id, event).then_ask(self._begun)

    def _begun(self, places: Partitions | KafkaError | None) -> Later[Response]:
        if isinstance(places, KafkaError):
            return Later.of(_failed(places))
        if places is None:
            return Later.of(self.response)
        for topic_id, name in self.topics.items():
            if topic_id not in places:
                code = Error.UNKNOWN_TOPIC_OR_PARTITION
                _refuse(self.response, name, code, NOTHING_TO_DELETE)
        return self.context.persister.delete(self.group_id, places).then_ask(self._deleted)

    def _deleted(self, outcomes: Outcomes) -> Later[Response]:
        done: set[bytes] = set()
        for topic_id, name in self.topics.items():
            of_topic = [error for place, error in outcomes.items() if place[0] == topic_id]
            failed = next((error for error in of_topic if error is not None), None)
            if failed is not None:
                _refuse(self.response, name, Error(failed.code), topic_id=topic_id)
            elif of_topic:
                done.add(topic_id)
                answer = Response.Response(topic_name=name, topic_id=topic_id)
                self.response.responses.insert(len(done) - 1, answer)
        if not done:
            return Later.of(self.response)
        event = ShareOffsetsDeleted(self.group_id, frozenset(done))
        return self.context.groups.submit(self.group_id, event).map(self._completed)

    def _completed(self, outcome: KafkaError | None) -> Response:
        return self.response if outcome is None else _failed(outcome)


def _failed(error: KafkaError) -> Response:
    why = error.message or Error(error.code).message
    return Response(error_code=error.code, error_message=why)


def _refuse(
    response: Response, name: str, code: Error, why: str = "", topic_id: bytes | None = None
) -> None:
    answer = Response.Response(
        topic_name=name, error_code=code, error_message=why or code.message
    )
    if topic_id is not None:
        answer.topic_id = topic_id
    response.responses.append(answer)
