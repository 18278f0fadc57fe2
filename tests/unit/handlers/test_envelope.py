"""Envelope: what a client has sent, forwarded by its broker."""

from ipaddress import ip_address

import pytest

from kafkalite.protocol import codec, headers
from kafkalite.protocol.errors import Error
from kafkalite.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DefaultPrincipalData,
    EnvelopeRequest,
    MetadataRequest,
    RequestHeader,
    ResponseHeader,
)

HOST = ip_address("10.0.0.9").packed
ALICE = bytes(2) + codec.encode(DefaultPrincipalData(type="User", name="alice"), 0)


def envelope(request, version, principal=ALICE, host=HOST):
    key = request.API_KEY
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=99, client_id="c"
    )
    data = codec.encode(header, headers.request_header_version(key, version))
    return EnvelopeRequest(
        request_data=data + codec.encode(request, version),
        request_principal=principal,
        client_host_address=host,
    )


def creation():
    topic = CreateTopicsRequest.Topic(name="t", num_partitions=2, replication_factor=1)
    return CreateTopicsRequest(topics=[topic])


def test_is_answered_as_its_sender_would_be(desk):
    answer = desk.world.ask(envelope(creation(), 7), 0)
    assert answer.error_code == Error.NONE
    header, start = codec.decode_prefix(ResponseHeader, 1, answer.response_data)
    assert header.correlation_id == 99
    response = codec.decode(CreateTopicsResponse, 7, answer.response_data, start)
    assert [(each.name, each.error_code) for each in response.topics] == [("t", 0)]
    assert len(desk.world.metadata.image.topics["t"].partitions) == 2


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        (envelope(MetadataRequest(topics=[]), 9), Error.INVALID_REQUEST),
        (envelope(creation(), 7, principal=b""), Error.PRINCIPAL_DESERIALIZATION_FAILURE),
        (envelope(creation(), 7, host=b"???"), Error.INVALID_REQUEST),
        (
            EnvelopeRequest(
                request_data=b"\0\x13\0\x07", request_principal=ALICE, client_host_address=bytes(4)
            ),
            Error.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_what_cannot_be_forwarded_is_refused(desk, broken, error):
    assert desk.world.ask(broken, 0).error_code == error
