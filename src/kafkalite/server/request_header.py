"""Reads a request's header where it lies: the straight-line twin of `protocol.headers`.

Every request passes here, so the usual header is read by one unpack and one slice. What is unusual
(tagged fields, an unknown API) goes to the plain twin. A test holds both to the same results.
"""

from __future__ import annotations

import struct

from kafkalite.protocol import headers
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.text import AS_JAVA

_HEAD = struct.Struct(">hhih")
_unpack_head = _HEAD.unpack_from
HEAD_BYTES = _HEAD.size

# (API key, version, correlation id, client id, where the body starts)
Header = tuple[int, int, int, "str | None", int]


def read_header(frame: memoryview, has_tags: bool) -> Header:
    """The header of a request, with tags in its version 2; MalformedFrame when it is none."""
    if len(frame) < HEAD_BYTES:
        raise MalformedFrame("a request shorter than its header")
    api_key, version, correlation_id, length = _unpack_head(frame)
    end = HEAD_BYTES + max(0, length)
    if length < -1 or len(frame) < end + has_tags:
        raise MalformedFrame(f"a client id of {length} bytes in a request of {len(frame)}")
    client_id = None if length < 0 else str(frame[HEAD_BYTES:end], "utf-8", AS_JAVA)
    if not has_tags:
        return api_key, version, correlation_id, client_id, end
    if frame[end] == 0:
        return api_key, version, correlation_id, client_id, end + 1
    header, end = headers.decode_request_header(frame)
    return api_key, version, header.correlation_id, header.client_id, end
