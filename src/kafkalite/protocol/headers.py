"""The headers before every request and response, and which version of them an API's version has."""

from __future__ import annotations

from functools import cache

from kafkalite.protocol import codec, spec
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import RequestHeader, ResponseHeader

_CONTROLLED_SHUTDOWN = 7


def request_header_version(api_key: int, version: int) -> int:
    """MalformedFrame when there is no such API: then nothing tells where the header ends."""
    flexible = _flexible_from(api_key)
    if api_key == _CONTROLLED_SHUTDOWN and version == 0:
        return 0  # the one request that went out before client ids were in the header
    return 2 if version >= flexible else 1


def response_header_version(api_key: int, version: int) -> int:
    flexible = _flexible_from(api_key)
    fixed = spec.api(api_key).response_header
    if fixed is not None:
        return fixed
    return 1 if version >= flexible else 0


@cache
def _flexible_from(api_key: int) -> int:
    try:
        flexible = spec.api(api_key).flexible
    except KeyError:
        raise MalformedFrame(f"no API has the key {api_key}") from None
    return flexible.start if flexible else spec.LAST + 1


def decode_request_header(frame: codec.Buffer) -> tuple[RequestHeader, int]:
    """The header at the start of a request's frame, and the position where the body starts.

    The version that it asks for may be one that the API does not have.
    """
    if len(frame) < 4:
        raise MalformedFrame("a request shorter than its API key and version")
    api_key = int.from_bytes(frame[0:2], "big", signed=True)
    version = int.from_bytes(frame[2:4], "big", signed=True)
    return codec.decode_prefix(RequestHeader, request_header_version(api_key, version), frame)


def encode_response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    header = ResponseHeader(correlation_id=correlation_id)
    return codec.encode(header, response_header_version(api_key, version))
