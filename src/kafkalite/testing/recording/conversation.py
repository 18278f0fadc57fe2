"""One connection's requests and responses, understood frame by frame. Sans-IO.

A response does not say what it answers: brokers answer a connection's requests in order, and the
correlation id tells which requests had no answer at all (Produce with acks=0). What cannot be
understood is kept as it is; nothing here refuses a frame.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import ResponseHeader, message_class
from kafkalite.testing.recording.trace import REQUEST, RESPONSE, Said

API_VERSIONS = 18


@dataclass(slots=True)
class Peer:
    """The broker at the other end."""

    host: str
    port: int
    node_id: int | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Conversation:
    def __init__(self, number: int, peer: Peer) -> None:
        self._number, self._peer = number, peer
        self._unanswered: deque[Said] = deque()

    def request(self, frame: bytes, now_ms: int) -> Said:
        said = self._said(REQUEST, now_ms)
        try:
            _read_request(said, frame)
        except MalformedFrame as reason:
            said.frame, said.reason = frame, str(reason)
        self._unanswered.append(said)
        return said

    def response(self, frame: bytes, now_ms: int) -> Said:
        said = self._said(RESPONSE, now_ms)
        try:
            _read_response(said, frame, self._asked(frame))
        except MalformedFrame as reason:
            said.frame, said.reason = frame, str(reason)
        return said

    def unreadable(self, kind: str, data: bytes, reason: str, now_ms: int) -> Said:
        """Of bytes that are not even frames."""
        said = self._said(kind, now_ms)
        said.frame, said.reason = data, reason
        return said

    def _said(self, kind: str, now_ms: int) -> Said:
        return Said(kind, now_ms, self._number, str(self._peer), self._peer.node_id)

    def _asked(self, frame: bytes) -> Said:
        """The request that this answers; those before it were never to be answered."""
        if len(frame) < 4:
            raise MalformedFrame("a response shorter than its correlation id")
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        while self._unanswered:
            asked = self._unanswered.popleft()
            if asked.correlation_id is None or asked.correlation_id == correlation_id:
                return asked
        raise MalformedFrame(f"nothing was asked under {correlation_id}")


def _read_request(said: Said, frame: bytes) -> None:
    header, position = headers.decode_request_header(frame)
    api, version = spec.api(header.request_api_key), header.request_api_version
    said.api, said.version = api.name, version
    said.correlation_id, said.client_id = header.correlation_id, header.client_id
    if version not in api.versions:
        raise MalformedFrame(f"{api.name} has no version {version}")
    said.message = codec.decode(message_class(f"{api.name}Request"), version, frame, position)


def _read_response(said: Said, frame: bytes, asked: Said) -> None:
    said.api, said.version = asked.api, asked.version
    said.correlation_id, said.client_id = asked.correlation_id, asked.client_id
    if asked.api is None or asked.version is None:
        raise MalformedFrame("what it answers could not be understood")
    cls = message_class(f"{asked.api}Response")
    key = cls.SPEC.api.key
    try:
        said.message = _decoded(cls, key, asked.version, frame)
    except MalformedFrame:
        if key != API_VERSIONS:
            raise
        # A version that the broker does not know is answered in the first.
        said.message, said.version = _decoded(cls, key, 0, frame), 0


def _decoded(cls: type[Any], key: int, version: int, frame: bytes) -> Any:
    if version not in spec.api(key).versions:
        raise MalformedFrame(f"{cls.__name__} has no version {version}")
    header_version = headers.response_header_version(key, version)
    _, position = codec.decode_prefix(ResponseHeader, header_version, frame)
    return codec.decode(cls, version, frame, position)


def response_frame(said: Said) -> bytes:
    """The frame of a response that was changed, without its size."""
    assert said.message is not None
    assert said.version is not None
    assert said.correlation_id is not None
    key = said.message.SPEC.api.key
    header = headers.encode_response_header(key, said.version, said.correlation_id)
    return header + codec.encode(said.message, said.version)
