"""The straight-line header reader beside its plain twin."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkalite.protocol import headers
from kafkalite.protocol.errors import MalformedFrame
from kafkalite.server.request_header import read_header

API_VERSIONS = 18
ONE_VERSION = {1: 2, 2: 4}  # header version -> a version of ApiVersions that has it


def both(frame, header_version):
    """What each of the twins makes of a frame: a header, or that it is none."""
    results: list[tuple[int, int, int, str | None, int] | None] = []
    try:
        plain, end = headers.decode_request_header(frame)
        results.append(
            (
                plain.request_api_key,
                plain.request_api_version,
                plain.correlation_id,
                plain.client_id,
                end,
            )
        )
    except MalformedFrame:
        results.append(None)
    try:
        results.append(read_header(memoryview(frame), header_version == 2))
    except MalformedFrame:
        results.append(None)
    return results


def encoded(header_version, correlation_id, client_id, tags=b"\0"):
    version = ONE_VERSION[header_version]
    text = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(text)
    head = struct.pack(">hhih", API_VERSIONS, version, correlation_id, length)
    return head + text + (tags if header_version == 2 else b"")


@given(
    st.sampled_from([1, 2]),
    st.integers(-(2**31), 2**31 - 1),
    st.none() | st.text(max_size=40),
    st.binary(max_size=5),
)
def test_the_twins_agree_on_headers(header_version, correlation_id, client_id, body):
    plain, fast = both(encoded(header_version, correlation_id, client_id) + body, header_version)
    assert plain is not None
    assert fast == plain


@given(st.sampled_from([1, 2]), st.binary(max_size=30))
def test_the_twins_agree_on_any_bytes(header_version, data):
    head = struct.pack(">hh", API_VERSIONS, ONE_VERSION[header_version])
    plain, fast = both(head + data, header_version)
    assert fast == plain


@pytest.mark.parametrize("header_version", [1, 2])
def test_the_twins_refuse_every_strict_prefix(header_version):
    whole = encoded(header_version, 7, "client")
    for end in range(4, len(whole)):
        assert both(whole[:end], header_version) == [None, None]


def test_tagged_fields_that_nobody_knows_are_skipped():
    frame = encoded(2, 7, "client", tags=b"\x01\x05\x02ab") + b"body"
    plain, fast = both(frame, 2)
    assert plain is not None
    assert fast == plain
