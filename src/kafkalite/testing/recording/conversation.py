"""One connection's requests and responses, understood frame by frame. Sans-IO.

A response does not say what it answers: brokers answer a connection's requests in order, and the
correlation id tells which requests had no answer at all (Produce with acks=0). What cannot be
understood is kept as it is; nothing here refuses a frame. Invariant: what is kept of a request is
what its answer needs, and nothing of one that is never answered.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from kafkalite.client.secrets import may_hold_secrets
from kafkalite.protocol import codec, headers, spec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.framing import SIZE_BYTES
from kafkalite.protocol.messages import ResponseHeader, message_class
from kafkalite.testing.recording.said import REQUEST, RESPONSE, Said
from kafkalite.testing.recording.secrets import (
    SECRET,
    as_token,
    begins_secretively,
    begins_tokens,
    without_secrets,
)

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
        self._unanswered: deque[Said] = deque()  # without their messages and frames
        self._has_tokens = False

    @property
    def is_owed(self) -> bool:
        """Whether something was asked that has no answer so far."""
        return bool(self._unanswered)

    def request(self, frame: bytes, now_ms: int, cut: str = "") -> Said:
        """`cut` says why the frame is only the start of one."""
        said = self._said(REQUEST, frame, now_ms)
        try:
            _read_request(said, frame, cut)
        except MalformedFrame as reason:
            said.reason = str(reason)
        self._hide(said)
        if not _is_never_answered(said):
            self._unanswered.append(replace(said, message=None, frame=b""))
        return said

    def response(self, frame: bytes, now_ms: int, cut: str = "") -> Said:
        said = self._said(RESPONSE, frame, now_ms)
        try:
            _read_response(said, frame, self._asked(frame), cut)
        except MalformedFrame as reason:
            said.reason = str(reason)
        self._hide(said)
        return said

    def _hide(self, said: Said) -> None:
        """Of a login nothing is kept that is secret; its first version has tokens without any
        header."""
        if said.message is not None:
            self._has_tokens = self._has_tokens or begins_tokens(said)
        elif self._has_tokens:
            as_token(said)
        without_secrets(said)

    def unreadable(self, kind: str, data: bytes, reason: str, now_ms: int) -> Said:
        """Of bytes that are not even frames."""
        said = self._said(kind, data, now_ms)
        said.reason = reason
        if self._has_tokens or self._is_start_of_secret(kind, data):
            said.frame, said.reason = b"", f"{reason}; {SECRET}"
        return said

    def _is_start_of_secret(self, kind: str, data: bytes) -> bool:
        if kind == REQUEST:
            return begins_secretively(data[SIZE_BYTES:])
        return any(may_hold_secrets(asked.api) for asked in self._unanswered)

    def _said(self, kind: str, frame: bytes, now_ms: int) -> Said:
        peer = self._peer
        return Said(kind, now_ms, self._number, str(peer), peer.node_id, frame=frame)

    def _asked(self, frame: bytes) -> Said:
        """The request that this answers; those before it were never to be answered."""
        correlation_id = int.from_bytes(frame[:4], "big", signed=True) if len(frame) >= 4 else None
        waiting = self._unanswered
        if any(_may_be_of(each, correlation_id) for each in waiting):
            while not _may_be_of(waiting[0], correlation_id):
                waiting.popleft()
            return waiting.popleft()
        if correlation_id is None:
            raise MalformedFrame("a response shorter than its correlation id")
        raise MalformedFrame(f"nothing was asked under {correlation_id}")


def _may_be_of(asked: Said, correlation_id: int | None) -> bool:
    """What could not be read was answered by what comes next: SASL's tokens have no ids."""
    return asked.correlation_id is None or asked.correlation_id == correlation_id


def _is_never_answered(said: Said) -> bool:
    return said.api == "Produce" and said.message is not None and said.message.acks == 0


def _read_request(said: Said, frame: bytes, cut: str) -> None:
    header, position = headers.decode_request_header(frame)
    api, version = spec.api(header.request_api_key), header.request_api_version
    said.api, said.version = api.name, version
    said.correlation_id, said.client_id = header.correlation_id, header.client_id
    if version not in api.versions:
        raise MalformedFrame(f"{api.name} has no version {version}")
    if cut:
        raise MalformedFrame(cut)
    said.message = codec.decode(message_class(f"{api.name}Request"), version, frame, position)


def _read_response(said: Said, frame: bytes, asked: Said, cut: str) -> None:
    said.api, said.version = asked.api, asked.version
    said.correlation_id, said.client_id = asked.correlation_id, asked.client_id
    if asked.api is None or asked.version is None:
        raise MalformedFrame("what it answers could not be understood")
    if cut:
        raise MalformedFrame(cut)
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


def copied(said: Said) -> Any:
    """The message of a response once more, to be changed: read from its frame."""
    assert said.api is not None
    assert said.version is not None
    cls = message_class(f"{said.api}Response")
    return _decoded(cls, cls.SPEC.api.key, said.version, said.frame)
