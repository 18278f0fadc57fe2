"""Connections below any client: order of replies, what ends them, and ApiVersions' edges."""

import socket
import struct

import pytest

from bench.raw_client import PRODUCE_VERSION, Produce, RawClient, make_batch, make_topic
from kafkalite.protocol import codec
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import ApiVersionsRequest, ApiVersionsResponse
from tests.compat.brokers import Broker

API_VERSIONS, METADATA = 18, 3


def head(key: int, version: int, correlation_id: int = 7, *, has_tags: bool = False) -> bytes:
    tags = b"\0" if has_tags else b""
    return struct.pack(">hhih", key, version, correlation_id, 2) + b"me" + tags


def api_versions(name: str = "a-client", version: str = "1") -> bytes:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    return head(API_VERSIONS, 3, has_tags=True) + codec.encode(request, 3)


def ask(broker: Broker, *frames: bytes, is_sized: bool = False) -> bytes:
    """All that comes back until the broker ends the connection or a second passes in silence."""
    with socket.create_connection((broker.host, broker.port), 10) as peer:
        peer.sendall(b"".join(f if is_sized else struct.pack(">i", len(f)) + f for f in frames))
        peer.settimeout(1)
        answer = b""
        try:
            while piece := peer.recv(65_536):
                answer += piece
        except (TimeoutError, ConnectionResetError):
            pass
    return answer


def ends(broker: Broker, *frames: bytes, is_sized: bool = False) -> bool:
    """Whether the broker ends the connection without a word."""
    with socket.create_connection((broker.host, broker.port), 10) as peer:
        peer.sendall(b"".join(f if is_sized else struct.pack(">i", len(f)) + f for f in frames))
        try:
            return peer.recv(1) == b""
        except ConnectionResetError:
            return True


def test_replies_come_in_the_order_of_requests(broker):
    frames = [head(API_VERSIONS, 0, number) for number in range(50)]
    answer = ask(broker, *frames)
    found = []
    while answer:
        size, correlation_id = struct.unpack_from(">ii", answer)
        found.append(correlation_id)
        answer = answer[4 + size :]
    assert found == list(range(50))


@pytest.mark.parametrize("version", [5, 99, 0x7FFF, -1])
def test_api_versions_of_the_future_is_answered_in_version_0(broker, version):
    answer = ask(broker, head(API_VERSIONS, version, has_tags=version >= 3))
    response = codec.decode(ApiVersionsResponse, 0, answer[8:])
    assert response.error_code == Error.UNSUPPORTED_VERSION
    assert [entry.api_key for entry in response.api_keys] == [API_VERSIONS]


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("-a", "1"), ("a", ""), ("a b", "1")])
def test_a_software_name_that_is_none_is_an_invalid_request(broker, name, version):
    response = codec.decode(ApiVersionsResponse, 3, ask(broker, api_versions(name, version))[8:])
    assert response.error_code == Error.INVALID_REQUEST
    assert response.api_keys == []


@pytest.mark.parametrize(
    "frame",
    [
        head(999, 0),
        head(METADATA, 99, has_tags=True),
        head(METADATA, -1),
        b"",
        b"\0\x12\0",
        head(METADATA, 1) + struct.pack(">i", 2**31 - 1),
        head(METADATA, 1) + b"\0\0\0\1\0\5ab",
    ],
    ids=["no API", "no version", "version -1", "empty", "3 bytes", "2147483647 topics", "short"],
)
def test_what_is_no_request_ends_the_connection(broker, frame):
    assert ends(broker, frame)


@pytest.mark.parametrize("size", [-1, 104_857_601, 2**31 - 1])
def test_a_size_out_of_bounds_ends_the_connection(broker, size):
    assert ends(broker, struct.pack(">i", size), is_sized=True)


def test_requests_before_a_bad_one_are_answered(broker):
    answer = ask(broker, head(API_VERSIONS, 0), head(999, 0))
    assert struct.unpack_from(">i", answer, 4) == (7,)


def test_acks_0_is_never_answered_and_an_error_ends_the_connection(broker, topic):
    client = RawClient(broker.host, broker.port)
    make_topic(client, topic)
    batch, records = make_batch(1_000, 100)
    silent = Produce(topic, batch, records, acks=0)
    for number in range(3):
        client.send(*silent.request(number))
    spoken = Produce(topic, batch, records, acks=1)
    client.send(*spoken.request(3))
    reply = client.receive()
    assert struct.unpack_from(">i", reply) == (3,)
    client.close()
    missing = Produce(f"{topic}-missing", batch, records, acks=0)
    frame = b"".join(bytes(part) for part in missing.request(0))
    assert PRODUCE_VERSION < 13  # by name, so that it can be missing
    assert ends(broker, frame, is_sized=True)
