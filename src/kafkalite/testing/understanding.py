"""Requests and replies, as far as who stands between connections and broker understands them.

Owns the way from bytes to messages and back. Changes nothing of what is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkalite.env.disk import FileRange
from kafkalite.env.later import Later
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import RequestHeader, ResponseHeader, message_class
from kafkalite.server.connection_info import ConnectionInfo
from kafkalite.server.request_header import read_header
from kafkalite.server.terms import Answer, Outcome, Reply
from kafkalite.testing.asking import CLIENT_ID

SIZE_BYTES = 4
_FETCHER = re.compile(r"broker-\d+-fetcher-to-\d+")
_PEER = re.compile(r"broker-\d+-\w+-to-\d+")  # as brokers of the cluster call themselves


@dataclass(slots=True)
class Request:
    """One request, as far as it is understood."""

    frame: memoryview
    connection: ConnectionInfo
    header: RequestHeader
    api: str
    message: Any
    outcome: Outcome | None = None  # when it is done already
    tell: Callable[[Request, Outcome], None] | None = None  # what the broker said

    @property
    def version(self) -> int:
        return self.header.request_api_version

    @property
    def client_id(self) -> str | None:
        return self.header.client_id

    @property
    def is_of_the_cluster(self) -> bool:
        """Whether a broker asks, or a helper of tests."""
        return is_of_the_cluster(self.client_id)

    @property
    def is_answered(self) -> bool:
        return not (self.api == "Produce" and self.message.acks == 0)


def understood(
    frame: memoryview,
    connection: ConnectionInfo,
    is_of_interest: Callable[[str], bool] | None = None,
) -> Request | None:
    """The request, when it can be read and its API is of interest; of bytes of its own then, for a
    test may keep the message that its `when` was asked about."""
    try:
        header, position = headers.decode_request_header(frame)
        api = spec.api(header.request_api_key)
        version = header.request_api_version
        if version not in api.versions or not (is_of_interest is None or is_of_interest(api.name)):
            return None
        cls = message_class(f"{api.name}Request")
        mine = frame if is_of_interest is None else copy(frame)
        message, _ = codec.decode_prefix(cls, version, mine, position)
    except MalformedFrame:
        return None
    return Request(frame, connection, header, api.name, message)


def response_in(asked: Request, outcome: Outcome) -> Any | None:
    """The message of a reply, None where there is none."""
    if not isinstance(outcome, list) or not outcome:
        return None
    whole = b"".join(
        part.read() if isinstance(part, FileRange) else bytes(part) for part in outcome
    )
    key, version = asked.header.request_api_key, asked.header.request_api_version
    header_version = headers.response_header_version(key, version)
    _, position = codec.decode_prefix(ResponseHeader, header_version, whole, SIZE_BYTES)
    return codec.decode(message_class(f"{asked.api}Response"), version, whole, position)


def reply_of(asked: Request, response: Any) -> Reply:
    header = asked.header
    key, version = header.request_api_key, header.request_api_version
    body = headers.encode_response_header(key, version, header.correlation_id)
    body += codec.encode(response, version)
    return [len(body).to_bytes(SIZE_BYTES, "big"), body]


def is_of_the_cluster(client_id: str | None) -> bool:
    return client_id == CLIENT_ID or _PEER.fullmatch(client_id or "") is not None


def is_of_a_fetcher(frame: memoryview) -> bool:
    """Whether a follower asks for what it copies: that goes on by itself, whatever a test does."""
    try:
        return _FETCHER.fullmatch(read_header(frame, False)[3] or "") is not None
    except MalformedFrame:
        return False


def when_there(answer: Answer, then: Callable[[Outcome], None]) -> None:
    """Goes on with the reply; with none at all where none is owed."""
    if isinstance(answer, Later):
        answer.then(then)
    else:
        then([] if answer is None else answer)


def copy(frame: memoryview) -> memoryview:
    """What lies in the receive buffer is overwritten when this request is done with."""
    return memoryview(bytearray(frame))
