"""DeleteShareGroupOffsets, version 0: has an empty share group forget topics (KIP-932)."""

from __future__ import annotations

from dataclasses import dataclass

from kafkalite.coordinators.groups.events import DeleteShareOffsets, ShareOffsetsDeleted
from kafkalite.coordinators.shares.persister import Outcomes, Partitions
from kafkalite.env.later import Later
from kafkalite.env.slicing import ELEMENTS_PER_STEP, LOOKS_PER_STEP, InSteps, Steps, begun
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
) -> Later[Response] | InSteps:
    if not serves_share_groups(context):
        raise KafkaError(Error.UNSUPPORTED_VERSION, Error.UNSUPPORTED_VERSION.message)
    if not may(context, call, DELETE, GROUP, request.group_id):
        code = Error.GROUP_AUTHORIZATION_FAILED
        raise KafkaError(code, code.message)
    if not request.group_id:
        raise KafkaError(Error.INVALID_GROUP_ID, Error.INVALID_GROUP_ID.message)
    return begun(_looked_at(context, call, request))


def _looked_at(
    context: Context, call: Call, request: DeleteShareGroupOffsetsRequest
) -> Steps[Later[Response]]:
    response = Response()
    topics: dict[bytes, str] = {}
    for number, topic in enumerate(request.topics, 1):
        found = context.metadata.image.topics.get(topic.topic_name)
        if not may(context, call, READ, TOPIC, topic.topic_name):
            _refuse(response, topic.topic_name, Error.TOPIC_AUTHORIZATION_FAILED)
        elif found is None:
            _refuse(response, topic.topic_name, Error.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            topics[found.topic_id] = topic.topic_name
        if number % ELEMENTS_PER_STEP == 0:
            yield
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
        soon = self.context.env.slices.soon
        deleted = self.context.persister.delete(self.group_id, places)
        return deleted.then_ask(lambda outcomes: soon(self._deleted(outcomes))).then_ask(
            self._told_of
        )

    def _deleted(self, outcomes: Outcomes) -> Steps[frozenset[bytes]]:
        """The topics of which nothing is left, which are answered first."""
        failures: dict[bytes, KafkaError | None] = {}
        for number, ((topic_id, _), error) in enumerate(outcomes.items(), 1):
            failures[topic_id] = failures.get(topic_id) or error
            if number % LOOKS_PER_STEP == 0:
                yield
        done: dict[bytes, Response.Response] = {}
        for topic_id, failed in failures.items():
            name = self.topics[topic_id]
            if failed is None:
                done[topic_id] = Response.Response(topic_name=name, topic_id=topic_id)
            else:
                _refuse(self.response, name, Error(failed.code), topic_id=topic_id)
            if len(done) % ELEMENTS_PER_STEP == 0:
                yield
        self.response.responses[:0] = done.values()
        return frozenset(done)

    def _told_of(self, done: frozenset[bytes]) -> Later[Response]:
        if not done:
            return Later.of(self.response)
        event = ShareOffsetsDeleted(self.group_id, done)
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
