"""Which header goes with which version, and how a request's is read."""

from __future__ import annotations

import pytest

from kafkalite.protocol import codec, headers
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.protocol.messages import RequestHeader

PRODUCE, CONTROLLED_SHUTDOWN, API_VERSIONS = 0, 7, 18


@pytest.mark.parametrize(
    ("api_key", "version", "request_header", "response_header"),
    [
        (PRODUCE, 0, 1, 0),
        (PRODUCE, 8, 1, 0),
        (PRODUCE, 9, 2, 1),
        (API_VERSIONS, 0, 1, 0),
        (API_VERSIONS, 3, 2, 0),
        (API_VERSIONS, 4, 2, 0),
        (API_VERSIONS, 99, 2, 0),
        (CONTROLLED_SHUTDOWN, 0, 0, 0),
        (CONTROLLED_SHUTDOWN, 1, 1, 0),
        (CONTROLLED_SHUTDOWN, 3, 2, 1),
        (17, 1, 1, 0),
    ],
)
def test_header_versions(
    api_key: int, version: int, request_header: int, response_header: int
) -> None:
    assert headers.request_header_version(api_key, version) == request_header
    assert headers.response_header_version(api_key, version) == response_header


def header_of(api_key: int, version: int) -> RequestHeader:
    return RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=7, client_id="me"
    )


@pytest.mark.parametrize("version", [8, 9])
def test_a_header_ends_where_the_body_starts(version: int) -> None:
    header = header_of(PRODUCE, version)
    frame = codec.encode(header, 1 if version < 9 else 2)
    assert headers.decode_request_header(bytearray(frame + b"body")) == (header, len(frame))


def test_a_client_id_may_be_null() -> None:
    header, position = headers.decode_request_header(bytes.fromhex("0000000800000007ffff"))
    assert header.client_id is None
    assert position == 10


@pytest.mark.parametrize(
    "frame",
    ["", "000000", "0000000900", "0000000900000007", "00000009000000070002 6d", "7fff0000" * 4,
     "ffff0000" * 4, "000000080000000700ff6d"],
)  # fmt: skip
def test_a_header_that_is_none(frame: str) -> None:
    with pytest.raises(MalformedFrame):
        headers.decode_request_header(bytes.fromhex(frame))


def test_response_headers() -> None:
    assert headers.encode_response_header(PRODUCE, 8, 7) == bytes((0, 0, 0, 7))
    assert headers.encode_response_header(PRODUCE, 9, 7) == bytes((0, 0, 0, 7, 0))
    assert headers.encode_response_header(API_VERSIONS, 4, 7) == bytes((0, 0, 0, 7))
