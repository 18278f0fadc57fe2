"""One request or response: what was understood of it, and its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafkalite.protocol import codec, headers
from kafkalite.protocol.messages import RequestHeader

REQUEST, RESPONSE = "request", "response"


@dataclass(slots=True)
class Said:
    """One request or response. `message` is None when `frame` could not be understood."""

    kind: str
    time_ms: int
    connection: int  # the so-manieth that the proxy took
    broker: str  # host:port of the real one
    node_id: int | None  # which of its cluster that is, once an answer has told it
    api: str | None = None
    version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    message: Any | None = None
    frame: bytes = b""  # without its size; b"" where `frame_of` makes the same
    reason: str = ""


def frame_of(said: Said) -> bytes:
    """The frame that says what was understood. ValueError when that has no place on the wire."""
    version, correlation_id = said.version, said.correlation_id
    assert said.message is not None
    assert version is not None
    assert correlation_id is not None
    body = codec.encode(said.message, version)
    key = said.message.SPEC.api.key
    if said.kind == RESPONSE:
        return headers.encode_response_header(key, version, correlation_id) + body
    header = RequestHeader(
        request_api_key=key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=said.client_id,
    )
    return codec.encode(header, headers.request_header_version(key, version)) + body
